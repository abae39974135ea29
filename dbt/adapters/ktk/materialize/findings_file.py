"""What the gate found about a model, as data in a file of dbt's target folder.

dbt-core builds the result of a failed node from the message alone: its `adapter_response` in
run_results.json is always empty. So the list is in a file next to that one, which the message
names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import DataError, TypeClassError

FOLDER = "ktk_findings"


@contextmanager
def findings_file(target_folder: Path | None, unique_id: str) -> Iterator[None]:
    """Write the findings that a block raises as JSON; None as a folder writes nothing.

    The message of the `TypeClassError` or `DataError` gets the file's name.
    """
    path = target_folder / FOLDER / f"{unique_id}.json" if target_folder else None
    if path is not None:
        with suppress(OSError):  # a file that cannot be removed is replaced, or the message says so
            path.unlink(missing_ok=True)  # of an earlier run
    try:
        yield
    except (TypeClassError, DataError) as error:
        if path is None or not error.findings:
            raise
        data: list[dict[str, Any]] = [_as_dict(item) for item in error.findings]
        shown = f"{path.parent.parent.name}/{FOLDER}/{path.name}"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(data, indent=2, default=str) + "\n", encoding="utf-8")
            where = f"The same findings as JSON: {shown}"
        except OSError as problem:
            where = f"The same list could not be written to {shown}: {problem.strerror}"
        raise error.with_message(error, f"\n{where}") from error


def _as_dict(finding: Any) -> dict[str, Any]:
    """A finding of the gate, or one about rows."""
    return dict(finding.as_dict(DBT) if hasattr(finding, "as_dict") else vars(finding))
