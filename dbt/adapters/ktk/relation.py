"""Relations: names of two parts, quoted only if necessary, after an address if stored elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.connection import AdapterRequiredConfig
from dbt.adapters.contracts.relation import (
    ComponentName,
    HasQuoting,
    RelationConfig,
    RelationType,
)
from dbt.adapters.events.types import AdapterEventWarning
from dbt.adapters.spark import SparkRelation
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config.source_config import Project, project_of, source_address
from dbt.adapters.ktk.session.functions import Function, Functions, function_name
from ktk_engine.catalog.source_address import Address, FileAddress, StoreAddress, parse_address
from ktk_engine.types.identifier import Identifier
from ktk_engine.types.quote import quote_identifier, readable_identifier


@dataclass(frozen=True)
class Databases:
    """The databases that a project names; names have two parts here."""

    said: set[str] = field(default_factory=set)
    # schema, name and address of a source or a node -> the database that it names
    named: dict[tuple[Identifier, Identifier, str], str] = field(default_factory=dict)

    def warn_of(self, database: str) -> None:
        """Log that a database does nothing, once per run."""
        if database not in self.said:
            self.said.add(database)
            message = (
                f"`database: {database}` does nothing: names have two parts here, schema and name. "
                "A source in another store has `ktk_store`. dbt prints this once per run."
            )
            warn_or_error(AdapterEventWarning(name="ktk", base_msg=message))

    def note(self, node: RelationConfig, address: str) -> None:
        """Refuse a name that only a database tells from another one."""
        config: Any = node.config or {}
        database = node.database or config.get("database")
        if database and node.schema and node.identifier:
            key = (Identifier(node.schema), Identifier(node.identifier), address)
            other = self.named.setdefault(key, str(database))
            if other != database:
                raise DbtConfigError(
                    f"{other}.{node.schema}.{node.identifier} and "
                    f"{database}.{node.schema}.{node.identifier} are one name here: names have two "
                    "parts, schema and name. Give one of them another schema, or a source in "
                    "another store `ktk_store`."
                )


@dataclass(frozen=True, eq=False, repr=False)
class KtkRelation(SparkRelation):
    """A relation of a store."""

    # where the paths of sources start; None before there is an adapter
    project: ClassVar[Project | None] = None
    # those of the project that the run has met; None likewise
    functions: ClassVar[Functions | None] = None
    # the first parts of names that the run has met; None likewise
    databases: ClassVar[Databases | None] = None
    # where its rows are stored if not in the profile's store; see `source_address`
    address: str = ""
    version: str = ""  # clause of Spark's SQL for an earlier version; empty for the newest

    def __post_init__(self) -> None:
        """Drop the first of three parts, with a line."""
        if self.database and self.database != self.schema:
            if self.databases is not None:
                self.databases.warn_of(self.database)
            object.__setattr__(self, "path", replace(self.path, database=None))

    @classmethod
    def of_project(cls, config: AdapterRequiredConfig, functions: Functions) -> type[Self]:
        """Give the relation class of one project, because dbt's `source()` passes no project."""
        project = project_of(config)
        shared = {"project": project, "functions": functions, "databases": Databases()}
        return type(cls.__name__, (cls,), shared)

    @classmethod
    def create_from(
        cls, quoting: HasQuoting, relation_config: RelationConfig, **kwargs: Any
    ) -> Self:
        """Make the relation of a node or source; a `DbtConfigError` for a wrong source."""
        found: Address | None = None
        if kwargs.get("type") == RelationType.Function:
            cls._note(relation_config)
        elif getattr(relation_config, "resource_type", "") == "source":
            found = source_address(relation_config, cls.project or project_of(quoting))
        elif not hasattr(relation_config, "unique_id"):  # `--state` describes the node
            found = (cls.project or project_of(quoting)).deferred(relation_config)
        if found is not None:
            kwargs["address"] = str(found)
        if cls.databases is not None:
            cls.databases.note(relation_config, kwargs.get("address", ""))
        return super().create_from(quoting, relation_config, **kwargs)

    @classmethod
    def _note(cls, node: Any) -> None:
        """Register the named function; while dbt parses, the node is the one that names it."""
        if cls.functions is not None and hasattr(node, "returns"):
            cls.functions.note(Function(node.to_dict(omit_none=True)))

    @property
    def databases_in_yaml(self) -> list[str | None]:
        """The databases under which dbt knows it: none, and the one that its YAML names."""
        key = (Identifier(str(self.schema)), Identifier(str(self.identifier)), self.address)
        named = self.databases.named.get(key) if self.databases is not None else None
        return [None, named] if named else [None]

    @property
    def outside(self) -> Address | None:
        """The address of its rows, if it is not the profile's store."""
        return parse_address(self.address)

    @property
    def files(self) -> FileAddress | None:
        """Its plain files, if it is not in a store."""
        outside = self.outside
        return outside if isinstance(outside, FileAddress) else None

    @property
    def place(self) -> tuple[str, str]:
        """Its schema, or the address of its store, and its name there."""
        outside = self.outside
        if isinstance(outside, StoreAddress):
            return outside.store, outside.relation
        return str(self.schema), str(self.identifier)

    def render(self) -> str:
        """Write it in SQL: a function's name has one part, and limits go around a version."""
        if self.type == RelationType.Function:
            return function_name(str(self.schema), str(self.identifier))
        return f"{super().render()} {self.version}".rstrip()

    def _render_iterator(self) -> Iterator[tuple[ComponentName | None, str | None]]:
        """Quote names that Spark's parser does not accept as they are, such as `a-b`."""
        if self.address and self.identifier and self.include_policy.identifier:
            yield ComponentName.Database, quote_identifier(self.address)
        for component, name in super()._render_iterator():
            is_quoted = component and self.quote_policy.get_part(component)
            yield component, readable_identifier(name) if name and not is_quoted else name

    def quoted(self, identifier: str) -> str:
        """Write a part that the project's `quoting` asks for."""
        return quote_identifier(identifier)


def as_ktk(relation: BaseRelation) -> KtkRelation:
    """Narrow a relation of dbt to ours: this adapter makes no others."""
    if isinstance(relation, KtkRelation):
        return relation
    return KtkRelation.create(schema=relation.schema, identifier=relation.identifier)
