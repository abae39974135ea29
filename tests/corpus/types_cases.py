"""The reference cases in `types.jsonl`: normal forms of types, compatibility of schemas."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from ktk_engine.errors import TypeClassError
from ktk_engine.types.finding import raise_findings
from ktk_engine.types.schema import compare_schemas, dataset_schema, merge_schemas
from ktk_engine.types.type_class import normalize
from tests.corpus.decisions import predict_schemas, predict_type
from tests.corpus.outcome import Outcome

Columns = list[tuple[str, str]]


def run_types(path: Path) -> Iterator[Outcome]:
    """Judge every line of a file.

    Args:
        path: a file of the format of `types.jsonl`.

    Yields:
        One outcome per line.
    """
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            case = json.loads(line)
            judge = _judge_normalize if case["kind"] == "normalize" else _judge_compatible
            yield judge(f"{path.name}:{number}", case)


def _judge_normalize(name: str, case: dict[str, Any]) -> Outcome:
    """Judge the normal form of a type."""
    source = _schema(case["ipc"]).field("c").type
    name = f"{name} normalize {case['type']}"
    expected = _schema(case["normalized_ipc"]).field("c").type if "normalized" in case else None
    try:
        ours = normalize(source)
    except TypeClassError:
        ours = None
    predicted = predict_type(source)
    broken = {"24"} if expected is None else set()
    return _outcome(
        name,
        _text(expected),
        _text(ours),
        _text(predicted.type),
        predicted.decisions | broken,
    )


def _judge_compatible(name: str, case: dict[str, Any]) -> Outcome:
    """Judge whether schemas of one dataset are compatible, and what they become."""
    given = [_schema(text) for text in case["schemas"]]
    schemas = [_without_index(schema) for schema in given]
    keys = case.get("partition_keys") or []
    expected = [(n, t) for n, t in case["result"]] if case["verdict"] == "ok" else None
    predicted = predict_schemas(
        schemas,
        keys,
        with_pandas=[_pandas(schema) is not None for schema in given],
        prepared=case["prepare"],
        broken=case["verdict"] == "error" and not case["deliberate"],
    )
    prediction = None if predicted.result is None else [(n, str(t)) for n, t in predicted.result]
    return _outcome(
        f"{name} compatible: {case['what']}",
        _columns_text(expected),
        _columns_text(_ours(schemas, keys)),
        _columns_text(prediction),
        predicted.decisions,
    )


def _ours(schemas: list[pa.Schema], partition_keys: list[str]) -> Columns | None:
    """Write the schemas into one dataset, one after the other; None if one is refused."""
    try:
        committed = dataset_schema(schemas[0], partition_keys)
        for schema in schemas[1:]:
            model = dataset_schema(schema, partition_keys)
            findings = compare_schemas(committed, model)
            if findings:
                raise_findings(findings, "the case", len(committed.names))
            merged = merge_schemas(committed, model)
            committed = dataset_schema(merged, partition_keys)
    except TypeClassError:
        return None
    return [(field.name, str(field.type)) for field in committed]


def _outcome(
    case: str, expected: str, ours: str, predicted: str, decisions: set[str] | frozenset[str]
) -> Outcome:
    """Compare our answer with Kartothek's, and where it differs with the prediction."""
    if ours == expected:
        return Outcome(case, "passed")
    if decisions and ours == predicted:
        return Outcome(case, "by decision", ", ".join(sorted(decisions)))
    return Outcome(case, "failed", f"expected {expected}, got {ours}, predicted {predicted}")


def _text(t: pa.DataType | None) -> str:
    """Write a type so that only equal ones have one text."""
    return "refused" if t is None else str(t)


def _columns_text(columns: Columns | None) -> str:
    """Write the columns of a schema."""
    return "refused" if columns is None else str(columns)


def _schema(text: str) -> pa.Schema:
    """Read a schema."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))


def _pandas(schema: pa.Schema) -> dict[str, Any] | None:
    """Give the pandas metadata of a schema."""
    raw = (schema.metadata or {}).get(b"pandas")
    return None if raw is None else json.loads(raw)


def _without_index(schema: pa.Schema) -> pa.Schema:
    """Take out the columns of a frame's index, which are not columns of the frame."""
    index = (_pandas(schema) or {}).get("index_columns", [])
    names = {name for name in index if isinstance(name, str)}
    return pa.schema([field for field in schema if field.name not in names])
