"""Types that a model's YAML declares: what the writer stores, and what contradicts them.

Spark has no word for unsigned integers, zones and a few more (decisions 7 and 12), so a
declaration settles the class of what Spark gives instead: decimals without a fraction and
signed integers for unsigned ones, UTC for another zone. The writer then checks every value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.types.did_you_mean import nearest_name
from ktk_engine.types.finding import Finding
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.quote import readable_identifier
from ktk_engine.types.suggestion import cast_to
from ktk_engine.types.type_class import class_problem, is_list, plain_type, unwrap


def apply_declared(
    model: pa.Schema, declared: Mapping[str, pa.DataType], *, contract: bool = False
) -> tuple[pa.Schema, list[Finding]]:
    """Give a model's columns the declared types.

    Args:
        model: the schema as Spark gives it.
        declared: types by column name.
        contract: whether the model has to have exactly these columns.

    Returns:
        The schema to store, and the contradictions: columns of another class, declared columns
        that the model lacks, and with a contract columns that are not declared.
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
        given = _as_declared(wanted, field.type)
        found = mismatch(wanted, given, field.name)
        if found is not None:
            where = f"{found.path}: " if found.path != field.name else ""
            reason = f"data type mismatch, declared as another class: {where}{found.reason}"
            fix = _fix(field.name, field.type, wanted)
            findings.append(Finding(field.name, wanted, field.type, reason, fix, "declared"))
        fields.append(field.with_type(stored_type(wanted) if found is None else field.type))
    for name, wanted in declared.items():
        if name not in model.names:
            findings.append(_absent(name, wanted, set(model.names) - set(declared)))
    return pa.schema(fields, metadata=model.metadata), findings


def adopt_unsigned(committed: pa.Schema, model: pa.Schema) -> pa.Schema:
    """Read decimals without a fraction as unsigned integers where those are committed.

    Spark has no unsigned type and gives decimal(20,0) (decision 12). The writer checks every
    value; this only settles the class, at any depth.

    Args:
        committed: the committed (or declared) schema.
        model: the schema as Spark gives it.

    Returns:
        The model's schema with uint64 in place of such decimals.
    """
    known = {field.name: field.type for field in committed}
    fields = [
        field.with_type(_adopted(known[field.name], field.type)) if field.name in known else field
        for field in model
    ]
    return pa.schema(fields, metadata=model.metadata)


def with_known_classes(
    model: pa.Schema, known: Iterable[pa.Field], declared: Collection[str]
) -> pa.Schema:
    """Give columns that nothing declares the classes that are known of them, as files hold them.

    Args:
        model: the schema as Spark gives it.
        known: fields of columns that are committed, of its dataset or of others.
        declared: names of the columns that are declared.
    """
    model = adopt_unsigned(pa.schema([item for item in known if item.name not in declared]), model)
    # Files hold microseconds (decision 7); what is finer is refused while writing.
    return pa.schema([item.with_type(stored_type(item.type)) for item in model])


def stored_type(t: pa.DataType) -> pa.DataType:
    """Give the type that files hold for a declared one.

    Args:
        t: a declared type.

    Returns:
        The type itself, but microseconds for nanoseconds (decision 7), date32 for date64
        (decision 10), no views, and no dictionaries of anything but text and bytes, which
        Parquet would not keep; at any depth.
    """
    if pat.is_string_view(t) or pat.is_binary_view(t) or pat.is_run_end_encoded(t):
        return plain_type(t)
    if pat.is_dictionary(t):
        values = stored_type(t.value_type)
        plain = pat.is_string(values) or pat.is_binary(values)
        return pa.dictionary(t.index_type, values, t.ordered) if plain else values
    if pat.is_timestamp(t) and t.unit == "ns":
        return pa.timestamp("us", t.tz)
    if pat.is_time64(t):
        return pa.time64("us")
    if pat.is_date64(t):
        return pa.date32()
    if pat.is_fixed_size_list(t):
        return pa.list_(t.value_field.with_type(stored_type(t.value_type)), t.list_size)
    if is_list(t):
        return pa.list_(t.value_field.with_type(stored_type(t.value_type)))
    if pat.is_struct(t):
        return pa.struct([f.with_type(stored_type(f.type)) for f in t])
    if pat.is_map(t):
        return pa.map_(stored_type(t.key_type), stored_type(t.item_type))
    return t


