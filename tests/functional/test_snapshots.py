"""Snapshots through dbt: versions of rows on plain tables and in a cube."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from tests.functional.relations import rows, store_of
from tests.support.committed import cube_scope, scope_of, version_of

SNAPSHOT = """
{{% snapshot {name} %}}
{{{{ config({config}) }}}}
select * from {{{{ ref('source') }}}}
{{% endsnapshot %}}
"""
CUBE = {"cube": "c", "cube_role": "seed"}
CHECK = {"strategy": "check", "check_cols": "all"}
VALUES = [("a", "bc", "x/y"), ("ab", "c", "100%"), ("a|b", "c", "k=v"), ("a", "b|c", "Łódź")]


def snapshot(name: str, **config) -> str:
    return SNAPSHOT.format(
        name=name, config=", ".join(f"{key}={value!r}" for key, value in config.items())
    )


def source(values, columns=("k1", "k2", "v")) -> str:
    def text(value: object) -> str:
        return "cast(null as string)" if value is None else f"'{value}'"

    lines = [", ".join(map(text, row)) for row in values]
    return f"select * from values ({'), ('.join(lines)}) as t({', '.join(columns)})"


def put(project, text: str, name: str = "source") -> None:
    """Change the source, which is a view."""
    write_file(text, f"{project.project_root}/models/{name}.sql")
    run_dbt(["run", "-s", name])


def counts(results) -> dict[str, tuple[int, int, int]]:
    def of(item):
        found = item.adapter_response
        return tuple(found[f"rows_{what}"] for what in ("inserted", "updated", "deleted"))

    return {item.node.name: of(item) for item in results}


class TestCheck:
    """Keys whose texts run together, and values with marks of paths and patterns."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"source.sql": source(VALUES)}

    @pytest.fixture(scope="class")
    def snapshots(self):
        both = {**CHECK, "unique_key": ["k1", "k2"], "hard_deletes": "invalidate"}
        cells = {"dimension_columns": ["k1", "k2", "dbt_valid_from"], **CUBE}
        return {
            "plain.sql": snapshot("plain", **both),
            "cells.sql": snapshot("cells", **both, **cells),
            "kept.sql": snapshot("kept", **{**both, "hard_deletes": "ignore"}, partition_by="k2"),
            "told.sql": snapshot("told", **{**both, "hard_deletes": "new_record"}),
        }

    def test_versions(self, project):
        names = ("plain", "cells", "kept", "told")
        run_dbt(["build"])
        for name in names:
            text = f"select count(*), count(distinct dbt_scd_id) from {{s}}.{name}"
            assert rows(project, text) == [(4, 4)]
        # Without a change there is no commit.
        store = store_of(project)
        scopes = (*map(scope_of, ("plain", "kept", "told")), cube_scope("c"))
        before = [version_of(store, scope) for scope in scopes]
        results = run_dbt(["snapshot"])
        assert counts(results) == dict.fromkeys(names, (0, 0, 0))
        assert {item.message for item in results} == {"nothing changed"}
        assert [version_of(store, scope) for scope in scopes] == before
        # A value goes, another becomes null, a row goes and one comes.
        changed = [("a", "bc", None), ("ab", "c", "100%/"), ("a", "b|c", "Łódź"), ("n", "n", "")]
        put(project, source(changed))
        expected = {"plain": (3, 3, 0), "cells": (3, 3, 0), "kept": (3, 2, 0), "told": (4, 3, 0)}
        assert counts(run_dbt(["snapshot"])) == expected
        for name in names:
            closed = f"select k1, k2, v from {{s}}.{name} where dbt_valid_to is not null"
            gone = [] if name == "kept" else [("a|b", "c", "k=v")]
            old = [("a", "bc", "x/y"), *gone, ("ab", "c", "100%")]
            assert sorted(rows(project, closed)) == sorted(old)
            now = f"select k1, k2, v from {{s}}.{name} where dbt_valid_to is null"
            stay = [] if name in ("plain", "cells") else [("a|b", "c", "k=v")]
            assert sorted(rows(project, now), key=str) == sorted([*changed, *stay], key=str)
        told = "select k1, k2 from {s}.told where dbt_is_deleted = 'True'"
        assert rows(project, told) == [("a|b", "c")]
        # Null is a value like others: it changes once.
        assert set(counts(run_dbt(["snapshot"])).values()) == {(0, 0, 0)}
        # The row comes back.
        put(project, source([*changed, ("a|b", "c", "k=v")]))
        expected = {"plain": (1, 0, 0), "cells": (1, 0, 0), "kept": (0, 0, 0), "told": (1, 1, 0)}
        assert counts(run_dbt(["snapshot"])) == expected


