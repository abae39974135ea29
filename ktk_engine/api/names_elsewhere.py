"""Names that other libraries use for what cubes, tables and queries call otherwise."""

from __future__ import annotations

from collections.abc import Mapping

OF_CUBE_OR_TABLE = {
    "columns": "use .schema.names",
    "dtypes": "use .schema",
    "shape": "use .query().count() and .schema.names",
    **{
        name: f"use .query().{name}()"
        for name in ("to_pandas", "to_arrow", "to_polars", "to_duckdb", "to_spark", "count")
    },
    **dict.fromkeys(("to_df", "df", "toPandas", "collect"), "use .query().to_pandas()"),
    **dict.fromkeys(("filter", "select", "where"), "use .query(columns, where)"),
    "limit": "use .query(limit=10)",
}
OF_QUERY = {
    **dict.fromkeys(("head", "limit", "take"), "ask for the first rows: .query(..., limit=10)"),
    **dict.fromkeys(("to_df", "df", "toPandas"), "use .to_pandas()"),
    **dict.fromkeys(("collect", "fetchall", "to_table", "arrow"), "use .to_arrow()"),
    **dict.fromkeys(("pl", "to_pl"), "use .to_polars()"),
    **dict.fromkeys(("filter", "where"), "give the condition to .query(columns, where)"),
    **dict.fromkeys(("columns", "schema"), "use .to_arrow().schema"),
    "show": "use .to_pandas()",
    "spark": "use .to_spark()",
}


def unknown_attribute(owner: object, name: str, elsewhere: Mapping[str, str]) -> AttributeError:
    """Make the error for a missing attribute, which says what to use."""
    hint = f": {elsewhere[name]}" if name in elsewhere else ""
    said = f"{type(owner).__name__!r} object has no attribute {name!r}{hint}"
    return AttributeError(said, name=name, obj=owner)
