"""Spark's room; whoever has no Spark meets a clear error at its door."""

from ktk_engine.errors import SessionError
from ktk_engine.extras import need

need("spark", "Spark", "pyspark", error=SessionError)
