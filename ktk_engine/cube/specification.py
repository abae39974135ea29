"""The specification of a cube, and its validation.

See docs/design/kartothek-format.md, Specification of a cube.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ktk_engine.cube.dataset_uuid import SEPARATOR, dataset_uuid
from ktk_engine.cube.user_metadata import cube_metadata
from ktk_engine.errors import InvalidKeyError, SpecificationError
from ktk_engine.store.key import check_new_uuid, is_uuid
from ktk_engine.types.identifier import find_names

_PART_OF_CELLS = "Partition columns address cells as well: leave them out of the dimension columns."
_INDEXED = "Dimension columns have an index already: leave them out of the indexes."
_LAID_OUT = "Each value of a partition column has files of its own: leave it out of the indexes."


@dataclass(frozen=True)
class CubeSpecification:
    """What a cube is, independent of its rows."""

    prefix: str  # the cube's name; its datasets are `<prefix>++<dataset id>`
    dimension_columns: tuple[str, ...]  # the address of a cell, in order
    partition_columns: tuple[str, ...] = ()  # how the seed dataset is laid out, in order
    seed_dataset: str = "seed"  # the dataset that says which cells exist
    # further indexed columns, in every dataset that has them
    index_columns: frozenset[str] = frozenset()
    # dimension columns of the seed dataset without an index
    suppress_index_on: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        for name in ("dimension_columns", "partition_columns"):
            set_field(self, name, _ordered(name, getattr(self, name)))
        for name in ("index_columns", "suppress_index_on"):
            set_field(self, name, frozenset(_names(name, getattr(self, name))))
        for name in ("prefix", "seed_dataset"):
            check_cube_name(name, getattr(self, name))
        if not self.dimension_columns:
            raise SpecificationError(f"Cube {self.prefix}: dimension_columns must not be empty.")
        self._check_disjoint("partition_columns", "dimension_columns", _PART_OF_CELLS)
        self._check_disjoint("index_columns", "dimension_columns", _INDEXED)
        self._check_disjoint("index_columns", "partition_columns", _LAID_OUT)
        extra = self.suppress_index_on - set(self.dimension_columns)
        if extra:
            raise SpecificationError(
                f"Cube {self.prefix}: suppress_index_on must be a subset of dimension_columns, "
                f"but it also has {_listed(extra)}."
            )

    def _check_disjoint(self, left: str, right: str, fix: str) -> None:
        shared = set(getattr(self, left)) & set(getattr(self, right))
        if shared:
            raise SpecificationError(
                f"Cube {self.prefix}: {left} and {right} must not share columns, but share "
                f"{_listed(shared)}. {fix}"
            )

    @property
    def seed_uuid(self) -> str:
        """The seed dataset's uuid."""
        return self.uuid(self.seed_dataset)

    def uuid(self, dataset_id: str) -> str:
        """Uuid of a dataset; raises a `SpecificationError` for characters that no uuid may have."""
        check_cube_name("dataset", dataset_id)
        return dataset_uuid(self.prefix, dataset_id)

    @property
    def shared_columns(self) -> frozenset[str]:
        """Dimension and partition columns, which several datasets may have."""
        return frozenset(self.dimension_columns) | frozenset(self.partition_columns)

    def spelled(self, columns: Collection[str]) -> CubeSpecification:
        """The same with columns spelled as these, which differ only by case."""
        return replace(
            self,
            dimension_columns=find_names(self.dimension_columns, columns),
            partition_columns=find_names(self.partition_columns, columns),
            index_columns=frozenset(find_names(self.index_columns, columns)),
            suppress_index_on=frozenset(find_names(self.suppress_index_on, columns)),
        )

    def metadata(self, dataset_id: str) -> dict[str, Any]:
        """The user metadata that Kartothek needs in a dataset of this cube."""
        return cube_metadata(
            is_seed=dataset_id == self.seed_dataset,
            dimension_columns=self.dimension_columns,
            partition_columns=self.partition_columns,
            suppress_index_on=self.suppress_index_on,
        )


def check_cube_name(what: str, name: str) -> None:
    """Refuse a cube's prefix or a dataset id that cannot be part of a uuid, and suggest another."""
    if not isinstance(name, str):
        raise SpecificationError(f"{what} must be text, but is {name!r}.")
    try:
        check_new_uuid(name)
    except InvalidKeyError as error:
        if is_uuid(name):
            raise SpecificationError(f"{what}: {error}.") from error
        fitting = "".join(c if c.isascii() and (c.isalnum() or c in "+-_") else "_" for c in name)
        hint = f" Use for instance {fitting!r}." if name else ""
        raise SpecificationError(
            f"{what} {name!r} may only hold the characters A-Z a-z 0-9 + - _ .{hint}"
        ) from error
    if SEPARATOR in name:
        raise SpecificationError(
            f"{what} {name!r} must not hold {SEPARATOR!r}, which separates cube and dataset."
        )


def check_together(cube: str, dataset: str) -> None:
    """Refuse names of a cube and its dataset that a uuid would not keep apart.

    A `+` at their border does that: `a+` and `b` would be the same as `a` and `+b`.
    """
    for what, name, sign in (("cube", cube, cube[-1:]), ("dataset", dataset, dataset[:1])):
        if sign == "+":
            where = "end" if what == "cube" else "begin"
            raise SpecificationError(
                f"The name of a {what} must not {where} with '+', but is {name!r}: "
                f"{SEPARATOR!r} separates cube and dataset. Use for instance {name.strip('+')!r}."
            )


def _names(field: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Iterable):
        raise SpecificationError(f"{field} must be column names, but is {value!r}.")
    names = tuple(value)
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise SpecificationError(f"{field} must be column names, but holds {wrong[0]!r}.")
    return names


def _ordered(field: str, value: object) -> tuple[str, ...]:
    if isinstance(value, set | frozenset | dict):
        raise SpecificationError(
            f"{field} needs an order, but is a {type(value).__name__}: give a list."
        )
    names = _names(field, value)
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise SpecificationError(f"{field} names columns twice: {_listed(repeated)}.")
    return names


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