TIMES = "select id, v, {time} as at from values {rows} as t(id, v, time)"


def timed(*items: tuple[int, str, str], time: str = "to_timestamp(time)") -> str:
    return TIMES.format(rows=", ".join(map(repr, items)), time=time)


class TestTimestamp:
    """Names of the project's own, a date for what is current, and files by it."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "source.sql": timed((1, "a", "2024-01-01"), (2, "b", "2024-01-02")),
            "c.sql": "{{ config(materialized='cube') }}{{ cube_of(ref('cells')) }}",
        }

    @pytest.fixture(scope="class")
    def snapshots(self):
        names = {key: f"my_{key}" for key in ("dbt_valid_to", "dbt_valid_from", "dbt_scd_id")}
        config = {
            "strategy": "timestamp",
            "updated_at": "at",
            "unique_key": "id",
            "snapshot_meta_column_names": names,
            "dbt_valid_to_current": "to_timestamp('9999-12-31')",
            "hard_deletes": "invalidate",
            "partition_by": "my_dbt_valid_to",
        }
        return {
            "plain.sql": snapshot("plain", **config),
            "cells.sql": snapshot(
                "cells", **config, **CUBE, dimension_columns=["id", "my_dbt_scd_id"]
            ),
        }

    def test_versions(self, project):
        run_dbt(["build"])
        put(project, timed((1, "new", "2024-02-01"), (2, "unseen", "2024-01-02")))
        assert set(counts(run_dbt(["snapshot"])).values()) == {(1, 1, 0)}
        for name in ("plain", "cells", "c"):
            text = f"select id, v, my_dbt_valid_from, my_dbt_valid_to from {{s}}.{name}"
            assert sorted(rows(project, text)) == [
                (1, "a", datetime(2024, 1, 1), datetime(2024, 2, 1)),
                (1, "new", datetime(2024, 2, 1), datetime(9999, 12, 31)),
                (2, "b", datetime(2024, 1, 2), datetime(9999, 12, 31)),
            ]
        # A row that went and comes back with its old time.
        put(project, timed((1, "new", "2024-02-01")))
        assert set(counts(run_dbt(["snapshot"])).values()) == {(0, 1, 0)}
        put(project, timed((1, "new", "2024-02-01"), (2, "b", "2024-01-02")))
        assert set(counts(run_dbt(["snapshot"])).values()) == {(1, 0, 0)}
        for name in ("plain", "cells"):
            text = f"select count(*), count(distinct my_dbt_scd_id) from {{s}}.{name} where id = 2"
            assert rows(project, text) == [(2, 2)]
        # Files of versions that have ended stay as they are.
        put(project, timed((1, "newer", "2024-03-01"), (2, "b", "2024-01-02")))
        messages = {item.node.name: item.message for item in run_dbt(["snapshot"])}
        assert messages["plain"].startswith("1 inserted, 1 updated; 1 of 4 files rewritten")
        # In a cube, a later file of the partition might replace cells of an earlier one.
        assert messages["cells"].startswith("1 inserted, 1 updated; 2 of 4 files rewritten")


class TestSchemaAndFailures:
    """What a run that fails leaves: the versions that were there."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"source.sql": "select 1 as id, 'a' as v"}

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"plain.sql": snapshot("plain", **CHECK, unique_key="id", hard_deletes="invalidate")}

    def test_changes_of_the_source(self, project):
        run_dbt(["build"])
        store, scope = store_of(project), scope_of("plain")

        def refused(text: str, *messages: str) -> None:
            version = version_of(store, scope)
            put(project, text)
            _, log = run_dbt_and_capture(["snapshot"], expect_pass=False)
            for message in messages:
                assert message in log
            assert version_of(store, scope) == version

        refused("select 1 as id, array('a') as v", "| v ", "string and list of string")
        refused("select cast(1 as double) as id, 'a' as v", "| id", "never rebuilt: cast")
        refused(
            "select * from values (1, 'a'), (2, 'b'), (2, 'c') as t(id, v)",
            "several rows for one unique_key (id)",
            "id=2, v=",
        )
        refused(
            "select 1 as id, if(rand() < 2, raise_error('no'), 'a') as v",
            "\n  no\n",
        )
        assert rows(project, "select id, v from {s}.plain") == [(1, "a")]
        # New columns are added, and those that the source lacks stay.
        put(project, "select 1 as id, 'a' as v, 2 as w")
        run_dbt(["snapshot"])
        put(project, "select 1 as id, 3 as w")
        run_dbt(["snapshot"])
        text = "select id, v, w from {s}.plain order by dbt_valid_from"
        assert rows(project, text) == [(1, "a", None), (1, "a", 2), (1, None, 3)]


