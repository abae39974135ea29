"""Types of Spark that no file can hold as they are: an Arrow type for each, without a class.

Spark hands some of its types over as others: a variant as a struct of bytes, a collated text as
text. Nothing in Arrow's schema then tells what was lost, so these stand for them.
"""

from __future__ import annotations

import json

import pyarrow as pa


class TypeWithoutClass(pa.ExtensionType):  # type: ignore[misc]
    """Stands in schemas for a type of Spark's; no column ever has it.

    Attributes:
        spark_name: as Spark calls it.
        problem: why it has no class.
        fix: SQL that makes a value with a class of one, `{}` in its place.
    """

    def __init__(self, spark_name: str, problem: str, fix: str) -> None:
        self._said = (spark_name, problem, fix)
        self.spark_name = spark_name
        self.problem = f"{spark_name} has no type class: {problem}"
        self.fix = fix
        # Arrow tells such types apart by their names alone.
        super().__init__(pa.null(), f"spark.{spark_name}")

    def __arrow_ext_serialize__(self) -> bytes:
        return json.dumps(self._said).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> TypeWithoutClass:
        return cls(*json.loads(serialized))  # Arrow makes another one where it needs it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeWithoutClass) and self._said == other._said

    def __hash__(self) -> int:
        return hash(self._said)

    def __str__(self) -> str:
        return self.spark_name
