"""The profile of the adapter: three lines are enough, and a typo is an error."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.dataclass_schema import ValidationError
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.config.config_reader import ROLES
from dbt.adapters.ktk.config.connect_target import (
    CONNECT,
    SESSION,
    ConnectTarget,
    connect_target,
    settings_problem,
)
from dbt.adapters.ktk.config.time_limit import seconds_problem
from ktk_engine.errors import without_secrets
from ktk_engine.spark.session.session import REQUIRED_SETTINGS
from ktk_engine.types.did_you_mean import did_you_mean

# Where the server is, without the token.
_OF_CONNECT = ("host", "port", "use_ssl", "remote")


@dataclass
class KtkCredentials(Credentials):
    """The keys of a target of type `ktk`."""

    schema: str = ""  # default schema: a folder of the store, one Kartothek store
    # unused: Spark's names have two parts
    database: str | None = None  # type: ignore[assignment]
    store: str = "./warehouse"  # root of the warehouse; relative to the project's root
    # root of another warehouse that `--state` describes (`--defer`, `dbt clone`); only read
    defer_store: str | None = None
    # more stores and folders that stored views and cubes may read; below them, plain files too
    trusted_stores: list[str] = field(default_factory=list)
    # Settings of an object store, such as `endpoint` and keys, also for other stores of the same
    # kind that the project names. This and the next may hold keys: they are never shown.
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)
    # Spark settings for the session; the name comes from dbt-spark
    server_side_parameters: dict[str, Any] = field(default_factory=dict, repr=False)
    query_timeout: Any = None  # dbt's own check of types would not name the key
    # what Jinja sees as `target.type`; packages write Spark's SQL for `spark`
    target_type: str = "spark"
    # `session` for a Spark in dbt's process, `connect` for a Spark Connect server; defaults to
    # `connect` if the environment has SPARK_REMOTE. Some macros of dbt-spark read it.
    method: str | None = None
    # Types are checked here: dbt's own check would not name the key.
    host: Any = None
    port: Any = None  # 15002 by default
    token: Any = field(default=None, repr=False)
    use_ssl: Any = None  # always with a token
    remote: Any = field(default=None, repr=False)  # the four keys above, as PySpark writes them

    @classmethod
    def __pre_deserialize__(cls, data: Any) -> Any:
        """Refuse unknown keys, which dbt would keep silently, with a `ValidationError`."""
        data = super().__pre_deserialize__(data)  # type: ignore[no-untyped-call]
        data.setdefault("database", None)
        known = {item.name for item in fields(cls)} | {"type", "threads"}
        known |= set(cls._ALIASES)
        for key in sorted(set(data) - known):
            hint = did_you_mean(key, known)
            allowed = ", ".join(sorted(known - {"database", "method"}))
            raise ValidationError(  # its message alone, so that no error is within an error
                f"The profile has the key `{key}`, which type ktk does not know.{hint} "
                f"Known keys: {allowed}."
            )
        return data

    def __post_init__(self) -> None:
        if not self.schema:
            raise ValidationError("The profile names no `schema` (a folder of the store).")
        named = [(name, getattr(self, name) or "") for name in ("store", "defer_store")]
        for name, address in (*named, *(("trusted_stores", item) for item in self.trusted_stores)):
            if without_secrets(address) != address:
                raise ValidationError(
                    f"The profile's `{name}` holds a user, a key or a query: an address names a "
                    "bucket and a folder. Give keys in `storage_options` (docs/stores.md)."
                )
        if self.database is not None and self.database != self.schema:
            raise ValidationError(
                "The profile names a `database`; Spark's names have two parts. Remove it."
            )
        if not self.target_type:
            raise ValidationError(
                "The profile's `target_type` is empty: it is what Jinja sees as `target.type`, "
                "`spark` unless it is given."
            )
        if problem := seconds_problem(self.query_timeout):
            raise ValidationError(f"The profile's `query_timeout` {problem}")
        self.database = None
        self.server_side_parameters = {
            str(key): _setting(value) for key, value in self.server_side_parameters.items()
        }
        for key, required in REQUIRED_SETTINGS.items():
            given = self.server_side_parameters.get(key, required)
            if given.lower() != required:
                raise ValidationError(
                    f"The profile's server_side_parameters set `{key}` to {given}, but plans rely "
                    f"on {required}: without it, rows would be lost, wrong or moved. Remove it."
                )
        self._find_server()

    def _find_server(self) -> None:
        """Read where Spark runs, and refuse settings that a remote server does not support."""
        target = self.server
        self.method = SESSION if target is None else CONNECT
        if target is None:
            return
        if not any((self.host, self.remote)):  # from the environment
            self.remote = target.url
        if problem := settings_problem(self.server_side_parameters):
            raise ValidationError(problem)
        for name in ("store", "defer_store"):
            address = getattr(self, name) or ""
            is_folder = bool(address) and (
                "://" not in address or address.lower().startswith("file:")
            )
            if is_folder and not target.is_here:
                raise ValidationError(
                    f"The profile's `{name}` is a folder of this machine, which the Spark Connect "
                    f"server {target} does not see. Name an object store (s3://bucket/folder and "
                    "the like, docs/stores.md), or a server on this machine (`host: localhost`)."
                )

    @property
    def server(self) -> ConnectTarget | None:
        """The Spark Connect server; None if Spark runs in dbt's process."""
        keys = ("method", "host", "port", "token", "use_ssl", "remote")
        return connect_target({key: getattr(self, key) for key in keys})

    @property
    def type(self) -> str:
        """Name of the adapter."""
        return "ktk"

    @property
    def unique_field(self) -> str:
        """The identity of a warehouse (dbt hashes it for its statistics)."""
        return self.store

    def connection_info(self, *, with_aliases: bool = False) -> Iterable[tuple[str, Any]]:
        """Keys for `dbt debug` and Jinja's `target`; a server's address without parameters."""
        target = self.server
        for key, value in super().connection_info(with_aliases=with_aliases):
            if key not in _OF_CONNECT:
                yield key, value
            elif target is not None and value is not None:
                yield key, target.shown if key == "remote" else value

    def _connection_keys(self) -> tuple[str, ...]:
        return "store", "schema", "database", "method", *_OF_CONNECT, "target_type"