def _as_declared(declared: pa.DataType, model: pa.DataType) -> pa.DataType:
    """Settle the class of what Spark gives for a type that it has no word for."""
    declared, plain = unwrap(declared), unwrap(model)
    if pat.is_unsigned_integer(declared) and (
        pat.is_signed_integer(plain) or (pat.is_decimal(plain) and plain.scale == 0)
    ):
        return pa.uint64()
    if pat.is_timestamp(declared) and pat.is_timestamp(plain):
        # An instant is the same in each zone; Spark gives all of them in UTC.
        instant = plain.tz == "UTC" and declared.tz is not None
        return pa.timestamp("us", declared.tz) if instant else plain
    if is_list(declared) and is_list(plain):
        return pa.list_(_as_declared(declared.value_type, plain.value_type))
    if pat.is_map(declared) and pat.is_map(plain):
        return pa.map_(
            _as_declared(declared.key_type, plain.key_type),
            _as_declared(declared.item_type, plain.item_type),
        )
    if pat.is_struct(declared) and pat.is_struct(plain):
        known = {f.name: f.type for f in declared}
        fields = [(f.name, _as_declared(known.get(f.name, pa.null()), f.type)) for f in plain]
        return pa.struct(fields)
    return model


def _adopted(committed: pa.DataType, model: pa.DataType) -> pa.DataType:
    """Put uint64 in place of decimals without a fraction where unsigned is committed."""
    committed, plain = unwrap(committed), unwrap(model)
    if pat.is_unsigned_integer(committed) and pat.is_decimal(plain) and plain.scale == 0:
        return pa.uint64()
    if is_list(committed) and is_list(plain):
        return pa.list_(_adopted(committed.value_type, plain.value_type))
    if pat.is_map(committed) and pat.is_map(plain):
        return pa.map_(
            _adopted(committed.key_type, plain.key_type),
            _adopted(committed.item_type, plain.item_type),
        )
    if pat.is_struct(committed) and pat.is_struct(plain):
        known = {f.name: f.type for f in committed}
        return pa.struct(
            [f.with_type(_adopted(known.get(f.name, pa.null()), f.type)) for f in plain]
        )
    return model


def _fix(name: str, model: pa.DataType, declared: pa.DataType) -> str:
    """Say how the model comes to the declared class, or the declaration to the model's."""
    if class_problem(declared) is not None or class_problem(model) is not None:
        return "declare a data_type with a class"
    cast = cast_to(name, model, declared)
    # The declaration stands already: what is missing is the instant.
    zone = cast.startswith("data_type")
    return f"cast({readable_identifier(name)} as timestamp)" if zone else cast


def _undeclared(field: pa.Field, candidates: set[str]) -> Finding:
    """A column that a contract does not name."""
    near = nearest_name(field.name, candidates)
    reason = "missing in contract" + (f"; did you mean {near}?" if near else "")
    fix = f"add it to the model's YAML with its data_type, or remove {field.name} from the model"
    if near:
        fix = f"{readable_identifier(field.name)} as {readable_identifier(near)}"
    return Finding(field.name, None, field.type, reason, fix, "contract")


def _absent(name: str, declared: pa.DataType, candidates: set[str]) -> Finding:
    """A declared column that the model lacks."""
    near = nearest_name(name, candidates)
    reason = "missing in definition, though declared in YAML"
    fix = f"select it, or remove {name} from the model's YAML"
    if near:
        reason += f"; did you mean {near}?"
        fix = f"{readable_identifier(near)} as {readable_identifier(name)}"
    return Finding(name, declared, None, reason, fix, "declared")
