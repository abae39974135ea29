"""Where a profile's Spark is: in dbt's process, or a Spark Connect server."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote, unquote

from dbt_common.dataclass_schema import ValidationError

from ktk_engine.spark.client.protocol import has_metastore

SESSION, CONNECT = "session", "connect"
_REMOTE = "SPARK_REMOTE"
_PORT = 15002  # PySpark's own default
# PySpark's form; a host may be an IPv6 address in brackets.
_ADDRESS = re.compile(r"sc://(\[[^\]/;]+\]|[^\[\]:/;@?#]+)(?::(\d+))?(?:/(?:;(.*))?)?")
_SHORT = "sc://host:15002/;token=..."
# Settings for the start of Spark; a session on a running server cannot change them.
_OF_THE_SERVER = (
    *("app", "archives", "authenticate", "connect", "cores", "default", "deploy", "driver"),
    *("dynamicAllocation", "eventLog", "executor", "executorEnv", "files", "hadoop", "io", "jars"),
    *("kerberos", "kryo", "kryoserializer", "kubernetes", "local", "locality", "master", "memory"),
    *("network", "plugins", "pyspark", "python", "rdd", "redaction", "remote", "rpc", "scheduler"),
    *("serializer", "shuffle", "speculation", "ssl", "storage", "submit", "task", "ui", "yarn"),
)


@dataclass(frozen=True)
class ConnectTarget:
    """A Spark Connect server, as PySpark names it."""

    host: str  # name or address; one of IPv6 without brackets
    port: int = _PORT
    # of each call, with the token: never shown
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, remote: str, said_by: str) -> Self:
        """Read an address such as `sc://spark.example:15002/;token=...`.

        The `ValidationError` of a wrong one does not repeat it, since it may hold a token.
        """
        match = _ADDRESS.fullmatch(remote.strip())
        if match is None:
            raise ValidationError(
                f"{said_by} is not the address of a Spark Connect server: write {_SHORT}, without "
                "a user and without a folder."
            )
        host, port, rest = match[1].strip("[]"), match[2], match[3] or ""
        parameters = {}
        for part in filter(None, rest.split(";")):
            key, equals, value = part.partition("=")
            if not key or not equals or "=" in value:
                raise ValidationError(
                    f"{said_by} has a parameter that is not `key=value`: write {_SHORT}, and signs "
                    "such as = or ; in a value as %3D and %3B."
                )
            parameters[key] = unquote(value)
        return cls(host, _port(port or _PORT, said_by), parameters)

    @property
    def url(self) -> str:
        """The URL for PySpark, with the token."""
        return self._with({key: quote(value, safe="") for key, value in self.parameters.items()})

    @property
    def shown(self) -> str:
        """The URL without secrets."""
        return self._with({k: v if k == "use_ssl" else "***" for k, v in self.parameters.items()})

    def _with(self, parameters: Mapping[str, str]) -> str:
        pairs = ";".join(f"{key}={value}" for key, value in parameters.items())
        return f"{self}/;{pairs}" if pairs else str(self)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"sc://{host}:{self.port}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave secrets out of pickles."""
        return type(self), (self.host, self.port)

    def __copy__(self) -> ConnectTarget:
        """Be the same in a copy, with its secrets: it never changes."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ConnectTarget:
        """Be the same in a copy; see `__copy__`."""
        return self

    @property
    def is_here(self) -> bool:
        """Whether it is on this machine, by its loopback names and addresses: it sees folders."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def token(self) -> str:
        """The token; empty if the server needs none."""
        return self.parameters.get("token", "")

    @property
    def use_ssl(self) -> str:
        """The parameter for TLS: `true`, `false`, or empty."""
        return self.parameters.get("use_ssl", "").lower()


def connect_target(values: Mapping[str, Any]) -> ConnectTarget | None:
    """Read the server from a profile's settings; None if Spark runs in dbt's process.

    Raises a `ValidationError` if they contradict each other, or are wrong.
    """
    said = {key: value for key, value in values.items() if value not in (None, "")}
    method = said.pop("method", CONNECT if os.environ.get(_REMOTE) and not said else SESSION)
    if method not in (SESSION, CONNECT):
        raise ValidationError(
            f"The profile has `method: {method}`; type ktk knows `session`, a Spark of dbt's own "
            "process, and `connect`, a Spark Connect server."
        )
    if method == SESSION:
        if said:
            raise ValidationError(
                f"The profile has {_listed(said)} and no `method: connect`: only a Spark Connect "
                f"server has such a key. Add the method, or remove {_listed(said)}."
            )
        return None
    target = _target(said)
    _check_token(target)
    return target


