"""Changes of a dataset's columns, and checks that they are possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.errors import ConfigurationError
from ktk_engine.gate.constraint import CONSTRAINTS, Constraint
from ktk_engine.messages import Remedy
from ktk_engine.snapshot.snapshot import Snapshot
from ktk_engine.types.arrow_name import sql_name
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import Identifier, find_name
from ktk_engine.types.mismatch import mismatch
from ktk_engine.types.type_class import class_name, normalize, unwrap


@dataclass(frozen=True)
class ColumnChanges:
    """Changes of a dataset's columns; all names are the present ones, except for new names."""

    # Column -> type; null in all present rows.
    add: Mapping[str, pa.DataType] = field(default_factory=dict)
    drop: tuple[str, ...] = ()  # columns and their values
    rename: Mapping[str, str] = field(default_factory=dict)  # column -> new name
    # Column -> the type whose values it is to hold.
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    # Column, by its new name -> comment.
    comments: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        said = [
            *(f"add column {name}" for name in self.add),
            *(f"drop column {name}" for name in self.drop),
            *(f"rename column {old} to {new}" for old, new in self.rename.items()),
            *(f"alter column {name} type {sql_name(t)}" for name, t in self.types.items()),
        ]
        return ", ".join(said)

    def of(self, base: Snapshot) -> ColumnChanges:
        """Spell the names as the dataset does; SQL ignores letter case.

        Raises a `ConfigurationError` if a column does not exist or cannot change like this.
        """
        found = replace(
            self,
            drop=tuple(column_of(base, name) for name in dict.fromkeys(self.drop)),
            rename={column_of(base, old): new for old, new in self.rename.items()},
            types={column_of(base, name): t for name, t in self.types.items()},
        )
        _check_free(base, {*found.drop, *found.rename})
        _check_new_names(base, found)
        _check_types(base, found.types)
        return found

    def schema(self, columns: pa.Schema) -> pa.Schema:
        """Apply the changes to a schema of all columns; new columns come last."""
        fields = [
            pa.field(self.rename.get(item.name, item.name), self._type(item))
            for item in columns
            if item.name not in self.drop
        ]
        return pa.schema([*fields, *(pa.field(name, t) for name, t in self.add.items())])

    def _type(self, item: pa.Field) -> pa.DataType:
        """Only a column without values takes another type; others hold all values of the class."""
        wanted = self.types.get(item.name)
        return item.type if wanted is None or not pat.is_null(unwrap(item.type)) else wanted

    def renamed(self, names: Iterable[str]) -> tuple[str, ...]:
        """Give names of columns after the changes, without dropped ones."""
        return tuple(self.rename.get(name, name) for name in names if name not in self.drop)


def column_of(base: Snapshot, name: str) -> str:
    """Find a column by its name, ignoring letter case.

    Raises a `ConfigurationError` with the nearest name if there is none.
    """
    names = base.schema.names
    if (found := find_name(name, names)) is not None:
        return found
    raise ConfigurationError(
        f"Dataset {base.uuid} has no column `{name}`.{did_you_mean(name, names)} It has: "
        f"{', '.join(names)}. Nothing was written."
    )


def _check_free(base: Snapshot, names: Iterable[str]) -> None:
    """Refuse to drop or rename columns of partitions, cells or constraints."""
    constraints = [Constraint.of(item) for item in base.properties.get(CONSTRAINTS, ())]
    for name in sorted(names):
        reason = ""
        if name in base.partition_keys:
            reason = "is a partition column: the path of each file holds its value"
        elif name in base.dimension_columns:
            reason = "is a dimension column: it addresses the cells of the cube in every dataset"
        if reason:
            raise ConfigurationError(
                f"Dataset {base.uuid}: `{name}` {reason}, so it can neither be dropped nor "
                "renamed. Nothing was written. ",
                Remedy("other_layout"),
            )
        for constraint in constraints:
            # Only Spark knows which columns a check names.
            if name in constraint.columns or constraint.kind == "check":
                raise ConfigurationError(
                    f"Dataset {base.uuid}: `{name}` can neither be dropped nor renamed while "
                    f"there is the {constraint}. Nothing was written. ",
                    Remedy("drop_constraint"),
                )


def _check_new_names(base: Snapshot, changes: ColumnChanges) -> None:
    """Refuse names that are taken, in any letter case."""
    kept = [n for n in base.schema.names if n not in changes.drop and n not in changes.rename]
    taken = {Identifier(name): name for name in kept}
    for name in (*changes.rename.values(), *changes.add):
        if Identifier(name) in taken:
            raise ConfigurationError(
                f"Dataset {base.uuid} has a column `{taken[Identifier(name)]}` already. Nothing "
                "was written."
            )
        taken[Identifier(name)] = name


def _check_types(base: Snapshot, types: Mapping[str, pa.DataType]) -> None:
    """Refuse types of another class; another type of the same class changes nothing."""
    for name, wanted in types.items():
        present = base.schema.field(name).type
        found = mismatch(present, wanted, name)
        if found is not None:
            raise ConfigurationError(
                f"Dataset {base.uuid}: `{name}` is of class {class_name(present)} and cannot "
                f"become {class_name(wanted)}: {found.reason}. Nothing was written. Add a "
                "column of that type and fill it, or ",
                Remedy("cast_and_rebuild", column=name),
            )


def widened(base: Snapshot, types: Mapping[str, pa.DataType]) -> dict[str, pa.DataType]:
    """The columns for which another type matters: those without any value so far."""
    return {
        name: normalize(t)
        for name, t in types.items()
        if pat.is_null(unwrap(base.schema.field(name).type)) and not pat.is_null(unwrap(t))
    }
