"""What our decisions predict where Kartothek's recorded answer is another.

Each rule is written for a decision of docs/design/decisions.md, carries its number, and knows no
case: it says what has to come out of any input. It is written without the engine's code, so that
both check each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.types as pat


@dataclass
class TypePrediction:
    """What a type becomes, and which decisions have a part in it.

    Attributes:
        type: our normal form; None where we refuse the type.
        decisions: the decisions that make it another type than Kartothek's.
    """

    type: pa.DataType | None
    decisions: set[str] = field(default_factory=set)


def predict_type(t: pa.DataType) -> TypePrediction:
    """Predict our normal form of a type.

    Args:
        t: any Arrow type.

    Returns:
        The prediction.
    """
    decisions: set[str] = set()
    return TypePrediction(_predicted(t, decisions), decisions)


def _predicted(t: pa.DataType, decisions: set[str]) -> pa.DataType | None:
    """Rewrite a type, noting the decisions on the way."""
    if pat.is_dictionary(t) or pat.is_run_end_encoded(t):
        return _predicted(t.value_type, decisions)
    if pat.is_duration(t) or pat.is_interval(t) or pat.is_union(t):
        decisions.add("30")
        return None
    if pat.is_nested(t):
        return _predicted_nested(t, decisions)
    if pat.is_signed_integer(t):
        return pa.int64()
    if pat.is_unsigned_integer(t):
        return pa.uint64()
    if pat.is_floating(t):
        return pa.float64()
    for decision, result in _by_decision(t):
        if not result.equals(t):
            decisions.add(decision)
        return result
    return t


def _by_decision(t: pa.DataType) -> list[tuple[str, pa.DataType]]:
    """Give the decision about a flat type, if there is one."""
    if pat.is_timestamp(t):
        return [("7", pa.timestamp("us", t.tz))]
    if pat.is_decimal(t):
        wide = t.precision > 38
        return [("8", pa.decimal256(76, t.scale) if wide else pa.decimal128(38, t.scale))]
    if pat.is_date(t):
        return [("10", pa.date32())]
    if pat.is_time(t):
        return [("29", pa.time64("us"))]
    if pat.is_large_string(t) or pat.is_string_view(t):
        return [("29", pa.string())]
    if pat.is_large_binary(t) or pat.is_fixed_size_binary(t) or pat.is_binary_view(t):
        return [("29", pa.binary())]
    return []


def _predicted_nested(t: pa.DataType, decisions: set[str]) -> pa.DataType | None:
    """Rewrite a list, struct or map."""
    if pat.is_struct(t):
        children = {f.name: _predicted(f.type, decisions) for f in t}
        if None in children.values() or len(children) < t.num_fields:
            decisions.add("30")
            return None
        result = pa.struct([(name, children[name]) for name in sorted(children)])
        return _noted(t, result, "9", decisions)
    if pat.is_map(t):
        key, value = _predicted(t.key_type, decisions), _predicted(t.item_type, decisions)
        if key is None or value is None:
            return None
        return _noted(t, pa.map_(key, value), "29", decisions)
    item = _predicted(t.value_type, decisions)
    if item is None:
        return None
    if not pat.is_list(t):
        decisions.add("29")
    return pa.list_(item)


def _noted(t: pa.DataType, result: pa.DataType, decision: str, decisions: set[str]) -> pa.DataType:
    """Note a decision where it changed the type."""
    if not result.equals(t):
        decisions.add(decision)
    return result


@dataclass(frozen=True)
class SchemaPrediction:
    """What comes out of a list of schemas of one dataset.

    Attributes:
        result: the columns with their types, in order; None where we refuse.
        decisions: the decisions that make it another result than Kartothek's.
    """

    result: list[tuple[str, pa.DataType]] | None
    decisions: frozenset[str]


def predict_schemas(
    schemas: Sequence[pa.Schema],
    partition_keys: Sequence[str],
    *,
    with_pandas: Sequence[bool],
    prepared: str,
    broken: bool,
) -> SchemaPrediction:
    """Predict whether schemas of one dataset are compatible, and the schema that holds then.

    Args:
        schemas: the schemas, without the columns of pandas' index.
        partition_keys: the columns by which the dataset is partitioned.
        with_pandas: whether each schema has pandas metadata.
        prepared: how Kartothek prepared them (`prepare` of the case).
        broken: whether Kartothek's answer is a failure inside it (decision 24).

    Returns:
        The prediction.
    """
    decisions: set[str] = {"24"} if broken else set()
    if len(set(with_pandas)) > 1:
        decisions.add("33")
    if prepared == "none" and any(
        schema.names != _ordered(schema, partition_keys) for schema in schemas
    ):
        decisions.add("16")
    known: dict[str, pa.DataType] | None = None
    for schema in schemas:
        given = _predicted_columns(schema, decisions, prepared)
        _note_differences(schemas[0], schema, decisions)
        known = given if known is None or given is None else _folded(known, given, decisions)
        if known is None:
            return SchemaPrediction(None, frozenset(decisions))
    order = [*partition_keys, *sorted(set(known or {}) - set(partition_keys))]
    return SchemaPrediction([(name, (known or {})[name]) for name in order], frozenset(decisions))


def _ordered(schema: pa.Schema, partition_keys: Sequence[str]) -> list[str]:
    """Give the names of a schema's columns in the order of the normal form."""
    return [*partition_keys, *sorted(set(schema.names) - set(partition_keys))]


