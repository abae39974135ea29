"""Keys that some part of a store might take for something else."""

from __future__ import annotations

AWKWARD = [
    "p=/x",
    "p=%2F%25/x%20y",
    "p=ü/日本",
    "a b/c=d=e",
    "-rf",
    "#?&;",
    "a+b c%2B",
    "geo++seed/table/country=U%20K/1.parquet",
]
