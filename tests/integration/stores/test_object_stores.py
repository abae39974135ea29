"""Commits, reads and what looks after them, in this process, on each object store."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
import yaml

from ktk_engine import Store
from ktk_engine.cli.sources_file import store_in_project  # deep: options in sources
from ktk_engine.warehouse.source_definitions import render_sources  # deep: options in sources
from tests.faults.content import ARROW_VERBS, SEED, TABLE, choose_verb, first_content
from tests.faults.read import content_of
from tests.faults.verbs import run
from tests.support.changes import (
    Retention,
    check_publishing,
    plan_adoption,
    publish_datasets,
    remove,
    run_adoption,
    run_cleanup,
)
from tests.support.committed import check, read_log, resolve, scope_of
from tests.support.dataset_builder import write_plain_nyc

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


@pytest.mark.parametrize("kind", ["s3", "azure", "gcs"])
def test_what_kartothek_wrote(request, kind):
    store = request.getfixturevalue(f"{kind}_store")
    write_plain_nyc(store)
    store.put("nyc++gone/table/p=a/x.parquet", b"x")
    rows = Store.of(store).cube("nyc").query().to_arrow(engine="local")
    adoption = plan_adoption(store, "nyc")
    assert adoption.specification.seed_dataset == "flights" and run_adoption(adoption).version == 1
    assert plan_adoption(store, "nyc").datasets == ()
    cube = Store.of(store).cube("nyc")
    assert cube.stats()["flights"].rows == 4 and cube.query().to_arrow(engine="local").equals(rows)
    assert not check(store, "nyc").problems
    assert Store.of(store).cleanup("nyc").is_empty  # what is left there is too young
    text = render_sources("s", store_in_project(store, Path("models/sources.yml")), ())
    assert yaml.safe_load(text)["sources"][0]["config"] == {"ktk_store": store.url}


@pytest.mark.parametrize("kind", ["s3", "azure", "gcs"])
def test_a_table_is_published_as_delta(request, kind):
    store = request.getfixturevalue(f"{kind}_store")
    table = Store.of(store)
    for number in range(3):
        table.write_table("t", pa.table({"p": ["a/b", "é"], "x": [number, 5]}), partition_by=["p"])
        publish_datasets(store, "t")
    assert [item.problem for item in check_publishing(store, "t")] == [""]
    assert len(read_log(store, "t").files) == 6
    remove(store, "t")
    assert store.list_names("t/_delta_log") == []
