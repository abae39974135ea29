"""Types that a model's YAML declares: what to store, and what contradicts them.

Spark lacks unsigned integers, zones and a few more (decisions 7 and 12), so the declared or else
the committed class applies to what Spark gives instead: decimals without a fraction and signed
integers for unsigned ones, UTC for another zone. The writer then checks every value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.messages import Message, Remedy
from ktk_engine.types.did_you_mean import nearest_name
from ktk_engine.types.finding import Finding
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.suggestion import cast_of, cast_to, renamed
from ktk_engine.types.type_class import (
    canonical_zone,
    class_problem,
    is_list,
    plain_type,
    unwrap,
)

_Settle = Callable[[pa.DataType, pa.DataType], pa.DataType | None]


def apply_declared(
    model: pa.Schema, declared: Mapping[str, pa.DataType], *, contract: bool = False
) -> tuple[pa.Schema, list[Finding]]:
    """Give a model's columns the declared types, together with the contradictions.

    These are columns of another class, declared columns that the model lacks and, with a contract,
    columns that are not declared.
    """
    findings: list[Finding] = []
    fields: list[pa.Field] = []
    for field in model:
        wanted = declared.get(field.name)
        if wanted is None:
            fields.append(field)
            if contract:
                findings.append(_undeclared(field, set(declared) - set(model.names)))
            continue
        given = _settled(wanted, field.type, _as_declared)
        found = mismatch(wanted, given, field.name)
        if found is not None:
            where = f"{found.path}: " if found.path != field.name else ""
            reason = f"data type mismatch, declared as another class: {where}{found.reason}"
            fix = _fix(field.name, field.type, wanted)
            findings.append(Finding(field.name, wanted, field.type, reason, fix, "declared"))
        fields.append(field.with_type(stored_type(wanted) if found is None else field.type))
    has = set(model.names)
    for name, wanted in declared.items():
        if name not in has:
            findings.append(_absent(name, wanted, has - set(declared)))
    return pa.schema(fields, metadata=model.metadata), findings


def adopt_unsigned(committed: pa.Schema, model: pa.Schema) -> pa.Schema:
    """Read decimals without a fraction as unsigned integers where those are committed or declared.

    Spark has no unsigned type and gives decimal(20,0) (decision 12). This only decides the class,
    at any depth; the writer checks every value.
    """
    known = {field.name: field.type for field in committed}
    fields = [
        field.with_type(_settled(known[field.name], field.type, _as_committed))
        if field.name in known
        else field
        for field in model
    ]
    return pa.schema(fields, metadata=model.metadata)


def with_known_classes(
    model: pa.Schema, known: Iterable[pa.Field], declared: Collection[str]
) -> pa.Schema:
    """Give undeclared columns the committed class of their dataset or of others, as in files."""
    model = adopt_unsigned(pa.schema([item for item in known if item.name not in declared]), model)
    # Files hold microseconds (decision 7); finer values are refused while writing.
    return pa.schema([item.with_type(stored_type(item.type)) for item in model])


def stored_type(t: pa.DataType) -> pa.DataType:
    """Give the type in files for a declared one.

    It is the same, with microseconds for nanoseconds (decision 7), date32 for date64 (decision 10),
    `UTC` for its other names, and otherwise the `plain_type`, except for dictionaries of text and
    bytes, which Parquet keeps, with indices of 32 bits; at any depth.
    """
    if pat.is_dictionary(t):
        values = stored_type(t.value_type)
        plain = pat.is_string(values) or pat.is_binary(values)
        return pa.dictionary(pa.int32(), values, t.ordered) if plain else values
    if not t.equals(unwrap(t)):
        return stored_type(unwrap(t))
    if pat.is_timestamp(t):
        return pa.timestamp("us" if t.unit == "ns" else t.unit, canonical_zone(t.tz))
    if pat.is_time64(t):
        return pa.time64("us")
    if pat.is_date64(t):
        return pa.date32()
    if pat.is_fixed_size_list(t) and t.list_size:
        return pa.list_(t.value_field.with_type(stored_type(t.value_type)), t.list_size)
    if is_list(t):
        return pa.list_(t.value_field.with_type(stored_type(t.value_type)))
    if pat.is_struct(t):
        return pa.struct([f.with_type(stored_type(f.type)) for f in t])
    if pat.is_map(t):
        return pa.map_(stored_type(t.key_type), stored_type(t.item_type))
    return plain_type(t)


def _as_declared(declared: pa.DataType, model: pa.DataType) -> pa.DataType | None:
    """The class of a flat type by its declaration; None leaves it."""
    if pat.is_unsigned_integer(declared) and pat.is_signed_integer(model):
        return pa.uint64()
    if pat.is_timestamp(declared) and pat.is_timestamp(model):
        # An instant is the same in every zone; Spark gives all of them in UTC.
        instant = model.tz == "UTC" and declared.tz is not None
        return pa.timestamp("us", declared.tz) if instant else model
    return _as_committed(declared, model)


def _as_committed(committed: pa.DataType, model: pa.DataType) -> pa.DataType | None:
    """The class of a flat type by what is committed; None leaves it."""
    if pat.is_unsigned_integer(committed) and pat.is_decimal(model) and model.scale == 0:
        return pa.uint64()
    return None


def _settled(known: pa.DataType, model: pa.DataType, settle: _Settle) -> pa.DataType:
    """Apply the classes of a known type to what Spark gives, at any depth."""
    known, plain = unwrap(known), unwrap(model)
    found = settle(known, plain)
    if found is not None:
        return found
    if is_list(known) and is_list(plain):
        return pa.list_(_settled(known.value_type, plain.value_type, settle))
    if pat.is_map(known) and pat.is_map(plain):
        key = _settled(known.key_type, plain.key_type, settle)
        return pa.map_(key, _settled(known.item_type, plain.item_type, settle))
    if pat.is_struct(known) and pat.is_struct(plain):
        types = {f.name: f.type for f in known}
        settled = (_settled(types.get(f.name, pa.null()), f.type, settle) for f in plain)
        return pa.struct([f.with_type(t) for f, t in zip(plain, settled, strict=True)])
    return model


def _fix(name: str, model: pa.DataType, declared: pa.DataType) -> Remedy:
    """Say how to cast the column to the declared class, or what to declare instead."""
    if class_problem(declared) is not None or class_problem(model) is not None:
        return Remedy("declare_class")
    cast = cast_to(name, model, declared)
    # It is declared already: what is missing is the instant.
    return cast_of(name, pa.timestamp("us", "UTC")) if cast.kind == "give_zone" else cast


def _undeclared(field: pa.Field, candidates: set[str]) -> Finding:
    """A column that is missing in a contract."""
    near = nearest_name(field.name, candidates)
    reason = "missing in contract" + (f"; did you mean {near}?" if near else "")
    fix = Remedy("declare", column=field.name)
    if near:
        fix = renamed(field.name, near)
    return Finding(field.name, None, field.type, reason, fix, "contract")


def _absent(name: str, declared: pa.DataType, candidates: set[str]) -> Finding:
    """A declared column that is missing in the rows."""
    near = nearest_name(name, candidates)
    reason = Message("missing in definition, though ", Remedy("declared"))
    fix = Remedy("select_or_undeclare", column=name)
    if near:
        reason = Message(reason, f"; did you mean {near}?")
        fix = renamed(near, name)
    return Finding(name, declared, None, reason, fix, "declared")
