"""Which files overlay each other, and which partitions two datasets share, told naively."""

from __future__ import annotations

import math
from dataclasses import replace

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ktk_engine.plan.align import semi_join
from ktk_engine.plan.overlay import is_overlaid, keep_overlaying, overlaid_files
from tests.support.committed import PARTITION_PREFIX, Snapshot, files_table

_SCHEMA = pa.schema([("p", pa.float64()), ("q", pa.string())])
_FILES = st.lists(
    st.tuples(
        st.sampled_from([None, math.nan, 0.0, 1.0]),
        st.sampled_from([None, "", "x"]),
        st.sampled_from([None, "c1", "c2"]),
        st.booleans(),
    ),
    max_size=8,
)


def _snapshot(files):
    labels = [str(number) for number in range(len(files))]
    partitions = pa.table(
        {"p": pa.array([f[0] for f in files], pa.float64()),
         "q": pa.array([f[1] for f in files], pa.string())}
    )  # fmt: skip
    known = {"commit": [f[2] for f in files]}
    table = files_table(labels, labels, partitions, known)
    return Snapshot("d", _SCHEMA, ("p", "q"), table)


def _value(value):
    return "nan" if isinstance(value, float) and math.isnan(value) else value


def _overlaid(files, columns):
    """By the words of `overlaid_files`: another file there is of another or an unknown commit."""
    groups = [tuple(_value(f["pq".index(c)]) for c in columns) for f in files]
    return [
        any(
            other != number
            and groups[other] == groups[number]
            and any(
                files[a][2] is None or files[a][2] != files[b][2]
                for a in range(len(files))
                for b in range(len(files))
                if a != b and groups[a] == groups[b] == groups[number]
            )
            for other in range(len(files))
        )
        for number in range(len(files))
    ]


_COLUMNS = st.sampled_from([[], ["p"], ["q"], ["p", "q"]])


@settings(deadline=None)
@given(_FILES, _COLUMNS)
def test_overlaid_files_are_those_that_a_naive_look_finds(files, columns):
    snapshot = _snapshot(files)
    assert overlaid_files(snapshot, columns).to_pylist() == _overlaid(files, columns)
    kept = [f[3] for f in files]
    left = [f for f in files if f[3]]
    found = is_overlaid(snapshot, pa.array(kept, pa.bool_()), columns)
    assert found == any(_overlaid(left, columns))


@settings(deadline=None)
@given(_FILES, _COLUMNS)
def test_files_after_a_matching_one_are_kept(files, columns):
    snapshot, matching = _snapshot(files), [f[3] for f in files]
    groups = [tuple(_value(f["pq".index(c)]) for c in columns) for f in files]
    overlaid = _overlaid(files, columns)
    expected = [
        matching[n]
        or (overlaid[n] and any(matching[m] and groups[m] == groups[n] for m in range(n)))
        for n in range(len(files))
    ]
    kept = keep_overlaying(snapshot, pa.array(matching, pa.bool_()), columns)
    assert kept.to_pylist() == expected


@settings(deadline=None)
@given(_FILES, _FILES, _COLUMNS)
def test_semi_join_keeps_the_partitions_of_the_other(files, others, columns):
    mine, other = _snapshot(files).files, _snapshot(others).files
    kept = semi_join(mine, other, columns)["position"].to_pylist()

    def values(file):
        return tuple(_value(file["pq".index(c)]) for c in columns)

    def unreadable(file):
        return None in values(file)

    if any(map(unreadable, others)):
        assert kept == list(range(len(files)))
        return
    known = set(map(values, others))
    assert kept == [n for n, f in enumerate(files) if values(f) in known or unreadable(f)]


def test_what_was_derived_belongs_to_one_snapshot():
    snapshot = _snapshot([(0.0, "x", "c1", True), (0.0, "x", "c2", True)])
    found = overlaid_files(snapshot, ["p"])
    assert overlaid_files(snapshot, ["p"]) is found
    fewer = replace(snapshot, file_table=snapshot.files.slice(1))
    assert found.to_pylist() == [True, True]
    assert overlaid_files(fewer, ["p"]).to_pylist() == [False]
    assert PARTITION_PREFIX + "p" in fewer.files.column_names
