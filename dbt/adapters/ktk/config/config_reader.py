"""Reads keys of a model's configuration, and says precisely what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import KtkError
from ktk_engine.gate.write_request import ON_SCHEMA_CHANGE, OnSchemaChange
from ktk_engine.maintain.compactable import AUTO_COMPACT_FILES
from ktk_engine.publish.publish_datasets import check_formats
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.did_you_mean import did_you_mean
from ktk_engine.types.identifier import Identifier

ROLES = {"cube_seed": "seed", "cube_enrichment": "enrichment"}
WITH_ROLE = frozenset({"seed", "incremental", "snapshot"})
# What a metastore can keep, see `metastore.py`.
IN_METASTORE = ("table", "incremental", "snapshot")
_OPTIONS = ("compression", "row_group_rows")
_COMPRESSIONS = ("zstd", "snappy", "gzip", "lz4", "brotli", "none")


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn an error of the engine in a block into a `DbtConfigError` that begins with a text."""
    try:
        yield
    except KtkError as error:
        raise DbtConfigError(f"{what}: {error.said(DBT)}") from error


@dataclass(frozen=True)
class ConfigReader:
    """The configuration of one model."""

    model: str
    config: Mapping[str, Any]
    columns: Mapping[str, Any] = field(default_factory=dict)  # in YAML, by name
    file: str = ""  # the YAML file; empty if there is none

    def refuse(self, key: str, message: str) -> DbtConfigError:
        """Make the error for a key."""
        return DbtConfigError(f"Model {self.model}: config `{key}` {message}")

    def names(self, key: str) -> tuple[str, ...]:
        """A column name or a list of them."""
        value = self.config.get(key)
        if value is None:
            return ()
        if isinstance(value, str):
            return (value,)
        listed = isinstance(value, Iterable) and not isinstance(value, Mapping)
        if not listed or not all(isinstance(item, str) for item in value):
            raise self.refuse(key, f"must be a list of column names, but is {value!r}.")
        names = tuple(value)
        alike = [Identifier(name) for name in names]
        repeated = sorted({name for name in names if alike.count(Identifier(name)) > 1})
        if repeated:
            raise self.refuse(key, f"names {', '.join(repeated)} twice.")
        return names

    def without_index(self, role: str | None) -> tuple[str, ...]:
        """Dimension columns of a seed dataset without an index: named ones, or all of them."""
        said, named = self.config.get("index_dimensions"), self.names("suppress_index_on")
        if said is None:
            return named
        key = "index_dimensions"
        if role == "enrichment":
            raise self.refuse(
                key,
                "is for the seed dataset: dimension columns of an enrichment have no index unless "
                "indexes names them.",
            )
        if said not in ("always", "never"):
            raise self.refuse(key, f"must be always or never, but is {said!r}.")
        if named:
            raise self.refuse(
                key,
                "decides about the indexes of all dimension columns, and suppress_index_on names "
                "some that have none. Give one of the two.",
            )
        return self.names("dimension_columns") if said == "never" else ()

    def cube_role(self, materialized: str) -> str | None:
        """The role in a cube of a CSV, a snapshot or an incremental model, if it is in one."""
        if materialized not in WITH_ROLE or not self.config.get("cube"):
            return None
        role = self.config.get("cube_role")
        if role not in ROLES.values():
            raise self.refuse("cube_role", f"must be seed or enrichment, but is {role!r}.")
        return str(role)

    def text(self, key: str) -> str:
        """A name."""
        value = self.config.get(key)
        if not isinstance(value, str) or not value:
            raise self.refuse(key, f"must be a name, but is {value!r}.")
        return value

    def count(self, key: str) -> int | None:
        """A whole number above 0; None if not given."""
        value = self.config.get(key)
        if value is None:
            return None
        if isinstance(value, str) and value.isdecimal():  # as Jinja renders a variable
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self.refuse(key, f"must be a whole number above 0, but is {value!r}.")
        return int(value)

    def flag(self, key: str) -> bool:
        """True or false; false if not given."""
        value = self.config.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(key, f"must be true or false, but is {value!r}.")
        return bool(value)

    def auto_compact(self) -> int | None:
        """The number of files in a partition from which to compact; `true` takes the default."""
        value = self.config.get("auto_compact")
        if value is None or isinstance(value, bool):  # 1 would equal True
            return AUTO_COMPACT_FILES if value else None
        if not isinstance(value, int) or value < 2:
            raise self.refuse(
                "auto_compact",
                "must be true, false, or a number above 1: how many small files a partition must "
                f"have to be compacted; but is {value!r}.",
            )
        return value

    def publish(self) -> tuple[str, ...] | None:
        """Formats in which every commit is published: `none` for none, None for no change."""
        value = self.config.get("publish")
        if value is None:
            return None
        if value == "none" or value is False:
            return ()
        with refusing(f"Model {self.model}: config `publish` cannot be"):
            return check_formats(self.names("publish"))

    def contract(self) -> bool:
        """Whether a contract is enforced."""
        value = self.config.get("contract") or {}
        enforced = value.get("enforced") if isinstance(value, Mapping) else value
        return bool(getattr(value, "enforced", enforced))

    def on_schema_change(
        self, materialized: str, role: str | None, unrendered: Mapping[str, Any]
    ) -> OnSchemaChange:
        """What happens to new and missing columns; plain tables follow dbt's own default.

        In a cube that is `fail`, where dbt fills in `ignore` (decision 17).
        """
        if materialized == "snapshot":
            return "append_new_columns"  # as dbt does it, for any configuration
        if role is not None and "on_schema_change" not in unrendered:
            return "fail"
        value = self.config.get("on_schema_change") or "ignore"
        if value not in ON_SCHEMA_CHANGE:
            hint = did_you_mean(str(value), ON_SCHEMA_CHANGE)
            raise self.refuse(
                "on_schema_change",
                f"is {value!r}.{hint} Known: {', '.join(ON_SCHEMA_CHANGE)}.",
            )
        if value == "full_refresh" and self.config.get("full_refresh") is False:
            raise self.refuse(
                "on_schema_change",
                "is 'full_refresh', and `full_refresh: false` says never to do that.",
            )
        return cast(OnSchemaChange, value)

    def options(self) -> dict[str, Any]:
        """Options of the files, as keyword arguments of `WriteRequest`."""
        value = self.config.get("options") or {}
        if not isinstance(value, Mapping):
            raise self.refuse("options", f"must be a mapping, but is {value!r}.")
        for key in self.unknown_options():
            if hint := did_you_mean(key, _OPTIONS):
                raise self.refuse(
                    "options", f"has the unknown key `{key}`.{hint} Known: {', '.join(_OPTIONS)}."
                )
        chosen: dict[str, Any] = {}
        if "compression" in value:
            chosen["compression"] = str(value["compression"]).lower()
            if chosen["compression"] not in _COMPRESSIONS:
                raise self.refuse(
                    "options.compression",
                    f"is {value['compression']!r}. Known: {', '.join(_COMPRESSIONS)}.",
                )
        if "row_group_rows" in value:
            reader = ConfigReader(self.model, value)
            chosen["row_group_rows"] = reader.count("row_group_rows")
        return chosen

    def unknown_options(self) -> list[str]:
        """Options of other formats and engines."""
        value = self.config.get("options")
        return [str(k) for k in value if k not in _OPTIONS] if isinstance(value, Mapping) else []

    def declared(self) -> tuple[dict[str, pa.DataType], dict[str, str]]:
        """Types of columns in YAML, and texts there that are not a type."""
        types, others = {}, {}
        for name, column in self.columns.items():
            text = getattr(column, "data_type", None)
            if text is None and isinstance(column, Mapping):
                text = column.get("data_type")
            if not text:
                continue
            try:
                types[str(name)] = parse_type(str(text))
            except KtkError:
                others[str(name)] = str(text)
        return types, others

    def refuse_types(self, texts: Mapping[str, str]) -> None:
        """Raise a `DbtConfigError` for what is declared as a type and is none."""
        where = f" in {self.file}" if self.file else ""
        for name, text in texts.items():
            with refusing(f"Model {self.model}: column `{name}` has data_type {text!r}{where}"):
                parse_type(text)


def declared_in(patch_path: str | None) -> str:
    """The YAML file of a node, without dbt's name of the project; empty without one."""
    return str(patch_path or "").rpartition("://")[2]