class TestMove:
    @pytest.fixture(scope="class")
    def models(self):
        return {"source.sql": "select 1 as id, 'a' as v"}

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"plain.sql": snapshot("plain", **CHECK, unique_key="id")}

    def test_a_snapshot_is_not_laid_out_anew(self, project):
        run_dbt(["build"])
        config = {**CHECK, **CUBE, "unique_key": "id", "dimension_columns": ["dbt_scd_id"]}
        path = f"{project.project_root}/snapshots/plain.sql"
        write_file(snapshot("plain", **config), path)
        _, log = run_dbt_and_capture(["snapshot"], expect_pass=False)
        assert "is stored as plain, but its configuration asks for c++plain" in log
        write_file(snapshot("plain", **CHECK, unique_key="id", partition_by="v"), path)
        _, log = run_dbt_and_capture(["snapshot"], expect_pass=False)
        assert "change it back, give it another name, or change its layout in Python" in log


class TestHeader:
    @pytest.fixture(scope="class")
    def models(self):
        return {"source.sql": "select 1 as id, 'a' as v, timestamp '2024-01-01' as at"}

    @pytest.fixture(scope="class")
    def snapshots(self):
        config = {
            "strategy": "timestamp",
            "updated_at": "at",
            "unique_key": "id",
            "sql_header": "create or replace temporary function shout(t string) returns string "
            "return upper(t);",
        }
        text = snapshot("plain", **config)
        return {"plain.sql": text.replace("select *", "select id, shout(v) as v, at")}

    def test_a_function_of_the_header(self, project):
        for _ in range(2):
            run_dbt(["build"])
        assert rows(project, "select id, v from {s}.plain") == [(1, "A")]


