"""The profile of the adapter: three lines are enough, and a typo is refused."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass, field, fields
from typing import Any

from dbt.adapters.contracts.connection import Credentials
from dbt_common.dataclass_schema import ValidationError

from dbt.adapters.ktk.config.time_limit import seconds_problem
from ktk_engine.errors import without_secrets
from ktk_engine.spark.session.session import REQUIRED_SETTINGS
from ktk_engine.types.did_you_mean import did_you_mean


@dataclass
class KtkCredentials(Credentials):
    """What a target of type `ktk` may say.

    Attributes:
        schema: default schema: a folder of the store, one Kartothek store.
        database: not used; Spark's names have two parts.
        store: root of the warehouse; a relative path is resolved against the project's root.
        defer_store: root of the warehouse that `--state` describes (`--defer`, `dbt clone`), if it
            is another one; it is only read.
        storage_options: settings of an object store, such as `endpoint` and keys; they also apply
            to other stores of the same kind that the project names.
        server_side_parameters: Spark settings for the session (the name is dbt-spark's).
        query_timeout: seconds that a statement or a write may take; None or 0 for no limit. A
            model's config of this name wins.
        target_type: what Jinja sees as `target.type`; packages write Spark's SQL for `spark`.
        method: always `session`; some macros of dbt-spark ask for it.
    """

    schema: str = ""
    database: str | None = None  # type: ignore[assignment]
    store: str = "./warehouse"
    defer_store: str | None = None
    # Both may hold keys of object stores: shown nowhere.
    storage_options: dict[str, Any] = field(default_factory=dict, repr=False)
    server_side_parameters: dict[str, Any] = field(default_factory=dict, repr=False)
    query_timeout: Any = None  # dbt's own check of types would not name the key
    target_type: str = "spark"
    method: str = "session"

    @classmethod
    def __pre_deserialize__(cls, data: Any) -> Any:
        """Refuse keys that mean nothing: dbt itself would keep them silently.

        Raises:
            ValidationError: with the nearest key.
        """
        data = super().__pre_deserialize__(data)  # type: ignore[no-untyped-call]
        data.setdefault("database", None)
        known = {item.name for item in fields(cls)} | {"type", "threads"}
        known |= set(cls._ALIASES)
        for key in sorted(set(data) - known):
            hint = did_you_mean(key, known)
            allowed = ", ".join(sorted(known - {"database", "method"}))
            raise ValidationError(  # its message alone is shown: no error within an error
                f"The profile has the key `{key}`, which type ktk does not know.{hint} "
                f"Known keys: {allowed}."
            )
        return data

    def __post_init__(self) -> None:
        if not self.schema:
            raise ValidationError("The profile names no `schema` (a folder of the store).")
        for name in ("store", "defer_store"):
            address = getattr(self, name) or ""
            if without_secrets(address) != address:
                raise ValidationError(
                    f"The profile's `{name}` holds a user, a key or a query: an address names a "
                    "bucket and a folder. Give keys in `storage_options` (docs/stores.md)."
                )
        if self.database is not None and self.database != self.schema:
            raise ValidationError(
                "The profile names a `database`; Spark's names have two parts. Remove it."
            )
        if self.method != "session":
            raise ValidationError(
                f"The profile has `method: {self.method}`; type ktk runs in a Spark session of "
                "its own. Remove it."
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

    @property
    def type(self) -> str:
        """Name of the adapter."""
        return "ktk"

    @property
    def unique_field(self) -> str:
        """What tells warehouses apart (dbt hashes it for its statistics)."""
        return self.store

    def _connection_keys(self) -> tuple[str, ...]:
        return "store", "schema", "database", "method", "target_type"


def show_target_type() -> None:
    """Let `target.type` be what the profile's `target_type` says: `spark`, unless it says else.

    dbt fills it with the adapter's own name, and packages then write SQL of no engine in
    particular. The project file is rendered before there is an adapter, so it is dbt's own class
    that has to know; it has loaded this package where there is a dbt.
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
        return target

    profiles.to_target_dict = to_target_dict


def _setting(value: Any) -> str:
    """A setting as Spark wants it; YAML's true is Spark's `true`."""
    return str(value).lower() if isinstance(value, bool) else str(value)
