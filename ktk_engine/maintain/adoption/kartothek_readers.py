"""What Kartothek's readers see of an adopted dataset that its owner may not expect."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.types as pat

from ktk_engine.format.dataset_key import MSGPACK_SUFFIX
from ktk_engine.format.document import DatasetDocument
from ktk_engine.formatting import counted
from ktk_engine.snapshot.snapshot import Snapshot

ABOUT_READERS = (
    "Kartothek still reads the same. Its later writes are noticed, and the next write here takes "
    "them over."
)


def reader_notes(
    document: DatasetDocument, key: str, snapshot: Snapshot, recovered: bool
) -> tuple[str, ...]:
    """Say in sentences what may surprise in a dataset of another program; none if nothing does.

    Without any, Kartothek reads exactly what is read here, and as before. `recovered` means that
    the document no longer said what the cube is.
    """
    return tuple(_notes(document, key, snapshot, recovered))


def _notes(
    document: DatasetDocument, key: str, snapshot: Snapshot, recovered: bool
) -> Iterator[str]:
    if key.endswith(MSGPACK_SUFFIX):
        yield "its document is msgpack; a JSON one is written as well, which Kartothek prefers"
    if not document.lists_files:
        yield "its document does not list its files; the new one does"
    if recovered:
        yield "its document no longer said what the cube is; the new one does"
    if document.embedded_indices:
        names = ", ".join(document.embedded_indices)
        yield f"indexes inside its document are left out: {names}; they can be rebuilt"
    for name, why in snapshot.left_out.items():
        yield (
            f"its column {name} is left out: {why}; so the dataset can be read and rebuilt, but "
            "its rows cannot be changed here"
        )
    for name in snapshot.partition_keys:
        if pat.is_boolean(snapshot.schema.field(name).type):
            yield f"Kartothek shows every value of the partition column {name} as true"
    slashed = sum(label.count("/") > len(snapshot.partition_keys) for label in snapshot.labels)
    if slashed and snapshot.partition_keys:
        yield (
            f"{counted(slashed, 'file')} with a slash in a partition value: Kartothek shows only "
            "the part before it, this library the whole value"
        )
