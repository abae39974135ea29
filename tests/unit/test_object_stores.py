"""Commits, reads and what looks after them, in this process, on each object store."""

from __future__ import annotations

from random import Random

import pytest

from ktk_engine.facade import Store
from ktk_engine.log.garbage import Retention
from ktk_engine.log.scope import scope_of
from ktk_engine.log.state import resolve
from ktk_engine.maintain.check import check
from ktk_engine.maintain.cleanup import run_cleanup
from tests.faults.content import ARROW_VERBS, SEED, TABLE, choose_verb, first_content
from tests.faults.read import content_of
from tests.faults.verbs import run

_VERBS = {uuid: tuple(v for v in verbs if v != "publish") for uuid, verbs in ARROW_VERBS.items()}


@pytest.mark.parametrize("kind", ["s3", "azure", "gcs"])
def test_a_table_and_a_cube(request, kind):
    store = request.getfixturevalue(f"{kind}_store")
    random = Random(kind)
    content, verbs = first_content(random)
    for verb in verbs:
        run(store, verb)
    for _ in range(8):
        verb = choose_verb(random, content, _VERBS)
        run(store, verb)
        content = verb.after(content)
    found = {}
    for uuid in (TABLE, SEED):
        found |= content_of(resolve(store, scope_of(uuid)))
    assert found == {uuid: tuple(rows) for uuid, rows in content.items()}
    for uuid in (TABLE, SEED):
        if uuid in content:
            assert not check(store, scope_of(uuid).name, deep=True).problems
    rows = Store.of(store).cube("c").query().to_arrow(engine="local")
    assert rows.num_rows == len(content[SEED])
    run_cleanup(store, scope_of(SEED), Retention(versions=1))
    assert Store.of(store).cube("c").query().to_arrow(engine="local").equals(rows)
