"""The uuid of a dataset in a cube: the cube's name and the dataset's id, as in `cube++dataset`."""

from __future__ import annotations

SEPARATOR = "++"


def dataset_uuid(cube: str, dataset: str) -> str:
    """Compose the uuid of a dataset; the uuid of a plain table, without a cube, is its name."""
    return f"{cube}{SEPARATOR}{dataset}" if cube else dataset


def is_in_cube(uuid: str) -> bool:
    """Whether a uuid is that of a cube's dataset."""
    return SEPARATOR in uuid


def split_uuid(uuid: str) -> tuple[str, str]:
    """Split a uuid into the cube's name, empty for a plain table, and the dataset's name."""
    cube, separator, dataset = uuid.partition(SEPARATOR)
    return (cube, dataset) if separator else ("", uuid)


def cube_and_dataset(uuid: str) -> tuple[str, str | None]:
    """The names that users know: the cube and the dataset in it, or the table and None."""
    cube, dataset = split_uuid(uuid)
    return (cube, dataset) if cube else (uuid, None)
