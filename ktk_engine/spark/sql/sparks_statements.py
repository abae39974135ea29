"""Statements that Spark answers from its own catalog, which does not know the store's relations.

Without this they would be told that the relation does not exist.
"""

from __future__ import annotations

_LOOK = (
    "`ktk info {name}` shows columns, types, partitions and properties, `ktk history` the commits; "
    "macros ask adapter.get_columns_in_relation(...)."
)
_LEAVE_OUT = "It is not needed: each commit keeps statistics and the list of files. Leave it out."

# Class of the plan -> the statement's name, and what to do instead.
SPARKS_STATEMENTS = {
    "DescribeRelation": ("DESCRIBE", _LOOK),
    "DescribeColumn": ("DESCRIBE", _LOOK),
    "ShowColumns": ("SHOW COLUMNS", _LOOK),
    "ShowCreateTable": ("SHOW CREATE TABLE", _LOOK),
    "ShowTableProperties": ("SHOW TBLPROPERTIES", _LOOK),
    "ShowPartitions": ("SHOW PARTITIONS", _LOOK),
    "AnalyzeTable": ("ANALYZE TABLE", _LEAVE_OUT),
    "AnalyzeColumn": ("ANALYZE TABLE", _LEAVE_OUT),
    "RefreshTable": ("REFRESH TABLE", _LEAVE_OUT),
    "RepairTable": ("MSCK REPAIR TABLE", _LEAVE_OUT),
    "LoadData": ("LOAD DATA", "Name the files as a source, and insert what it selects."),
    "CreateIndex": ("CREATE INDEX", "Use the model's config `indexes`, or `ktk index`."),
    "CreateTableLike": (
        "CREATE TABLE ... LIKE",
        "Write create table ... as select * from {relation} where false.",
    ),
}
RELATION_NODES = ("UnresolvedTableOrView", "UnresolvedTable")
