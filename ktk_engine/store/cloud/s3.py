"""Amazon S3 and compatible stores."""

from __future__ import annotations

import importlib
import importlib.util
import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ktk_engine.errors import ConfigurationError
from ktk_engine.messages import Remedy
from ktk_engine.store.cloud.cloud import (
    CONNECT_SECONDS,
    REQUEST_SECONDS,
    Cloud,
    authority,
    check_endpoint,
)

if TYPE_CHECKING:
    from obstore.store import S3Credential, S3Store
    from pyarrow.fs import FileSystem

_KEYS = ("access_key_id", "secret_access_key", "session_token")
# Roles of machines; tasks on other machines have their own.
_OF_MACHINES = ("iam-role", "container-role")


class S3(Cloud):
    """Amazon S3, or with `endpoint` a compatible server."""

    known = frozenset({"endpoint", "region", "profile", "anonymous", *_KEYS})
    secret = frozenset({"secret_access_key", "session_token"})

    def client(self, retry: bool = False) -> S3Store:
        """See `Cloud.client`."""
        from obstore.store import S3Store

        settings: dict[str, Any] = {"region": self._region}
        if self._endpoint:
            settings["endpoint"] = self._endpoint
        if self.has("anonymous"):
            settings["skip_signature"] = True
        elif self._keys:
            # Not as settings, which the client would complete from the environment, with the
            # session token of another key.
            settings["credential_provider"] = self._given
        elif self._session is not None:
            from obstore.auth.boto3 import Boto3CredentialProvider

            settings["credential_provider"] = Boto3CredentialProvider(self._session)
        else:
            self._refuse_profile()
        return self.make_client(S3Store, settings, self._endpoint, retry)

    def file_system(self) -> FileSystem:
        """See `Cloud.file_system`."""
        from pyarrow.fs import AwsStandardS3RetryStrategy, S3FileSystem

        settings: dict[str, Any] = {}
        if self._endpoint:
            settings["scheme"], settings["endpoint_override"] = authority(self._endpoint)
        if self.has("anonymous"):
            settings["anonymous"] = True
        elif self._keys:
            settings["access_key"], settings["secret_key"] = self._keys[:2]
            settings["session_token"] = self._keys[2] or None
        settings.update(
            region=self._region,
            connect_timeout=CONNECT_SECONDS,
            request_timeout=REQUEST_SECONDS,
            retry_strategy=AwsStandardS3RetryStrategy(max_attempts=8),
        )
        try:  # one request per small file instead of three
            return S3FileSystem(allow_delayed_open=True, **settings)
        except TypeError:  # pyarrow 17 lacks the option
            return S3FileSystem(**settings)

    def for_tasks(self) -> S3:
        """See `Cloud.for_tasks`; passes keys on, unless they belong to this machine's role."""
        options = {key: self.options[key] for key in ("anonymous",) if key in self.options}
        options["region"] = self._region
        if self._endpoint:
            options["endpoint"] = self._endpoint
        keys = self._keys
        if not keys and not self.has("anonymous") and self._session is not None:
            found = self._session.get_credentials()
            if found is not None and found.method not in _OF_MACHINES:
                keys = tuple(found.get_frozen_credentials()[:3])
        options.update({name: key for name, key in zip(_KEYS, keys, strict=False) if key})
        return replace(self, options=options)

    @property
    def advice(self) -> str:
        """See `Cloud.advice`."""
        return (
            "Keys come from storage_options (access_key_id, secret_access_key), else from where "
            "AWS tools find them: AWS_ACCESS_KEY_ID, a profile, the machine's role"
        )

    @property
    def secrets(self) -> tuple[str, ...]:
        """See `Cloud.secrets`."""
        return tuple(key for key in self._keys[1:] if key)

    @property
    def _endpoint(self) -> str:
        if self.endpoint:
            return self.endpoint
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
            if found := os.environ.get(name):
                check_endpoint(found, f"The environment variable {name}")
                return found.rstrip("/")
        return ""

    @property
    def _region(self) -> str:
        given = (
            self.options.get("region")
            or os.environ.get("AWS_REGION")
            or os.environ.get("AWS_DEFAULT_REGION")
        )
        if not given and self._session is not None:
            given = self._session.region_name
        return given or "us-east-1"

    @cached_property
    def _keys(self) -> tuple[str, ...]:
        """Key, secret and token from the settings or else the environment; empty without any."""
        given = tuple(self.options.get(name, "") for name in _KEYS)
        if given[0] and given[1]:
            return given
        if given[0] or given[1]:
            raise ConfigurationError(
                "storage_options has only one of `access_key_id` and `secret_access_key`: give "
                "both, or none, to let AWS's own ways find them."
            )
        if self.options.get("profile"):
            return ()
        found = tuple(os.environ.get(f"AWS_{name.upper()}", "") for name in _KEYS)
        return found if found[0] and found[1] else ()

    def _given(self) -> S3Credential:
        key, secret, token = self._keys
        return {
            "access_key_id": key,
            "secret_access_key": secret,
            "token": token or None,
            "expires_at": None,
        }

    @cached_property
    def _session(self) -> Any:
        """AWS's own search for credentials, with profiles and sign-on; None if not installed."""
        if self._keys or self.has("anonymous") or importlib.util.find_spec("boto3") is None:
            return None
        boto3 = importlib.import_module("boto3")
        failures = importlib.import_module("botocore.exceptions")
        try:
            session = boto3.Session(profile_name=self.options.get("profile"))
            return session if session.get_credentials() is not None else None
        except failures.BotoCoreError as error:
            raise ConfigurationError(f"AWS's settings cannot be used: {error}") from error

    def _refuse_profile(self) -> None:
        """Refuse profiles without AWS's library, which would be ignored."""
        elsewhere = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                     "AWS_CONTAINER_CREDENTIALS_FULL_URI")  # fmt: skip
        if importlib.util.find_spec("boto3") is not None or any(map(os.environ.get, elsewhere)):
            return
        file = os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
        profile = self.options.get("profile") or os.environ.get("AWS_PROFILE")
        if profile or Path(file).expanduser().exists():
            raise ConfigurationError(
                f"Credentials for {self.address} seem to be in a profile of AWS. To read "
                "those, install AWS's library: ",
                Remedy("install", extra="s3"),
                ". Or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or storage_options.",
            )
