"""The engine behind dbt-ktk: cubes of Kartothek datasets, usable alone from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktk_engine.api import Store

__all__ = ["Store"]


def __getattr__(name: str) -> object:
    # Importing the package must be cheap: the command line and Spark's workers do it often.
    if name == "Store":
        from ktk_engine.api import Store

        return Store
    raise AttributeError(f"module 'ktk_engine' has no attribute {name!r}")