def _target(said: Mapping[str, Any]) -> ConnectTarget:
    if "remote" in said:
        if others := said.keys() - {"remote"}:
            raise ValidationError(
                f"The profile has `remote` and {_listed(others)}: `remote` says all of them. "
                f"Remove {_listed(others)}, or write `host`, `port`, `token` and `use_ssl` instead."
            )
        return ConnectTarget.parse(_text(said, "remote"), "The profile's `remote`")
    if "host" in said:
        return _of_keys(said)
    if said:
        raise ValidationError(
            f"The profile has {_listed(said)} and no `host`: name the Spark Connect server."
        )
    remote = os.environ.get(_REMOTE, "")
    if not remote:
        raise ValidationError(
            "The profile has `method: connect` and does not say where the server is: add `host`, "
            f"or `remote: {_SHORT}`, or set the environment variable {_REMOTE}."
        )
    return ConnectTarget.parse(remote, f"The environment variable {_REMOTE}")


def _of_keys(said: Mapping[str, Any]) -> ConnectTarget:
    host = _text(said, "host").strip("[]")
    if not host or re.search(r"[/;@?#\s\[\]]", host) or (":" in host and not _is_ipv6(host)):
        raise ValidationError(
            "The profile's `host` is a name or an address alone, such as spark.example: `port`, "
            "`token` and `use_ssl` are keys of their own."
        )
    parameters = {}
    if "use_ssl" in said:
        if not isinstance(said["use_ssl"], bool):
            raise ValidationError("The profile's `use_ssl` is true or false.")
        parameters["use_ssl"] = str(said["use_ssl"]).lower()
    if "token" in said:
        parameters["token"] = _text(said, "token")
    return ConnectTarget(host, _port(said.get("port", _PORT), "The profile"), parameters)


def _check_token(target: ConnectTarget) -> None:
    """Refuse a token that PySpark would send in another way than the profile says."""
    if not target.token or target.use_ssl == "true" or target.host == "localhost":
        return
    if target.is_here:
        raise ValidationError(
            f"The profile has a `token` for {target.host}: PySpark sends it without TLS to "
            "`localhost` alone. Write `localhost`, or `use_ssl: true` if the server has TLS."
        )
    if target.use_ssl == "false":
        raise ValidationError(
            f"The profile has a `token` for {target.host} and `use_ssl: false`: PySpark sends a "
            "token over TLS alone. Remove `use_ssl`, or the `token` if the server asks for none."
        )


def settings_problem(settings: Mapping[str, str]) -> str:
    """Say which settings a session on a server cannot have; empty if it may have all.

    dbt checks settings that only the server knows later.
    """
    if has_metastore(settings):
        return (
            "The profile's server_side_parameters name a metastore, and tables are kept in one by "
            "the Spark of dbt's own process alone: not with a Spark Connect server. Remove "
            "`spark.sql.catalogImplementation` and `spark.sql.catalog.spark_catalog`, and models "
            "stay in the store."
        )
    wrong = [
        key for key in settings if key.startswith("spark.") and key.split(".")[1] in _OF_THE_SERVER
    ]
    if not wrong:
        return ""
    which = "it" if len(wrong) == 1 else "them"
    return (
        f"The profile's server_side_parameters set {_listed(wrong)}, which a Spark is started "
        f"with, and a Spark Connect server already runs (`method: connect`, or {_REMOTE} in the "
        f"environment). Set {which} where the server is started, and remove {which} here."
    )


def _text(said: Mapping[str, Any], key: str) -> str:
    value = said[key]
    if not isinstance(value, str):
        raise ValidationError(f"The profile's `{key}` is text; write it in quotes.")
    return value


def _port(value: Any, said_by: str) -> int:
    text = str(value)
    if isinstance(value, bool) or not text.isdecimal() or not 0 < int(text) < 65_536:
        raise ValidationError(f"{said_by} has a `port` that is not a number from 1 to 65535.")
    return int(text)


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


def _listed(keys: Iterable[str]) -> str:
    return ", ".join(f"`{key}`" for key in sorted(keys))
