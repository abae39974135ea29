"""Remedies as commands; those not listed are worded as in Python."""

from __future__ import annotations

from ktk_engine.messages import Voice

COMMAND: Voice = {
    "drop": "ktk drop {name}",
    "drop_dataset": "ktk drop {name} {dataset}",
    "drop_all": "ktk drop {name} --cascade",
    "drop_seed": "ktk drop {name} {dataset} --cascade",
    "undrop": "ktk undrop {name}",
    "undrop_dataset": "ktk undrop {name} {dataset}",
    "publish": "ktk publish {name}",
    "publish_dataset": "ktk publish {name} --dataset {dataset}",
    "publish_as": "ktk publish {name} --{format}",
    "stop_publishing": "ktk publish {name} --stop",
    "stop_documents": "ktk publish {name} --kartothek --stop",
    "compact": "ktk compact {name}",
    "compact_dataset": "ktk compact {name} --dataset {dataset}",
    "delete_garbage": "ktk cleanup {name} --delete",
    "cleanup": "`ktk cleanup`",
    "restore": "Use ktk restore {name} --version VERSION.",
    "rename": "ktk rename {name} {new}",
    "untag": "ktk tag {name} {tag} --delete",
    "history": "ktk history {name}",
    "history_of_removed": "ktk history {name}",
    "check": "ktk check {name}",
    "check_files": "`ktk check`",
    "check_bytes": "`ktk check --deep`",
    "describe": "`ktk info {name}` shows columns, types, partitions and properties, "
    "`ktk history` the commits.",
    "make_index": "ktk index {name} {words} builds it.",
    "rebuild_together": "drop them first (`ktk drop`), and build them again afterwards.",
    "create_index": "Use `ktk index`.",
    "rename_in_cube": "ktk rename {name} ... renames the cube.",
    "adopt": "ktk adopt {name}",
    "look_at_adoption": "ktk adopt {name} --dry-run",
    "adopt_with_loss": "ktk adopt {name} --force",
    "adopt_with_seed": "ktk adopt {name} --seed DATASET",
    "adopt_with_words": "ktk adopt {name} --seed DATASET --dimensions COLUMN,COLUMN",
    "flag": "{option}",
    "older_than": "--older-than",
    "kept_versions": "--older-than and --keep-versions of ktk cleanup",
    "answer_here": "`ktk query`",
    "ask_spark": 'in Python, Query.to_arrow(engine="spark")',
    "memory_limit": "--memory-limit",
    "ask_view": "dbt show --inline \"select * from {{{{ ref('{name}') }}}}\"",
    "spelled_alike": "Each can be read under its own name in Python (Store.table, Store.cube). "
    "ktk rename gives one of them another name.",
    "rebuild": "build the dataset again",
    "replace_rows": "replace all rows",
    "change_class": "The class of a column changes only where all rows are replaced.",
    "cast_and_rebuild": "cast {column} and replace all rows",
    "add_key": "Add it first.",
    "other_layout": "Build the dataset again with another layout.",
    "build_seed": "Build the seed dataset first.",
    "unbreak": "change the rows so that they fit; or drop these datasets first (`ktk drop`), "
    "and build them again afterwards",
    "take_owner_out": "drop {owner}: ktk drop {name} {owner}; otherwise rename {column} in "
    "{dataset}",
    "fill_null": "Filter these rows, or give them a value.",
}
