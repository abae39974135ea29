"""Azure Blob Storage, and Data Lake Storage on top of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ktk_engine.errors import ConfigurationError
from ktk_engine.store.cloud.cloud import Cloud, authority

if TYPE_CHECKING:
    from obstore.store import AzureStore
    from pyarrow.fs import FileSystem

# The variables of Azure's tools; the first that is set counts.
_ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    "account_name": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"),
    "account_key": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY", "AZURE_STORAGE_ACCESS_KEY"),
    "sas_token": ("AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"),
    "tenant_id": ("AZURE_TENANT_ID",),
    "client_id": ("AZURE_CLIENT_ID",),
    "client_secret": ("AZURE_CLIENT_SECRET",),
}
_PRINCIPAL = ("tenant_id", "client_id", "client_secret")


class Azure(Cloud):
    """A container of a storage account."""

    known = frozenset({*_ENVIRONMENT, "endpoint", "use_azure_cli"})
    secret = frozenset({"account_key", "sas_token", "client_secret"})

    def client(self, retry: bool = False) -> AzureStore:
        """See `Cloud.client`."""
        from obstore.store import AzureStore

        settings: dict[str, Any] = {"account_name": self._account}
        for name, key in (("account_key", "account_key"), ("sas_token", "sas_key")):
            if name in self._credentials:
                settings[key] = self._credentials[name]
        settings.update({n: v for n, v in self._credentials.items() if n in _PRINCIPAL})
        if self.has("use_azure_cli"):
            settings["use_azure_cli"] = True
        if self._endpoint:
            settings["endpoint"] = self._endpoint
        return self.make_client(AzureStore, settings, self.endpoint, retry)

    def file_system(self) -> FileSystem:
        """See `Cloud.file_system`."""
        from pyarrow.fs import AzureFileSystem

        settings: dict[str, Any] = dict(self._credentials)
        if self._endpoint:
            scheme, rest = authority(self._endpoint)
            # An emulator has the account in its path, which pyarrow adds itself.
            host = rest.partition("/")[0].removeprefix(f"{self._account}")
            settings.update(blob_storage_scheme=scheme, blob_storage_authority=host)
            settings.update(dfs_storage_scheme=scheme, dfs_storage_authority=_dfs(host))
        try:
            return AzureFileSystem(self._account, **settings)
        except TypeError as error:
            raise ConfigurationError(
                f"pyarrow {version('pyarrow')}, with which a task reads {self.address}, signs "
                "requests by `account_key` only: give that, or install a newer pyarrow there."
            ) from error

    def for_tasks(self) -> Azure:
        """See `Cloud.for_tasks`."""
        options = {"account_name": self._account, **self._credentials}
        if self._endpoint:
            options["endpoint"] = self._endpoint
        return replace(self, options=options)

    @property
    def advice(self) -> str:
        """See `Cloud.advice`."""
        return (
            "Credentials come from storage_options (account_key, sas_token, or tenant_id, "
            "client_id and client_secret), else from AZURE_STORAGE_ACCOUNT_KEY and the like, else "
            "the machine's identity"
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """See `Cloud.secrets`."""
        return tuple(value for name, value in self._credentials.items() if name in self.secret)

    @property
    def _endpoint(self) -> str:
        if self.endpoint or not self.address.domain:
            return self.endpoint
        if self.address.domain == "core.windows.net":
            return ""
        return f"https://{self.address.account}.blob.{self.address.domain}"

    @property
    def _account(self) -> str:
        found = self.address.account or self._setting("account_name")
        if not found:
            raise ConfigurationError(
                f"{self.address} does not say in which storage account it is: set `account_name` "
                "in storage_options, or AZURE_STORAGE_ACCOUNT_NAME, or write "
                f"abfss://{self.address.container}@<account>.dfs.core.windows.net/..."
            )
        return found

    @property
    def _credentials(self) -> dict[str, str]:
        """One way to sign requests, from the settings or else the environment."""
        ways: tuple[tuple[str, ...], ...] = (("account_key",), ("sas_token",), _PRINCIPAL)
        for look in (self.options.get, self._setting):
            for way in ways:
                found = {name: look(name) or "" for name in way}
                if all(found.values()):
                    return found
        return {}

    def _setting(self, name: str) -> str:
        found = (os.environ.get(variable) for variable in _ENVIRONMENT[name])
        return self.options.get(name) or next(filter(None, found), "")


def _dfs(authority: str) -> str:
    """The address of an account's Data Lake service, which lists folders."""
    return authority.replace(".blob.", ".dfs.", 1)
