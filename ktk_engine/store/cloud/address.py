"""Addresses of object stores: `s3://bucket/prefix` and the like."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ktk_engine.errors import ConfigurationError, InvalidKeyError
from ktk_engine.store.key import validate_key

# The schemes that users write -> the one that we use.
SCHEMES = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gs",
    "gcs": "gs",
    "az": "az",
    "abfs": "abfss",
    "abfss": "abfss",
}
FORMS = (
    "s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or "
    "abfss://container@account.dfs.core.windows.net/prefix"
)
_CONTAINER = re.compile(r"[A-Za-z0-9$][A-Za-z0-9._\-]*")
_ACCOUNT = re.compile(r"([a-z0-9]+)\.(?:dfs|blob)\.([a-z0-9.\-]+)")


@dataclass(frozen=True)
class CloudAddress:
    """The address of an object store."""

    scheme: str  # `s3`, `gs`, `az` or `abfss`
    container: str  # the bucket or container
    prefix: str  # of all keys, without `/` at its ends; empty: the whole container
    account: str = ""  # the storage account, only for `abfss`
    domain: str = ""  # the account's domain after `dfs.` or `blob.`, only for `abfss`

    def __str__(self) -> str:
        host = self.container
        if self.account:
            host += f"@{self.account}.dfs.{self.domain}"
        return f"{self.scheme}://{host}/{self.prefix}".rstrip("/")

    def path(self, key: str) -> str:
        """The name of an object in the container."""
        return f"{self.prefix}/{key}" if self.prefix and key else self.prefix + key


def parse_cloud_address(url: str) -> CloudAddress:
    """Parse the address of an object store, which has one of `SCHEMES`.

    Raises a `ConfigurationError` that does not repeat the address, which may contain a secret.
    """
    scheme, _, rest = url.partition("://")
    scheme = SCHEMES[scheme.lower()]
    host, _, prefix = rest.partition("/")
    if "?" in url or "#" in url:
        raise ConfigurationError(_problem(scheme, "holds '?' or '#'"))
    account = domain = ""
    if scheme == "abfss":
        host, at, where = host.partition("@")
        match = _ACCOUNT.fullmatch(where)
        if not at or match is None:
            raise ConfigurationError(_problem(scheme, "does not name a container and an account"))
        account, domain = match.groups()
    if not host:
        raise ConfigurationError(_problem(scheme, "names no bucket"))
    if not _CONTAINER.fullmatch(host):
        raise ConfigurationError(_problem(scheme, "has more than a bucket in front of the first /"))
    prefix = prefix.strip("/")
    if prefix:
        try:
            validate_key(prefix)
        except InvalidKeyError as error:
            raise ConfigurationError(_problem(scheme, f"cannot be used: {error}")) from error
    return CloudAddress(scheme, host, prefix, account, domain)


def _problem(scheme: str, what: str) -> str:
    return (
        f"The address of a store with '{scheme}://' {what}. Its form is {FORMS}; keys and other "
        "settings belong in `storage_options` or the environment (docs/stores.md)."
    )
