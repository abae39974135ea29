"""Schemas of datasets: the normal form, and all checks of a schema.

The committed schema is the truth (docs/design/writing.md, The gate): data and index files may have
any type of a column's class. The checks return all findings at once; the caller decides whether to
refuse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.errors import TypeClassError
from ktk_engine.messages import Message, Remedy
from ktk_engine.types.did_you_mean import did_you_mean_clause, nearest_name
from ktk_engine.types.field_id import parts_of
from ktk_engine.types.finding import Finding, raise_findings
from ktk_engine.types.identifier import Identifier, first_pair_alike
from ktk_engine.types.mismatch import merge, mismatch
from ktk_engine.types.quote import readable_identifier
from ktk_engine.types.suggestion import (
    cast_of,
    cast_to,
    let_column_come,
    let_column_go,
    null_column,
    renamed,
)
from ktk_engine.types.type_class import (
    MAX_NESTING,
    ColumnRole,
    class_name,
    class_problem,
    is_list,
    is_too_deep,
    normalize,
    role_problem,
    storage_problem,
    type_without_class,
    unwrap,
)


def dataset_schema(schema: pa.Schema, partition_keys: Sequence[str]) -> pa.Schema:
    """Give the normal form of a dataset's schema.

    Columns are containers of their classes, nullable, without metadata: first the partition keys in
    their order, then the others by code points (Kartothek, `normalize_column_order`). Raises a
    `TypeClassError` if a column occurs twice, has no class, or a partition key is missing.
    """
    findings = [*find_duplicates(schema), *_without_class(schema)]
    if findings:
        raise_findings(findings, "a dataset's schema", len(schema.names))
    missing = [key for key in partition_keys if key not in schema.names]
    if missing:
        hint = did_you_mean_clause(missing[0], schema.names)
        raise TypeClassError(f"Partition column `{missing[0]}` is not in the schema{hint}")
    rest = sorted(set(schema.names) - set(partition_keys))
    order = [*dict.fromkeys(partition_keys), *rest]
    return pa.schema([pa.field(name, normalize(schema.field(name).type)) for name in order])


def compare_schemas(committed: pa.Schema, model: pa.Schema, dataset: str = "") -> list[Finding]:
    """Find columns of another class, missing columns and unknown ones.

    Order, nullability and metadata do not matter (decision 16: by name). A column with only nulls
    is compatible with its absence, as in Kartothek. Findings come in the order of the committed
    schema and then of the model's. `dataset` is the id of a cube's dataset, which fixes name.
    """
    findings = find_duplicates(model)
    given = {field.name: field.type for field in model}
    known = {field.name: field.type for field in committed}
    for name, committed_type in known.items():
        if name in given:
            found = mismatch(committed_type, given[name], name)
            if found is not None:
                findings.append(
                    _class_finding(name, committed_type, given[name], found.path, found.reason)
                )
        elif not pat.is_null(unwrap(committed_type)):
            findings.append(_missing_finding(name, committed_type, dataset))
    for name, model_type in given.items():
        if name not in known and not pat.is_null(unwrap(model_type)):
            rest = set(known) - set(given)
            findings.append(_unknown_finding(name, model_type, rest, dataset))
    return findings


def check_storable(schema: pa.Schema) -> list[Finding]:
    """Find columns that occur twice, or whose type cannot be stored or read again."""
    if deep := check_nesting(schema):
        return deep  # no other check may recurse into them
    findings = find_duplicates(schema)
    for field in schema:
        problem = storage_problem(field.type)
        if problem is not None:
            fix = f"cast {readable_identifier(field.name)} to a type with a class"
            if (found := type_without_class(field.type, field.name)) is not None:
                path, own = found
                name = readable_identifier(field.name)
                fix = own.fix.format(name) if path == field.name else own.fix.format(path)
            findings.append(Finding(field.name, None, field.type, problem, fix, "storable"))
    return findings


def check_nesting(schema: pa.Schema) -> list[Finding]:
    """Find columns nested too deeply for readers; without their types, which would fill pages."""
    reason = (
        f"it has more than {MAX_NESTING} levels of nesting, where a map counts as two; such files "
        "cannot be read"
    )
    return [
        Finding(name, None, None, reason, f"flatten {name}, or store it as JSON text", "storable")
        for name, t in zip(schema.names, schema.types, strict=True)
        if is_too_deep(t)
    ]


def check_shared(
    dataset: str,
    schema: pa.Schema,
    others: Mapping[str, pa.Schema],
    shared: Collection[str],
    owner_fix: Callable[[str, str], Remedy] | None = None,
) -> list[Finding]:
    """Find shared columns of another class, and payload columns that another dataset owns.

    Shared columns are dimension and partition columns (Kartothek, `validate_shared_columns`). The
    dataset itself is skipped in `others`. `owner_fix` gives the fix for an owner and a column.
    """
    findings: list[Finding] = []
    rest = {
        name: {Identifier(item.name): item.type for item in other}
        for name, other in sorted(others.items())
        if name != dataset
    }
    for field in schema:
        named = Identifier(field.name)
        owners = {name: types[named] for name, types in rest.items() if named in types}
        if field.name not in shared:
            findings.extend(_owner_findings(dataset, field, owners, owner_fix))
        else:
            findings.extend(_shared_findings(field, owners))
    return findings


def check_roles(
    schema: pa.Schema,
    dimensions: Iterable[str],
    partitions: Iterable[str],
    indexes: Iterable[str],
) -> list[Finding]:
    """Find columns whose class is unfit for their role; missing ones are skipped."""
    findings: list[Finding] = []
    roles: tuple[tuple[ColumnRole, Iterable[str]], ...] = (
        ("partition", partitions),
        ("dimension", dimensions),
        ("index", indexes),
    )
    for role, names in roles:
        for name in names:
            if schema.get_field_index(name) < 0 or name in {found.column for found in findings}:
                continue
            t = schema.field(name).type
            problem = role_problem(t, role)
            if problem is not None:
                fix = Message(cast_of(name, pa.string()), ", or make it payload")
                findings.append(Finding(name, None, t, problem, fix, "role"))
    return findings


def merge_schemas(committed: pa.Schema, model: pa.Schema) -> pa.Schema:
    """Give the schema after a model was written to a dataset, in normal form.

    Null takes the other's class (decision 11), decimals the wider precision (decision 8), and
    columns with only nulls are kept (decision 11). New columns of the model are added, by code
    points. Raises a `TypeClassError` if a column has another class.
    """
    given = {field.name: field.type for field in model}
    findings = [f for f in compare_schemas(committed, model) if f.rule in ("class", "duplicate")]
    if findings:
        raise_findings(findings, "a dataset's schema", len(committed.names))
    fields = [pa.field(f.name, merge(f.type, given.get(f.name, pa.null()))) for f in committed]
    new = sorted(given.keys() - set(committed.names))
    return pa.schema([*fields, *(pa.field(name, normalize(given[name])) for name in new)])


def replace_null_types(model: pa.Schema, committed: pa.Schema) -> pa.Schema:
    """Replace null types by the committed ones, at any depth (decision 11)."""
    return pa.schema([f.with_type(_filled(f.type, committed.field(f.name).type)) for f in model])


def _filled(t: pa.DataType, known: pa.DataType) -> pa.DataType:
    """A type whose null parts have known types."""
    if pat.is_null(t):
        return known
    if pat.is_list(t) and is_list(known):
        return pa.list_(t.value_field.with_type(_filled(t.value_type, known.value_type)))
    if pat.is_map(t) and pat.is_map(known):
        item = t.item_field.with_type(_filled(t.item_type, known.item_type))
        return pa.map_(t.key_field, item)
    if pat.is_struct(t) and pat.is_struct(known):
        types = {f.name: f.type for f in known}
        return pa.struct([f.with_type(_filled(f.type, types.get(f.name, f.type))) for f in t])
    return t


def fields_alike(t: pa.DataType, path: str) -> tuple[str, str] | None:
    """The paths of two fields of a struct that differ only by case, at any depth."""
    t = unwrap(t)
    if pat.is_struct(t) and (found := first_pair_alike([f.name for f in t])):
        return f"{path}.{found[0]}", f"{path}.{found[1]}"
    within = (fields_alike(field.type, f"{path}.{name}") for name, field in parts_of(t))
    return next(filter(None, within), None)


def find_duplicates(schema: pa.Schema) -> list[Finding]:
    """Find columns that occur more than once."""
    return [
        Finding(
            name,
            None,
            schema.field(schema.get_all_field_indices(name)[0]).type,
            f"the column occurs {count} times",
            "give each column a name of its own",
            "duplicate",
        )
        for name, count in Counter(schema.names).items()
        if count > 1
    ]


def _without_class(schema: pa.Schema) -> list[Finding]:
    """Find columns without a class."""
    fix = "cast it to a type with a class"
    return [
        Finding(field.name, None, field.type, problem, fix, "storable")
        for field in schema
        if (problem := class_problem(field.type)) is not None
    ]


def _class_finding(
    name: str, committed: pa.DataType, model: pa.DataType, path: str, reason: str
) -> Finding:
    """A column of another class."""
    where = f"{path}: " if path != name else ""
    usable = class_problem(model) is None and class_problem(committed) is None
    fix = cast_to(name, model, committed) if usable else "cast it to a type with a class"
    return Finding(name, committed, model, where + reason, fix, "class")


def _missing_finding(name: str, committed: pa.DataType, dataset: str) -> Finding:
    """A column that is missing in the rows."""
    fix: list[object] = [Remedy("add_column")]
    if class_problem(committed) is None:
        fix += [", or ", null_column(name, committed)]
    fix += [", or ", let_column_go(name, dataset)]
    return Finding(name, committed, None, Remedy("missing"), Message(*fix), "missing")


def _unknown_finding(
    name: str, model: pa.DataType, candidates: Collection[str], dataset: str
) -> Finding:
    """A column that is unknown to the dataset."""
    problem = class_problem(model)
    if problem is not None:
        return Finding(name, None, model, problem, "cast it to a type with a class", "storable")
    near = nearest_name(name, candidates)
    if near is not None:
        reason = f"unknown to the dataset; did you mean {near}?"
        fix = Message(renamed(name, near))
    else:
        reason = "unknown to the dataset"
        fix = Message("remove it")
    fix = Message(fix, ", or ", let_column_come(name, model, dataset))
    return Finding(name, None, model, reason, fix, "unknown")


def _owner_findings(
    dataset: str,
    field: pa.Field,
    owners: Mapping[str, pa.DataType],
    owner_fix: Callable[[str, str], Remedy] | None,
) -> list[Finding]:
    """A payload column that other datasets own."""
    return [
        Finding(
            field.name,
            t,
            field.type,
            f"payload column {field.name} is already owned by dataset {owner}",
            owner_fix(owner, field.name)
            if owner_fix
            else f"rename it in {dataset}, or remove it from {owner} or {dataset}",
            "owner",
        )
        for owner, t in owners.items()
    ]


def _shared_findings(field: pa.Field, owners: Mapping[str, pa.DataType]) -> list[Finding]:
    """A shared column of another class, once per class of the others."""
    by_class: dict[str, list[str]] = {}
    for owner, t in owners.items():
        by_class.setdefault(class_name(t), []).append(owner)
    findings: list[Finding] = []
    for names in by_class.values():
        names.sort()
        other = owners[names[0]]
        found = mismatch(other, field.type, field.name)
        if found is not None:
            who = (
                f"dataset {names[0]} has"
                if len(names) == 1
                else f"datasets {', '.join(names)} have"
            )
            reason = f"{who} another class: {found.reason}"
            same = _class_finding(field.name, other, field.type, found.path, reason)
            findings.append(
                Finding(same.column, other, field.type, same.reason, same.fix, "shared")
            )
    return findings
