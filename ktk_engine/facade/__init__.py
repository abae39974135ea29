"""The library's face: `Store(url).cube(name).query(...)`."""

from ktk_engine.facade.cube import Cube
from ktk_engine.facade.query import Engine, Query
from ktk_engine.facade.store import Store
from ktk_engine.facade.table import Table

__all__ = ["Cube", "Engine", "Query", "Store", "Table"]
