"""What comes of Kartothek's cases where it is not simply that they pass."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Different:
    """A case that fails, and has to.

    Attributes:
        sign: a pattern in what the case fails with.
        reason: what is different, and why; numbers are those of docs/design/decisions.md.
    """

    sign: str
    reason: str


_TEXT = Different("names of columns must be text", "names of columns are text, not bytes")
_ROW_GROUPS = Different("AssertionError", "the engine says how large row groups are")
_METADATA = Different(
    r"Extra items in the left set:\n\s*'ktk_base'",
    "`ktk_base` in a document says which version of the log it shows, so that others are noticed",
)
_LOG = Different(
    "assert 11 == 4",
    "there is a log: an entry, its snapshot, a pointer, a lock, a claimed name, and a note and a "
    "mark of names in SQL",
)
_EMPTY = Different("DID NOT RAISE .*MultiTableCommitAborted", "25: a dataset may be empty")
_SELF = Different("DID NOT RAISE", "the cube knows its indexes; no caller can be wrong about them")
_LITERAL = Different("DID NOT RAISE", "21: a number is compared by value with any class of numbers")
_COMMIT = Different(
    "Extra items in the left set",
    "a deletion is a commit: `ktk undrop` brings back its files until the clean-up takes them",
)
_TWICE = Different("no longer has a cube or table cube", "what is gone cannot be removed: refused")
_DAMAGE = Different("_common_metadata is missing", "26: damage is reported, not removed")
_CLEANED = Different(
    r"Extra items in the \w+ set:\n\s*'\.ktk/",
    "26: a deletion is a commit, so the store has a log now; all else is as Kartothek has it",
)
_STRANGE = Different(
    "'cube\\+\\+seed/foo' not in",
    "26: a file whose name means nothing in the format may be anybody's",
)
_NAMES = Different("AssertionError", "38: files of a copy carry its own commit; `copies_cube.py`")
_STAMP = Different(
    r"\{\"dataset_m.*== b'\{\"ktk_commi", "38: a copy is a commit of its own; `copies_cube.py`"
)
_SAME_STORE = Different("DID NOT RAISE", "38: within one store, under another name, is a copy too")

DIFFERENT = {
    "build_cube::test_parquet": _TEXT,
    "build_cube::test_metadata": _METADATA,
    "build_cube::test_empty_df": _LOG,
    "build_cube::test_fail_all_empty": _EMPTY,
    "extend_cube::test_fail_all_empty": _EMPTY,
    "append_cube::test_metadata": _METADATA,
    "update_cube::test_cube_update_secondary_indices_subset": _SELF,
    "query_cube::test_wrong_condition_type": _LITERAL,
    "delete_cube::test_simple": _COMMIT,
    "delete_cube::test_keep_other": _COMMIT,
    "delete_cube::test_keep_garbage_due_to_no_listing": _COMMIT,
    "delete_cube::test_partial_delete": _COMMIT,
    "delete_cube::test_delete_twice": _TWICE,
    "cleanup_cube::test_delete_by_correct_uuid": _CLEANED,
    "cleanup_cube::test_missing_seed_dataset": _DAMAGE,
    "cleanup_cube::test_missing_cube_files": _DAMAGE,
    "cleanup_cube::test_overwrite_check_with_copy": _CLEANED,
    "cleanup_cube::test_additional_files": _STRANGE,
    "copy_cube::test_simple": _NAMES,
    "copy_cube::test_simple_copy_cube_rename_dataset": _STAMP,
    "copy_cube::test_simple_copy_cube_rename_cube_prefix": _STAMP,
    "copy_cube::test_simple_copy_cube_rename_cube_prefix_and_dataset": _STAMP,
    "copy_cube::test_simple_rename_cube_same_stores": _SAME_STORE,
    "copy_cube::test_overwrite_ok": _NAMES,
    "copy_cube::test_ignore_other": _NAMES,
    "copy_cube::test_partial_copy_dataset_list": _NAMES,
    "copy_cube::test_partial_copy_dataset_dict": _NAMES,
    "copy_cube::test_read_only_source": _NAMES,
}
for verb, chunks in (("build", "2"), ("extend", "2"), ("append", "2-2"), ("append", "2-None")):
    name = f"test_rowgroups_are_applied_when_df_serializer_is_passed_to_{verb}_cube[{chunks}]"
    DIFFERENT[f"{verb}_cube::{name}"] = _ROW_GROUPS

LEFT_OUT = dict.fromkeys(
    (
        "build_cube::test_fail_no_store_factory",
        "build_cube::test_fail_wrong_dataset_ids",
        "cleanup_cube::test_fail_blocksize_negative",
        "cleanup_cube::test_fail_blocksize_wrong_type",
        "cleanup_cube::test_fail_blocksize_zero",
        "cleanup_cube::test_fails_no_store_factory",
        "copy_cube::test_fail_blocksize_negative",
        "copy_cube::test_fail_blocksize_wrong_type",
        "copy_cube::test_fail_blocksize_zero",
        "copy_cube::test_fail_no_store_factory_src",
        "copy_cube::test_fail_no_store_factory_tgt",
        "delete_cube::test_fail_blocksize_negative",
        "delete_cube::test_fail_blocksize_wrong_type",
        "delete_cube::test_fail_blocksize_zero",
        "delete_cube::test_fail_no_store_factory",
        "extend_cube::test_fail_no_store_factory",
        "extend_cube::test_fail_wrong_dataset_ids",
        "query_cube::test_fail_blocksize_negative",
        "query_cube::test_fail_blocksize_wrong_type",
        "query_cube::test_fail_blocksize_zero",
        "query_cube::test_fail_no_store_factory",
        "stats_cube::test_fail_blocksize_negative",
        "stats_cube::test_fail_blocksize_wrong_type",
        "stats_cube::test_fail_blocksize_zero",
        "stats_cube::test_fail_no_store_factory",
    ),
    "about an argument of dask's backends",
)
LEFT_OUT["build_cube::test_fail_duplicates_global"] = "Problem does not occur in eager mode."
for name in ("test_copy_fail_overwrite_false", "test_copy_fail_overwrite_true"):
    LEFT_OUT[f"copy_cube::{name}"] = "replaces a function of Kartothek's own by one that fails"

# Refused as in Kartothek and for the same reason, and nothing was written.
OTHER_WORDS = {
    "append_cube::test_fails_incompatible_dtypes",
    "append_cube::test_fails_missing_column",
    "append_cube::test_fails_unknown_dataset",
    "build_cube::test_fail_duplicates_local",
    "build_cube::test_fail_nondistinc_payload",
    "build_cube::test_fail_not_a_df",
    "build_cube::test_fail_partial_build",
    "build_cube::test_fail_partial_overwrite",
    "build_cube::test_fail_partition_on_1",
    "build_cube::test_fail_partition_on_3",
    "build_cube::test_fail_partition_on_4",
    "build_cube::test_fail_partition_on_nondistinc_payload",
    "build_cube::test_fail_sparse",
    "build_cube::test_fail_wrong_types",
    "build_cube::test_fails_duplicate_columns",
    "build_cube::test_fails_metadata_nested_wrong_type",
    "build_cube::test_fails_metadata_unknown_id",
    "build_cube::test_fails_metadata_wrong_type",
    "build_cube::test_fails_missing_dimension_columns",
    "build_cube::test_fails_missing_partition_columns",
    "build_cube::test_fails_missing_seed",
    "build_cube::test_fails_no_dimension_columns",
    "build_cube::test_fails_null_dimension",
    "build_cube::test_fails_null_index",
    "build_cube::test_fails_null_partition",
    "build_cube::test_fails_projected_duplicates",
    "build_cube::test_overwrite",
    "build_cube::test_overwrite_rollback_ktk",
    "build_cube::test_overwrite_rollback_ktk_cube",
    "copy_cube::test_fail_no_src_cube",
    "copy_cube::test_fail_no_src_cube_dataset",
    "copy_cube::test_fail_stores_identical_overwrite_false",
    "copy_cube::test_invalid_partial_copy",
    "copy_cube::test_invalid_partial_copy1",
    "copy_cube::test_invalid_partial_copy2",
    "copy_cube::test_overwrite_fail",
    "extend_cube::test_fail_not_a_df",
    "extend_cube::test_fails_incompatible_dtypes",
    "extend_cube::test_fails_metadata_nested_wrong_type",
    "extend_cube::test_fails_metadata_unknown_id",
    "extend_cube::test_fails_metadata_wrong_type",
    "extend_cube::test_fails_overlapping_payload_enrich",
    "extend_cube::test_fails_overlapping_payload_overwrite",
    "extend_cube::test_fails_overlapping_payload_partial",
    "extend_cube::test_fails_overlapping_payload_seed",
    "extend_cube::test_fails_seed_dataset",
    "extend_cube::test_overwrite_single",
    "query_cube::test_fail_empty_dimension_columns",
    "query_cube::test_fail_missing_condition_columns",
    "query_cube::test_fail_missing_dimension_columns",
    "query_cube::test_fail_missing_partition_by",
    "query_cube::test_fail_missing_payload_columns",
    "query_cube::test_fail_projection",
    "query_cube::test_fail_unindexed_partition_by",
    "query_cube::test_fail_unstable_dimension_columns",
    "query_cube::test_fail_unstable_partition_by",
    "remove_cube::test_another_column_is_refused",
    "remove_cube::test_unknown_datasets_are_refused",
}

# Integers of a query are as wide as their class (int64); these cubes hold narrower ones.
WIDER = r"query_cube::.*\[sparse_outer_opt"
