"""The engine behind dbt-ktk: cubes of Kartothek datasets, usable alone from Python.

Begin with a `Store`, and ask for help on it:

    from ktk_engine import Store

    store = Store("./warehouse/analytics")
    store.build("shop", orders, dimension_columns=["order_id"])
    shop = store.cube("shop")
    shop.query(["order_id", "amount"], "amount > 20").to_pandas()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktk_engine.api import Store

    __version__: str

__all__ = ["Store", "__version__"]


def __getattr__(name: str) -> object:
    # Importing the package must be cheap: the command line and Spark's workers do it often.
    if name == "Store":
        from ktk_engine.api import Store

        return Store
    if name == "__version__":
        from importlib.metadata import version

        return version("ktk-engine")
    raise AttributeError(f"module 'ktk_engine' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__name__"]  # and no rooms, which are for the package itself
