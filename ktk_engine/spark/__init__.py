"""The Spark backend; without pyspark, any import from it is a clear error."""

from ktk_engine.errors import SessionError
from ktk_engine.extras import need

need("spark", "Spark", "pyspark", error=SessionError)
