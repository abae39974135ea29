"""The file of dbt source definitions that a command writes, and its changes."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ktk_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from ktk_engine.store.interface import ObjectStore

NAME = "sources.yml"
_YAML = (".yml", ".yaml")


@dataclass(frozen=True)
class SourcesFile:
    """The current file."""

    path: Path  # where it is, or will be
    before: str | None  # its content, if it exists

    def diff(self, text: str) -> str:
        """The changes; empty if there are none."""
        old = (self.before or "").splitlines(keepends=True)
        new, name = text.splitlines(keepends=True), str(self.path)
        return "".join(difflib.unified_diff(old, new, name, name))

    def write(self, text: str) -> None:
        """Write it atomically."""
        written = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            written.write_text(text, encoding="utf-8")
            written.replace(self.path)
        except OSError as error:
            written.unlink(missing_ok=True)
            raise ConfigurationError(f"{self.path} cannot be written: {error}.") from error


def open_sources(place: Path) -> SourcesFile:
    """Find the file to write.

    Args:
        place: a folder, in which it is `sources.yml`, or the file itself.

    Raises:
        ConfigurationError: there is no such folder, or the file cannot be read.
    """
    path = place if place.suffix in _YAML and not place.is_dir() else place / NAME
    if not path.parent.is_dir():
        raise ConfigurationError(
            f"There is no folder {path.parent} for {path.name}. Nothing was written."
        )
    try:
        return SourcesFile(path, path.read_text(encoding="utf-8") if path.exists() else None)
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}. Nothing was written.") from error


def store_in_project(store: ObjectStore, sources: Path) -> str:
    """Give the store for `ktk_store`: relative to the project if it is inside.

    Args:
        store: the store.
        sources: the file that names it.
    """
    from ktk_engine.store.local.local_store import LocalStore

    if not isinstance(store, LocalStore):
        return store.url
    folder = sources.absolute().parent
    project = next((f for f in (folder, *folder.parents) if (f / "dbt_project.yml").exists()), None)
    path = store.root
    if project is not None and path.is_relative_to(project):
        path = path.relative_to(project)
    # The adapter fills in words in braces; a URL has none.
    return store.url if "{" in str(path) else path.as_posix()
