"""The library's face: `Store(url).cube(name).query(...)`."""

from ktk_engine.api.cube import Cube
from ktk_engine.api.query import Engine, Query
from ktk_engine.api.store import Store
from ktk_engine.api.table import Table

__all__ = ["Cube", "Engine", "Query", "Store", "Table"]
