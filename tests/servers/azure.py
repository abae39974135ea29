"""An Azure server: azurite, which `make azurite` installs by npm."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONTAINER = "ktk-tests"
ACCOUNT = "devstoreaccount1"
# Azurite's own, the same everywhere.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_FOLDER = Path(os.environ.get("KTK_AZURITE", Path(__file__).parents[2] / ".azurite"))
_MAIN = _FOLDER / "node_modules/azurite/dist/src/blob/main.js"
_SECONDS = 60


@dataclass(frozen=True)
class AzureServer:
    """A server that runs.

    Attributes:
        endpoint: its address, with the account.
    """

    endpoint: str

    @property
    def options(self) -> dict[str, Any]:
        """What goes into `storage_options`."""
        return {"account_name": ACCOUNT, "account_key": KEY, "endpoint": self.endpoint}

    def new_url(self) -> str:
        """A place where nothing is."""
        return f"az://{CONTAINER}/{uuid.uuid4().hex[:12]}"


def missing_azurite() -> str:
    """Say why there is no such server here; empty if there is."""
    if shutil.which("node") is None:
        return "azurite needs Node.js, which is not installed"
    return "" if _MAIN.exists() else f"azurite is not installed in {_FOLDER}: make azurite"


def start_azure():
    """Start it; gives the server, and what stops it."""
    from pyarrow.fs import AzureFileSystem

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = ("--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence")
    process = subprocess.Popen(
        ["node", str(_MAIN), *settings, "--disableTelemetry", "--silent", "--skipApiVersionCheck"],
        stdout=subprocess.DEVNULL,
    )

    def stop() -> None:
        with process:  # waits, and closes its pipes
            process.kill()

    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            if time.monotonic() > deadline or process.poll() is not None:
                stop()
                raise
            time.sleep(0.05)
    where = {"authority": f"127.0.0.1:{port}", "scheme": "http"}
    both = {f"{kind}_storage_{name}": v for kind in ("blob", "dfs") for name, v in where.items()}
    AzureFileSystem(ACCOUNT, account_key=KEY, **both).create_dir(CONTAINER)
    return AzureServer(f"http://127.0.0.1:{port}/{ACCOUNT}"), stop
