"""The temporary views through which Spark sees relations of stores."""

from __future__ import annotations

import itertools
import secrets
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ktk_engine.errors import QueryError
from ktk_engine.spark.client.client import is_connect
from ktk_engine.sql.stored_text import SUBSTITUTION
from ktk_engine.types.identifier import Identifier
from ktk_engine.types.quote import quote_identifier
from ktk_engine.types.reserved_name import OWN_PREFIX

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A view that another program writes into a store cannot name ours.
_PREFIX = f"{OWN_PREFIX}{secrets.token_hex(8)}_"


@dataclass
class TemporaryViews:
    """The engine's views of one session."""

    session: SparkSession
    _registered: dict[str, str] = field(default_factory=dict)
    # Views of the statement, and of frames that are gone, where Spark looks for them at each use.
    _views: list[str] = field(default_factory=list)
    _unused: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _spellings: dict[Identifier, list[str]] = field(default_factory=dict)

    def register(
        self, name: str, version: str, frame: Callable[[], DataFrame], *, lasting: bool = True
    ) -> str:
        """Make a temporary view unless the session has this version; an empty one never counts.

        The view's name belongs to the engine, since users have views too. It differs for each
        letter case, which Spark ignores. One that is not `lasting` is of this statement alone: over
        Spark Connect, a later one of the same name would change frames that are not computed yet.
        """
        if found := SUBSTITUTION.search(name):
            raise QueryError(
                f"The place of {name} has `{found[0]}` in its name, which Spark replaces in each "
                "statement. Nothing was read there. Rename the folder."
            )
        if not lasting and not version and is_connect(self.session):
            view = f"{_PREFIX}{next(self._numbers)} {name}"
            frame().createOrReplaceTempView(quote_identifier(view))
            self._views.append(view)
            return view
        spellings = self._spellings.setdefault(Identifier(name), [])
        if name not in spellings:
            spellings.append(name)
        number = spellings.index(name)
        view = f"{_PREFIX}{name}" + (f"~{number}" if number else "")
        if not version or self._registered.get(view) != version:
            frame().createOrReplaceTempView(quote_identifier(view))
            self._registered[view] = version
        return view

    def drop_unused(self) -> None:
        """Drop the views of frames that are gone, and of a statement that failed."""
        self._unused += self._views
        self._views = []
        while self._unused:  # a finalizer adds to the same list
            self.session.catalog.dropTempView(self._unused.pop())

    def keep_for(self, frame: Any) -> None:
        """Let the statement's views last as long as a plan that names them."""
        if self._views:
            weakref.finalize(frame._plan, self._unused.extend, self._views)
            self._views = []