class TestNamesOfItsOwn:
    """dbt looks for the column of deleted rows letter by letter."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"source.sql": source([("a", "b", "c"), ("d", "e", "f")])}

    @pytest.fixture(scope="class")
    def snapshots(self):
        names = {"dbt_is_deleted": "IS_DEL", "dbt_valid_from": "Since"}
        own = {"hard_deletes": "new_record", "snapshot_meta_column_names": names}
        return {"own.sql": snapshot("own", **CHECK, unique_key="k1", **own)}

    def test_deleted_rows(self, project):
        run_dbt(["build"])
        put(project, source([("a", "b", "c")]))
        for _ in range(2):
            run_dbt(["snapshot"])
        found = rows(project, "select k1, IS_DEL from {s}.own order by k1, Since")
        assert found == [("a", "False"), ("d", "False"), ("d", "True")]


class TestMaps:
    @pytest.fixture(scope="class")
    def models(self):
        return {"source.sql": "select 1 as id, array(map('a', 1)) as m"}

    @pytest.mark.parametrize(("name", "cols"), [("every", "all"), ("named", ["id", "M"])])
    def test_what_cannot_be_compared_is_refused_at_once(self, project, name, cols):
        config = {"strategy": "check", "check_cols": cols, "unique_key": "id"}
        path = f"{project.project_root}/snapshots/{name}.sql"
        run_dbt(["run"])
        write_file(snapshot(name, **config), path)
        (result,) = run_dbt(["snapshot", "-s", name], expect_pass=False)
        assert "column m is or holds a map, which Spark cannot compare" in result.message
        assert not [key for key in store_of(project).list_names() if name in key]
        write_file(snapshot(name, **{**config, "check_cols": ["id"]}), path)
        for _ in range(2):
            run_dbt(["snapshot", "-s", name])


class TestRefusals:
    @pytest.fixture(scope="class")
    def models(self):
        return {"source.sql": "select 1 as id, 'a' as v"}

    @pytest.mark.parametrize(
        ("config", "message"),
        [
            ({**CUBE, "dimension_columns": "id"}, "does not distinguish the versions"),
            ({**CUBE, "dimension_columns": ["id", "dbt_valid_to"]}, "which changes when"),
            ({"cube": "c", "dimension_columns": "dbt_scd_id"}, "must be seed or enrichment"),
            ({"partition_by": "dbt_valid_to"}, "Set `dbt_valid_to_current`"),
            (
                {"snapshot_meta_column_names": {"dbt_valid_to": "dbt_scd_id"}},
                "two columns the same name",
            ),
            ({"dimension_columns": "id"}, "belongs to models that are materialized"),
        ],
    )
    def test_a_configuration_that_cannot_work(self, project, config, message):
        text = snapshot("plain", **CHECK, unique_key="id", **config)
        write_file(text, f"{project.project_root}/snapshots/plain.sql")
        with pytest.raises(Exception, match=message):
            run_dbt(["build"])


class TestTimesThatAreNone:
    """dbt's own time has no form among texts and numbers, so a deletion could not be compared."""

    VALUES: ClassVar = {
        "iso": ("'2024-01-01T10:00:00Z'", "'2024-01-02T10:00:00Z'"),
        "epoch": ("1704103200", "1704189600"),
    }

    @pytest.fixture(scope="class")
    def models(self):
        return {f"{kind}.sql": self.query(kind, 0) for kind in self.VALUES}

    @pytest.fixture(scope="class")
    def snapshots(self):
        deletes = {"ignored": {}, "ended": {"hard_deletes": "invalidate"},
                   "told": {"hard_deletes": "new_record"},
                   "old": {"invalidate_hard_deletes": True}}  # fmt: skip
        shared = {"strategy": "timestamp", "unique_key": "id", "updated_at": "at"}
        return {
            f"{kind}_{name}.sql": snapshot(f"{kind}_{name}", **shared, **more).replace(
                "ref('source')", f"ref('{kind}')"
            )
            for kind in self.VALUES
            for name, more in deletes.items()
        }

    def query(self, kind: str, moment: int) -> str:
        return f"select 1 as id, {self.VALUES[kind][moment]} as at"

    def test_the_first_run_is_refused_where_a_later_one_would_be(self, project):
        run_dbt(["run"])
        results = run_dbt(["snapshot"], expect_pass=False)
        for item in results:
            ignored = item.node.name.endswith("_ignored")
            assert item.status == ("success" if ignored else "error")
            if not ignored:
                assert "ends at the current time, which could not be compared" in item.message
                assert "cast(at as timestamp)" in item.message
        for kind in self.VALUES:
            put(project, self.query(kind, 1), kind)
        run_dbt(["snapshot", "-s", "iso_ignored", "epoch_ignored"])
        for kind in self.VALUES:
            text = f"select count(*), count(dbt_valid_to) from {{s}}.{kind}_ignored"
            assert rows(project, text) == [(2, 1)]

    def test_deletes_that_are_asked_for_later_are_refused_too(self, project):
        path = f"{project.project_root}/snapshots/iso_ignored.sql"
        text = snapshot("iso_ignored", strategy="timestamp", unique_key="id", updated_at="at",
                        hard_deletes="invalidate")  # fmt: skip
        write_file(text.replace("ref('source')", "ref('iso')"), path)
        (result,) = run_dbt(["snapshot", "-s", "iso_ignored"], expect_pass=False)
        assert "which could not be compared with it. Nothing was written" in result.message
