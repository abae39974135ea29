"""Google Cloud Storage."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from ktk_engine.store.cloud.cloud import Cloud, authority

if TYPE_CHECKING:
    from collections.abc import Mapping

    from obstore import ObjectMeta
    from obstore.store import GCSStore
    from pyarrow.fs import FileSystem


class GCS(Cloud):
    """Google Cloud Storage; tokens are generations, since its conditions do not support ETags."""

    known = frozenset({"endpoint", "anonymous", "access_token"})
    secret = frozenset({"access_token"})

    def client(self, retry: bool = False) -> GCSStore:
        """See `Cloud.client`."""
        from obstore.store import GCSStore

        settings: dict[str, Any] = {}
        if self.endpoint:
            settings["base_url"] = self.endpoint
        if token := self.options.get("access_token"):
            settings["credential_provider"] = lambda: {"token": token, "expires_at": None}
        elif self.has("anonymous"):
            settings["skip_signature"] = True
        return self.make_client(GCSStore, settings, self.endpoint, retry)

    def file_system(self) -> FileSystem:
        """See `Cloud.file_system`."""
        from pyarrow.fs import GcsFileSystem

        settings: dict[str, Any] = {"retry_time_limit": timedelta(seconds=60)}
        if self.endpoint:
            settings["scheme"], settings["endpoint_override"] = authority(self.endpoint)
        if token := self.options.get("access_token"):
            # Only Google knows its expiry; pyarrow needs some time, and would fail without one.
            settings["credential_token_expiration"] = datetime.now(UTC) + timedelta(hours=1)
            settings["access_token"] = token
            return GcsFileSystem(**settings)
        return GcsFileSystem(anonymous=self.has("anonymous"), **settings)

    def for_tasks(self) -> GCS:
        """See `Cloud.for_tasks`; only the options, since Google's libraries find the rest there."""
        return replace(self)

    @property
    def advice(self) -> str:
        """See `Cloud.advice`."""
        return (
            "Credentials come from storage_options (access_token), else they are found as Google's "
            "tools find them: GOOGLE_APPLICATION_CREDENTIALS, `gcloud auth application-default "
            "login`, the machine's service account"
        )

    def token(self, meta: ObjectMeta) -> str:
        """See `Cloud.token`."""
        return str(meta["version"] or "")

    def condition(self, token: str) -> Mapping[str, str]:
        """See `Cloud.condition`."""
        return {"version": token}