def show_target_type() -> None:
    """Make `target.type` what the profile's `target_type` says, `spark` by default.

    dbt sets the type to the adapter's name, for which packages write SQL of no particular engine.
    dbt renders the project file before an adapter exists, so this patches dbt's own class, which
    has loaded this package if dbt runs.
    """
    profiles = getattr(sys.modules.get("dbt.config.profile"), "Profile", None)
    of_dbt = getattr(profiles, "to_target_dict", None)
    if profiles is None or of_dbt is None or hasattr(of_dbt, "__wrapped__"):
        return

    @functools.wraps(of_dbt)
    def to_target_dict(profile: Any) -> dict[str, Any]:
        target: dict[str, Any] = of_dbt(profile)
        if isinstance(profile.credentials, KtkCredentials):
            target["type"] = profile.credentials.target_type
            # dbt-spark's target has none, and packages paste it into texts.
            target["database"] = ""
        return target

    profiles.to_target_dict = to_target_dict


def name_undecodable_files() -> None:
    """Make dbt name the file that is not UTF-8, where it ends in a traceback without a name.

    dbt reads the project's files before it asks an adapter for anything, so this patches it, too.
    """
    reader = sys.modules.get("dbt.parser.read_files")
    for name in ("load_file_contents", "load_seed_source_file"):  # since 1.12, both read files
        of_dbt = getattr(reader, name, None)
        if of_dbt is not None and not hasattr(of_dbt, "of_ktk"):
            setattr(reader, name, _naming_its_file(of_dbt))


def call_constraints_enforced() -> None:
    """Keep dbt from saying that it ignores the constraints of datasets of cubes.

    dbt has a list of materializations that enforce them, to which an adapter cannot add; so this
    patches it, too.
    """
    node: Any = getattr(sys.modules.get("dbt.contracts.graph.nodes"), "ModelNode", None)
    of_dbt = getattr(node, "materialization_enforces_constraints", None)
    if of_dbt is not None and of_dbt.fget.__module__ != __name__:
        node.materialization_enforces_constraints = property(
            lambda model: of_dbt.fget(model) or model.config.materialized in ROLES
        )


def _naming_its_file(of_dbt: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a reader of a file whose first argument is a path, or has one."""

    @functools.wraps(of_dbt)
    def read(file: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return of_dbt(file, *args, **kwargs)
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            raise DbtRuntimeError(
                f"{getattr(file, 'absolute_path', file)}: line {line}: byte "
                f"{error.object[error.start]:#04x} is not UTF-8. Save the file in UTF-8. Nothing "
                "was written."
            ) from error

    read.of_ktk = True  # type: ignore[attr-defined]
    return read


def _setting(value: Any) -> str:
    """A setting in Spark's form; YAML's true is Spark's `true`."""
    return str(value).lower() if isinstance(value, bool) else str(value)
