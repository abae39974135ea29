"""What to do about an error of the engine in dbt's terms: flags, configs, YAML and operations."""

from __future__ import annotations

from ktk_engine.messages import Voice


def _operation(name: str, /, **arguments: str) -> str:
    """How to call an operation; arguments in braces are to be filled in."""
    given = ", ".join(f"{key}: {value}" for key, value in arguments.items())
    return f"dbt run-operation ktk_{name} --args '{{{{{given}}}}}'"


DBT: Voice = {
    "drop": _operation("drop", cube="{name}"),
    "drop_dataset": _operation("drop", cube="{name}", dataset="{dataset}"),
    "drop_all": _operation("drop", cube="{name}", cascade="true"),
    "drop_seed": _operation("drop", cube="{name}", dataset="{dataset}", cascade="true"),
    "undrop": _operation("undrop", cube="{name}"),
    "undrop_dataset": _operation("undrop", cube="{name}", dataset="{dataset}"),
    "publish": _operation("publish", name="{name}"),
    "publish_dataset": _operation("publish", name="{name}", dataset="{dataset}"),
    "publish_as": _operation("publish", name="{name}", **{"{format}": "true"}),
    "stop_publishing": _operation("publish", name="{name}", stop="true"),
    "stop_documents": _operation("publish", name="{name}", kartothek="true", stop="true"),
    "compact": _operation("compact", cube="{name}"),
    "compact_dataset": _operation("compact", cube="{name}", dataset="{dataset}"),
    "delete_garbage": _operation("cleanup", name="{name}", delete="true"),
    "restore": f"Use {_operation('restore', cube='{name}', version='VERSION')}.",
    "cleanup": "`dbt run-operation ktk_cleanup`",
    "rename": _operation("rename", cube="{name}", new="{new}"),
    "rename_in_cube": "Give its model another `alias`, and `dataset` for the name within the cube; "
    "ktk rename {name} ... renames the cube.",
    "untag": _operation("tag", cube="{name}", name="{tag}", delete="true"),
    "history": _operation("history", name="{name}"),
    "history_of_removed": _operation("history", name="{name}"),
    "check": _operation("check", name="{name}"),
    "check_files": "`ktk check`",
    "check_bytes": "`ktk check --deep`",
    "describe": "`ktk info {name}` shows columns, types, partitions and properties, "
    "`ktk history` the commits; macros ask adapter.get_columns_in_relation(...).",
    "make_index": "ktk index {name} {words} builds it.",
    "build_cube_again": "Build the model that is materialized cube again, or its dataset here.",
    "rebuild_together": "dbt build --full-refresh -s {select} rebuilds them in one run, in any "
    "order.",
    "create_index": "Use the model's config `indexes`, or `ktk index`.",
    "adopt": _operation("adopt", name="{name}"),
    "look_at_adoption": _operation("adopt", name="{name}", dry_run="true"),
    "adopt_with_loss": _operation("adopt", name="{name}", force="true"),
    "adopt_with_seed": "ktk adopt {name} --seed DATASET",
    "adopt_with_words": "ktk adopt {name} --seed DATASET --dimensions COLUMN,COLUMN",
    "install": "pip install 'dbt-ktk[{extra}]'",
    "upgrade": "Upgrade dbt-ktk.",
    "kept_versions": "`older_than` and `keep_versions` of ktk_cleanup",
    "key": "unique_key",
    "predicate": "incremental_predicates",
    "location": "`ktk_location`",
    "ignore_folders": "`ktk_options: {{recursiveFileLookup: true}}`",
    "only_files": "`ktk_options: {{pathGlobFilter: '*.{ending}'}}`",
    "whole_documents": "`ktk_options: {{multiLine: true}}`",
    "separator": "`ktk_options: {{sep: {mark!r}}}`",
    "encoding": "`ktk_options: {{encoding: ...}}`",
    "read_dataset": "by `ktk_store: {store}` and `ktk_dataset: {dataset}`",
    "answer_here": "`ktk query`",
    "ask_view": "dbt show --inline \"select * from {{{{ ref('{name}') }}}}\"",
    "spelled_alike": "Each can be read under its own name by a source with `ktk_dataset`, and in "
    "Python (Store.table, Store.cube). ktk rename gives one of them another name.",
    "say_dataset": "Name one of them: {quoted} in SQL, `ktk_dataset: {uuid}` in the config of a "
    "source. A model that builds one of them can have a name of its own: an `alias`, and the "
    "config `dataset` for the name within the cube.",
    "build_under_other_name": "Rename one of the models.",
    "rebuild": "rebuild the dataset with --full-refresh",
    "replace_rows": "replace all rows: --full-refresh",
    "change_class": "The class of a column changes only with --full-refresh.",
    "cast_and_rebuild": "cast {column} in the model and run it with --full-refresh",
    "keep_column": "keep the column; --full-refresh changes the layout",
    "add_key": "Run it with --full-refresh to add it.",
    "other_layout": "Change the layout in the model, and run it with --full-refresh.",
    "drop_constraint": "Change the model's contract, and run it with --full-refresh.",
    "lay_out": "Change it back, or run it with --full-refresh to change its layout.",
    "lay_out_table": "Change it back, run it with --full-refresh to change its layout, or change "
    "its layout in Python (Table.repartition).",
    "lay_out_model": "Change it back, or run it with --full-refresh to change its layout: dbt "
    "build --full-refresh -s {select}",
    "lay_out_snapshot_table": "A snapshot is never rebuilt: change it back, give it another name, "
    "or change its layout in Python (Table.repartition).",
    "evolve": "Add the columns first, or use an incremental model with on_schema_change",
    "add_replace_or_leave": "To add to them, make the model incremental. To replace them: dbt "
    "build --full-refresh -s {select}. To leave them alone, give the model another `dataset` in "
    "its config.",
    "other_dataset": "Give one of them another `dataset`, `cube` or `schema` in its config.",
    "other_name": "another `alias`",
    "other_name_in_cube": "another `alias` (with the config dataset='{dataset}' its dataset keeps "
    "its name in the cube)",
    "keep_name": "Change the alias back to {name}, or rebuild it under the new one: dbt build "
    "--full-refresh -s {select}.",
    "keep_name_of_snapshot": "Change the alias back to {name}, since a snapshot is never rebuilt.",
    "leave_or_stay": "If that is a mistake, change `cube`, `dataset`, `alias` or `materialized` "
    "back. If it is meant: dbt build --full-refresh -s {select}",
    "rename_by_statement": "a table gets another name by `ktk rename`, a view by its model's alias",
    "build_seed": "Build the model that is materialized cube_seed first.",
    "no_second_seed": "If this model is {dataset} under a new name, keep the dataset's name in the "
    "cube: config(dataset='{dataset}'). Otherwise materialize it as cube_enrichment, or give it "
    "another cube.",
    "unbreak": "change the model so that they fit, build them in the same run with --full-refresh, "
    "or set cascade: true in its config and run with --full-refresh, which takes them out of the "
    "cube in the commit that rebuilds the seed dataset, and rebuild them",
    "unbreak_in_full_refresh": "change the model so that they fit, build them in the same run with "
    "--full-refresh, or set cascade: true in its config, which takes them out of the cube in the "
    "commit that rebuilds the seed dataset, and rebuild them",
    "unbreak_elsewhere": "{names}: read from where dbt defers to, and never changed there. Fix: "
    "change the model so that they fit; or let this run build them as well (add them to --select).",
    "take_owner_out": "no model of this project builds {owner}: if it is {dataset} under its old "
    "name, keep that with config(dataset='{owner}'); if its rows may go, drop it with "
    + _operation("drop", cube="{name}", dataset="{owner}")
    + "; otherwise rename {column} in {dataset}",
    "move_column": "rename it in {dataset}; if {column} moved from {owner}, or gets another name "
    "there, build both in one run: dbt run --full-refresh -s {select}",
    "move_column_from_elsewhere": "if {column} moved from {owner} to {dataset}, let this run build "
    "{owner} as well (add {select} to --select); otherwise rename it in one of them",
    "whole_cube": "Build it first: dbt build --select +{select} builds all models of the cube.",
    "list_seed": "Add the model that builds it to cube_of(...).",
    "one_cube": "Give all models the same `cube`.",
    "in_cube": "Models in cube_of(...) must be materialized cube_seed or cube_enrichment and have "
    "the same `schema` as the cube, and sources must be datasets of that schema (`ktk_dataset`). "
    "Datasets of another schema are read where dbt defers to it (`--defer --state`), or after "
    "`dbt clone`.",
    "cube_body": "The body of a model that is materialized cube must be: "
    "{{{{ cube_of(ref('...'), ref('...')) }}}}",
    "seed_of_test": "Give the test the model that builds it: seed: ref('{seed}')",
    "given_class": "model's class",
    "given_type": "model's type",
    "missing": "missing in the model",
    "declared": "declared in YAML",
    "cast": "{sql}",
    "give_zone": "data_type: {declared}",
    "give_type": "give {column} as {sql}",
    "null_column": "{sql}",
    "as_column": "{sql}",
    "add_column": "select it",
    "let_column_go": "on_schema_change: sync_all_columns",
    "let_column_come": "on_schema_change: append_new_columns",
    "declare": "add it to the model's YAML with its data_type, or remove {column} from the model",
    "declare_class": "declare a data_type with a class",
    "select_or_undeclare": "select it, or remove {column} from the model's YAML",
    "fill_null": "Filter these rows, or give them a value: coalesce({column}, {value}).",
    "fit_values": "Cast, round or filter the column in the model, or declare a wider data_type in "
    "its YAML.",
    "no_null_in_index": "Take the column out of `indexes`, or give these rows a value in the "
    "model, and run it with --full-refresh.",
    "one_row_a_key": "Keep one row per key in the model, or use "
    "incremental_strategy='delete+insert'.",
    "other_key": "since their unique_key differs or incremental_predicates leave them out",
    "fit_predicate": "Filter the model by the predicate, or widen incremental_predicates.",
    "fit_window": "Set `event_time` on the models and sources that this one reads, so that dbt "
    "filters them, or filter by {column} in the model. If the model cuts it to a day or a month, "
    "use batches of that size (`batch_size`), or an `event_time` that is as fine as the batches: "
    "another run of the batch would not find these rows.",
    "plain_predicate": "Compute other values in Jinja, so that the predicate compares columns of "
    "the table with literals.",
    "returned": "model()",
    "unstaged": "without `ktk_stage`",
    "trust": "If you trust it, add it to the target in profiles.yml: trusted_stores: [{address!r}]",
    "no_view": "A model that needs this is materialized as a table, whose SQL this project "
    "compiles.",
}
