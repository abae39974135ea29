"""Checks that the datasets of a cube fit together.

See docs/design/kartothek-format.md, Consistency of a cube.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ktk_engine.cube.discovery import CubeDataset, visible_columns
from ktk_engine.cube.specification import CubeSpecification
from ktk_engine.cube.user_metadata import DIMENSION_COLUMNS, cube_value
from ktk_engine.errors import ConsistencyError
from ktk_engine.messages import Message, Remedy, joined
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.type_class import class_name


def check_cube(
    prefix: str, datasets: Mapping[str, CubeDataset], specification: CubeSpecification | None
) -> None:
    """Check all datasets of a cube against its specification and each other.

    Without a seed dataset the specification is None, and only what the datasets say about each
    other is checked. Raises a `ConsistencyError` with a line per violation.
    """
    problems: list[str] = []
    shared = _shared_columns(datasets, specification)
    problems += _payload_owned_twice(datasets, shared)
    problems += _shared_column_classes(datasets, shared)
    if specification is not None:
        for name, dataset in datasets.items():
            problems += layout_problems(name, dataset, specification)
    _raise(prefix, problems)


def check_readable(
    prefix: str, datasets: Mapping[str, CubeDataset], specification: CubeSpecification
) -> None:
    """Check what queries of a cube rely on, for datasets that none of our commits has checked.

    Raises a `ConsistencyError` with a line per violation; a missing index is none.
    """
    shared = specification.shared_columns
    problems = [*_payload_owned_twice(datasets, shared), *_shared_column_classes(datasets, shared)]
    for name, dataset in datasets.items():
        problems += _column_problems(name, dataset, specification)
    _raise(prefix, problems)


def _raise(prefix: str, problems: Sequence[str]) -> None:
    if problems:
        raise ConsistencyError(
            f"The datasets of cube {prefix} do not fit together:\n",
            joined("\n", [Message("- ", problem) for problem in problems]),
        )


def _shared_columns(
    datasets: Mapping[str, CubeDataset], specification: CubeSpecification | None
) -> frozenset[str]:
    if specification is not None:
        return specification.shared_columns
    # Without a seed dataset the metadata of the enrichments says what is not a payload.
    return frozenset(
        column
        for item in datasets.values()
        for column in (*(cube_value(item.metadata, DIMENSION_COLUMNS) or ()), *item.partition_keys)
    )


def _payload_owned_twice(
    datasets: Mapping[str, CubeDataset], shared: frozenset[str]
) -> Iterable[str]:
    owners: dict[str, list[str]] = defaultdict(list)
    for name, dataset in datasets.items():
        for column in visible_columns(dataset):
            if column not in shared:
                owners[column].append(name)
    for column, names in sorted(owners.items()):
        if len(names) > 1:
            yield (
                f"Payload column `{column}` is in several datasets: {', '.join(sorted(names))}. "
                "A payload column belongs to one dataset: rename or drop it in the others."
            )


def _shared_column_classes(
    datasets: Mapping[str, CubeDataset], shared: frozenset[str]
) -> Iterable[str]:
    for column in sorted(shared):
        holders = [
            (name, dataset.schema.field(column).type)
            for name, dataset in sorted(datasets.items())
            if column in dataset.schema.names
        ]
        for name, type_ in holders[1:]:
            first_name, first_type = holders[0]
            difference = mismatch(first_type, type_)
            if difference is not None:
                yield (
                    f"Column `{column}` is {class_name(first_type)} in {first_name}, but "
                    f"{class_name(type_)} in {name}: {difference.reason}."
                )


def layout_problems(
    name: str, dataset: CubeDataset, specification: CubeSpecification
) -> Iterable[str]:
    """Check one dataset's columns, partition columns and indexes; a sentence per violation."""
    yield from _column_problems(name, dataset, specification)
    columns = set(dataset.schema.names)
    indexed = {*dataset.partition_keys, *dataset.with_index}
    wanted = set(specification.index_columns & columns)
    if name == specification.seed_dataset:
        dimensions = set(specification.dimension_columns)
        wanted |= (dimensions - specification.suppress_index_on) & columns
    if missing := wanted - indexed:
        of_seed = missing.issubset(specification.dimension_columns)
        why = (
            "where the dimension columns of a seed dataset have one unless its `suppress_index_on` "
            "names them"
            if of_seed
            else "where the cube has one in each dataset with the column"
        )
        lacking = sorted(missing)
        fix = Remedy(
            "make_index",
            name=specification.prefix,
            words=" ".join(lacking),
            quoted=", ".join(map(repr, lacking)),
        )
        yield Message(f"Dataset {name} has no index on {_listed(missing)}, {why}: ", fix)


def _column_problems(
    name: str, dataset: CubeDataset, specification: CubeSpecification
) -> Iterable[str]:
    columns = set(dataset.schema.names)
    dimensions = set(specification.dimension_columns)
    partitions = set(specification.partition_columns)
    keys = set(dataset.partition_keys)
    if loose := (columns & partitions) - keys:
        yield (
            f"Dataset {name} holds the cube's partition columns {_listed(loose)} as ordinary "
            "columns: add them to its partition_by, or leave them out."
        )
    if name == specification.seed_dataset:
        if missing := partitions - keys:
            yield f"Seed dataset {name} is not partitioned by {_listed(missing)}."
        if missing := dimensions - columns:
            yield f"Seed dataset {name} has no dimension columns {_listed(missing)}."
    elif not columns & dimensions:
        yield (
            f"Dataset {name} has none of the cube's dimension columns "
            f"({', '.join(specification.dimension_columns)}): there is nothing to join on. "
            "Partition columns alone do not count: give it one of these columns, for instance by "
            "a join, or make its key one of the seed dataset's dimension columns."
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))
