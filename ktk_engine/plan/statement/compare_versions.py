"""Compares what a statement reads at two versions: whether its rows can differ.

See docs/design/statements.md, What a statement reads.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

from ktk_engine.conditions.condition import TrueCondition
from ktk_engine.plan.plan import DatasetPlan, Plan
from ktk_engine.plan.statement.named_relations import NamedRelations, Plannable
from ktk_engine.plan.statement.trace import Place, Trace
from ktk_engine.plan.statement.usage import Usage
from ktk_engine.snapshot.snapshot import NULL_FOLDERS
from ktk_engine.types.identifier import Identifier

_MOST_NAMED = 3  # partitions in one cause


def change_that_matters(now: Trace, then: NamedRelations) -> str:
    """Find the first change because of which a statement may have other rows; empty for none.

    Both versions are planned for what the text needs of each relation; a text that is not
    understood needs all of it. Rows are the same if the same columns come from files with the same
    digests, joined and chosen alike. Raises a `KtkError` if a version cannot be read any more.
    """
    places = now.places
    before = {name: place.plannable(then) for name, place in places.items()}
    after = {name: place.plannable(now.relations) for name, place in places.items()}
    for name, place in places.items():
        old, new = (set(map(Identifier, item.schema.names)) for item in (before[name], after[name]))
        if others := sorted(map(str, (old ^ new) & now.words)):
            return f"{place} changed ({'column' if len(others) == 1 else 'columns'} {_few(others)})"
    usages = [
        now.views.usages(now.text, {n: item.schema for n, item in known.items()}, now.dialect)
        for known in (before, after)
    ]
    for name, place in places.items():
        what = _change(place, (before[name], after[name]), *(item.get(name) for item in usages))
        if what:
            return f"{place} changed{_versions(place, then, now.relations)} ({what})"
    return ""


def _change(
    place: Place, known: tuple[Plannable, Plannable], old: Usage | None, new: Usage | None
) -> str:
    """What differs at a place between two versions, in a few words; empty if nothing matters."""
    if (old is None) != (new is None):
        return "its columns"
    plans = []
    for relation, usage in zip(known, (old, new), strict=True):
        names = relation.schema.names if usage is None else usage.columns
        needed = [name for name in relation.schema.names if name in names] or [relation.least]
        condition = TrueCondition() if usage is None else usage.condition
        plans.append((relation.plan(needed, condition), relation.schema))
    (before, old_schema), (after, new_schema) = plans
    retyped = [
        name
        for name in after.columns
        if name in old_schema.names
        and not old_schema.field(name).type.equals(new_schema.field(name).type)
    ]
    if retyped:
        return f"the type of {_few(retyped)}"
    if _shape(before) != _shape(after):
        return "its columns or datasets"
    found = [
        (item.dataset, number)
        for item, number in zip(
            after.datasets, map(_changed_files, before.datasets, after.datasets), strict=True
        )
        if number
    ]
    is_cube = place.relation.kind == "view"
    return ", ".join(f"{name}: {text}" if is_cube else text for name, text in found)


def _shape(plan: Plan) -> Hashable:
    """All of a plan that decides about its rows, without the files."""
    return (
        *(plan.columns, plan.condition, plan.distinct, plan.partition_by),
        *(
            (
                *(item.dataset, item.columns, item.join, item.on, item.condition),
                *(item.cell_columns, item.distinct, item.snapshot.partition_keys),
                bool(item.snapshot.properties.get(NULL_FOLDERS)),
                tuple(str(item.snapshot.schema.field(name).type) for name in item.columns),
            )
            for item in plan.datasets
        ),
    )


def _changed_files(before: DatasetPlan, after: DatasetPlan) -> str:
    """The files that two versions do not have in common, in a few words; empty if they do.

    Where files of several commits share a partition, a later one replaces cells of earlier ones, so
    their order counts. A file without a digest equals none.
    """
    old, new = _by_partition(before), _by_partition(after)
    numbers: dict[str, int] = {}
    for partition in dict.fromkeys((*old, *new)):
        pair = old.get(partition, ()), new.get(partition, ())
        gone, came = (Counter((item.folder, item.digest) for item in items) for items in pair)
        number = max((gone - came).total(), (came - gone).total())
        is_overlaid = any(len({item.commit for item in items}) > 1 for items in pair)
        if not number and is_overlaid and (before.overlaid or after.overlaid):
            number = sum(one.digest != other.digest for one, other in zip(*pair, strict=True))
        if number:
            numbers[partition] = number
    if not numbers:
        return ""
    number, named = sum(numbers.values()), [name for name in numbers if name]
    of = f" of {_few(named)}" if named else ""
    return f"{number:,} {'file' if number == 1 else 'files'}{of}"


class _File(NamedTuple):
    folder: str
    digest: Hashable  # of its bytes
    commit: Hashable


def _by_partition(item: DatasetPlan) -> Mapping[str, Sequence[_File]]:
    """The files of a plan in order, by the partition within which they may replace cells."""
    keys, within = item.snapshot.partition_keys, frozenset(item.cell_columns)
    columns = (item.files[name].to_pylist() for name in ("label", "digest", "commit"))
    found: dict[str, list[_File]] = defaultdict(list)
    for label, digest, commit in zip(*columns, strict=True):
        folder = label.rpartition("/")[0]
        parts = zip(keys, folder.split("/"), strict=False)
        shared = [part for key, part in parts if not within or key in within]
        # What is unknown is like nothing else.
        found["/".join(shared)].append(_File(folder, digest or object(), commit or object()))
    return found


def _versions(place: Place, then: NamedRelations, now: NamedRelations) -> str:
    """The versions of a dataset or of a cube's log, where they differ."""
    old, new = (_version(place, relations) for relations in (then, now))
    return f", version {old} -> {new}" if old != new else ""


def _version(place: Place, relations: NamedRelations) -> int:
    versions = (item.state.dataset(item.uuid).entry for item in place.reads(relations))
    return max((entry.version for entry in versions if entry is not None), default=0)


def _few(names: Sequence[str]) -> str:
    """The first of some names."""
    more = "" if len(names) <= _MOST_NAMED else f" and {len(names) - _MOST_NAMED:,} more"
    return ", ".join(names[:_MOST_NAMED]) + more