def _predicted_columns(
    schema: pa.Schema, decisions: set[str], prepared: str
) -> dict[str, pa.DataType] | None:
    """Predict the types of a schema's columns; None if one has no class."""
    columns: dict[str, pa.DataType] = {}
    for column in schema:
        predicted = predict_type(column.type)
        decisions |= predicted.decisions
        if predicted.type is None:
            return None
        if prepared != "make_meta_frame" and not predicted.type.equals(column.type):
            decisions.add("31")
        columns[column.name] = predicted.type
    return columns


def _note_differences(first: pa.Schema, other: pa.Schema, decisions: set[str]) -> None:
    """Note differences that are none for us."""
    for column in other:
        index = first.get_field_index(column.name)
        if index >= 0 and first.field(index).nullable != column.nullable:
            decisions.add("32")


def _folded(
    known: dict[str, pa.DataType], given: dict[str, pa.DataType], decisions: set[str]
) -> dict[str, pa.DataType] | None:
    """Join the columns of two schemas; None if they are incompatible."""
    result: dict[str, pa.DataType] = {}
    for name in {**known, **given}:
        if name not in known or name not in given:
            only = known.get(name, given.get(name))
            if not pat.is_null(only):
                return None
            decisions.add("11")
            result[name] = only
            continue
        joined = _joined(known[name], given[name], decisions)
        if joined is None:
            return None
        result[name] = joined
    return result


def _joined(left: pa.DataType, right: pa.DataType, decisions: set[str]) -> pa.DataType | None:
    """Join two normal forms; nulls take the other's type, also within nested types."""
    if left.equals(right) or pat.is_null(right):
        return left
    if pat.is_null(left):
        return right
    if pat.is_decimal(left) and pat.is_decimal(right) and left.scale == right.scale:
        decisions.add("8")
        return pa.decimal256(76, left.scale)
    decisions.add("11")
    if pat.is_list(left) and pat.is_list(right):
        item = _joined(left.value_type, right.value_type, decisions)
        return None if item is None else pa.list_(item)
    if pat.is_map(left) and pat.is_map(right):
        key = _joined(left.key_type, right.key_type, decisions)
        value = _joined(left.item_type, right.item_type, decisions)
        return None if key is None or value is None else pa.map_(key, value)
    if pat.is_struct(left) and pat.is_struct(right):
        ours = {f.name: f.type for f in left}
        theirs = {f.name: f.type for f in right}
        if list(ours) != list(theirs):
            return None
        fields = {name: _joined(ours[name], theirs[name], decisions) for name in ours}
        return None if None in fields.values() else pa.struct(list(fields.items()))
    return None


@dataclass(frozen=True)
class PendingCommit:
    """What a writing call is about.

    Attributes:
        operation: `build`, `extend`, `append` or `remove_partitions`.
        cube: the cube's name.
        seed: the name of the cube's seed dataset.
        partition_columns: the cube's.
        arguments: names of the arguments that were given.
        existing: schemas of the datasets that exist before, by name.
        frames: schema and number of rows of each frame, by dataset.
        overwrite: whether Kartothek was allowed to overwrite.
        broken: whether Kartothek's answer is a failure inside it.
    """

    operation: str
    cube: str
    seed: str
    partition_columns: tuple[str, ...]
    arguments: frozenset[str]
    existing: dict[str, pa.Schema]
    frames: dict[str, tuple[pa.Schema, int]]
    overwrite: bool
    broken: bool


@dataclass(frozen=True)
class WritePrediction:
    """Whether we accept a call, and the decisions that make it another answer than Kartothek's."""

    accepted: bool
    decisions: frozenset[str]


def predict_write(call: PendingCommit) -> WritePrediction:
    """Predict whether we accept a call that Kartothek refuses, or the reverse.

    Args:
        call: the call.

    Returns:
        The prediction.
    """
    decisions: set[str] = {"24"} if call.broken else set()
    writes = call.operation in ("build", "extend")
    if writes and call.existing and not call.overwrite:
        decisions.add("34")
    if writes and set(call.existing) - set(call.frames):
        decisions.add("34")
    if call.operation == "extend" and call.seed in call.frames:
        decisions.add("34")
    if writes and call.seed not in {*call.frames, *call.existing}:
        decisions.add("25")
    if any(rows == 0 for _, rows in call.frames.values()):
        decisions.add("25")
    if "metadata" in call.arguments:
        decisions.add("36")
    if not call.partition_columns:
        decisions.add("35")
    accepted = True
    names = {name for schema, _ in call.frames.values() for name in schema.names}
    if writes and any(name == "KLEE_TS" or name.startswith("__") for name in names):
        # Kartothek stores them, and its cubes do not show them: they would be lost silently.
        decisions.add("37")
        accepted = False
    if writes and (call.cube.endswith("+") or any(name.startswith("+") for name in call.frames)):
        decisions.add("39")
        accepted = False
    if call.operation == "append":
        for name, (schema, _) in call.frames.items():
            accepted &= name in call.existing and _appended(call.existing[name], schema, decisions)
    return WritePrediction(accepted, frozenset(decisions))


def _appended(committed: pa.Schema, frame: pa.Schema, decisions: set[str]) -> bool:
    """Predict whether rows of a schema can be added to a dataset."""
    predicted = predict_schemas(
        [committed, frame], (), with_pandas=[True, True], prepared="make_meta_frame", broken=False
    )
    decisions |= predicted.decisions
    if any(pat.is_timestamp(column.type) and column.type.tz for column in frame):
        decisions.add("7")
    if any(pat.is_decimal(column.type) for column in frame):
        decisions.add("8")
    return predicted.result is not None
