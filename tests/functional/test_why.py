"""Notes of what nodes were computed from, and `ktk_why`."""

from __future__ import annotations

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.functional.relations import store_of
from tests.support.committed import read_computed, resolve, scope_of

SEED = "id,v\n1,10\n2,20\n"


class TestNotes:
    @pytest.fixture(scope="class")
    def seeds(self):
        return {"raw.csv": SEED}

    @pytest.fixture(scope="class")
    def file(self, tmp_path_factory):
        return tmp_path_factory.mktemp("files") / "data.parquet"

    @pytest.fixture(scope="class")
    def models(self, file):
        return {
            "shown.sql": "{{ config(materialized='view') }} select id, v from {{ ref('raw') }}",
            "kept.sql": "{{ config(materialized='table', tags=['t']) }}\n"
            "select s.* from {{ ref('shown') }} s\n"
            "left join {{ at_version(ref('raw'), 1) }} old using (id)\n"
            f"left join parquet.`{file}` f using (id)",
            "grown.sql": "{{ config(materialized='incremental', unique_key='id') }}"
            "select id, v from {{ ref('raw') }}"
            "{% if is_incremental() %} where id > (select max(id) from {{ this }}) - 5{% endif %}",
        }

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {
            "held.sql": "{% snapshot held %}{{ config(strategy='check', unique_key='id', "
            "check_cols=['v']) }} select id, v from {{ ref('raw') }}{% endsnapshot %}"
        }

    def note(self, project, name):
        store = store_of(project)
        return read_computed(store, scope_of(name), name)

    def test_what_is_noted(self, project, file):
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"id": [1]}), file)
        run_dbt(["seed"])
        run_dbt(["run"])
        raw = resolve(store_of(project), scope_of("raw")).head
        seed, kept, grown = (self.note(project, name) for name in ("raw", "kept", "grown"))
        assert (seed.read, seed.version, seed.commit) == ((), 1, raw.commit)
        assert {"code", "version of dbt-core"} <= set(seed.work)
        assert [(item.uuid, item.version, item.commit) for item in kept.read] == [
            ("raw", 1, raw.commit),
            ("raw", 1, raw.commit),
        ]
        assert sorted(item.moment for item in kept.read) == ["", "version as of 1"]
        assert [name for name in kept.work if name.startswith("view ")] == [
            f"view {project.test_schema}.shown"
        ]
        assert "config tags" not in kept.work
        assert list(kept.unknown.values()) == ["line 4"]
        assert [item.uuid for item in grown.read] == ["raw"]
        size = len(store_of(project).get(scope_of("kept").computed_key("kept")))
        assert size < 2_000 + 150 * len(kept.read), size

        # The same again: no version, and a note of the newest run.
        run_dbt(["run"])
        again = self.note(project, "kept")
        assert (again.version, again.commit) == (kept.version, kept.commit)
        assert again.work == kept.work
        assert again.time > kept.time
        assert [item.uuid for item in self.note(project, "grown").read] == ["grown", "raw"]

        for _ in range(2):
            run_dbt(["snapshot"])
        held = self.note(project, "held")
        assert [item.uuid for item in held.read] == ["raw"]  # and itself, as each snapshot does
        assert (held.version, held.unchanged) == (1, True)
        assert held.unknown == {}

        # Which part differs.
        write_file(SEED + "3,30\n", project.project_root, "seeds", "raw.csv")
        run_dbt(["seed"])
        said = run_dbt_and_capture(["run-operation", "ktk_why", "--args", "{name: kept}"])[1]
        assert "raw version 1: changed in version 2" in said
        assert "raw version as of 1: unchanged" in said
        changed = self.note(project, "raw").work
        assert {name for name in changed if changed[name] != seed.work.get(name)} == {"code"}
