"""Which addresses the documents of a store may lead to, and which settings go where."""

from __future__ import annotations

import pytest

from ktk_engine.errors import ConfigurationError, QueryError
from ktk_engine.store.trust import Trust, options_for
from tests.support.voices import DBT


def follows(trust: Trust, schema: str, place: str) -> bool:
    try:
        trust.follow(schema, "v", place)
    except QueryError as error:
        assert f"{schema}.v reads the store at" in str(error)
        assert "trusted_stores: [" in error.said(DBT)
        return False
    return True


CLOUD = Trust(("s3://b/prod", "abfss://c@a.dfs.core.windows.net/prod"), ("gs://team/lake/",))


@pytest.mark.parametrize(
    "place",
    [
        "s3://b/prod",
        "s3a://b/prod/an/",
        "S3://b/prod/an/deep",
        "gs://team/lake/an",
        "gcs://team/lake",
        "abfs://c@a.blob.core.windows.net/prod/x",
        "other_schema",
    ],
)
def test_below_a_root(place):
    assert follows(CLOUD, "an", place)


@pytest.mark.parametrize(
    "place",
    [
        "s3://b/prod-evil",
        "s3://b/prod/../secret",
        "s3://b/prod/./an",
        "s3://b/PROD",
        "s3://b",
        "s3://other/prod",
        "gs://b/prod",
        "gs://team/lakes",
        "abfss://c@a.dfs.evil.example/prod",
        "abfss://c@evil.dfs.core.windows.net/prod",
        "abfss://d@a.dfs.core.windows.net/prod",
        "az://c/prod",
        "hdfs://b/prod",
        "jdbc:s3://b/prod",
        "http://b/prod/an",
        "/prod/an",
        "file:///prod",
        "",
        "s3:/b/prod",
        "s3://u:x@b/prod",
    ],
)
def test_elsewhere(place):
    assert not follows(CLOUD, "an", place) or "/" not in place


def test_roots_on_this_machine(tmp_path, monkeypatch):
    for name in ("prod/an", "prod-evil", "secret", "Prod"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "prod/link").symlink_to(tmp_path / "secret")
    (tmp_path / "alias").symlink_to(tmp_path / "prod")
    root = f"{tmp_path}/prod"
    trust = Trust((root,))
    inside = [root, f"{root}/", f"{root}/an", f"file://{root}/an", f"{root}//an",
              f"{tmp_path}/alias/an", f"file:{root}/%61n", f"{root}/..an"]  # fmt: skip
    outside = [f"{root}-evil", f"{root}/../secret", f"{root}/link", f"{root}/link/x", str(tmp_path),
               f"file://{root}/%2e%2e/secret", f"{tmp_path}/secret", "file://host" + root,
               f"{root}/an/../../prod-evil", "/", f"{tmp_path}/PROD",
               f"{root}/x/../an", f"{root}/./an", f"file:{root}/%2e/an", f"file:{root}/x%2f..%2fan",
               f"{root}/an/.."]  # fmt: skip
    assert [item for item in inside if not follows(trust, "an", item)] == []
    assert [item for item in outside if follows(trust, "an", item)] == []
    opened = {trust.follow("an", "v", item) for item in inside}
    assert opened == {root, f"{root}/an", f"{root}/..an"}, "not what was checked"


@pytest.mark.parametrize(
    ("schema", "place", "expected"),
    [
        ("/data/an", "other", True),
        ("/data/an", "an", True),
        ("/data/an", "/data/other", True),
        ("/data/an/", "file:///data/other", True),
        ("/data/an", "..", False),
        ("/data/an", "x/../other", False),
        ("file:///data/an", "%2e%2e", False),
        ("file:///data/an", "x%2f..", False),
        ("/an", "other", False),  # the root does not count as a folder of stores
        ("/an", "/an", True),
        ("file:///an", "etc", False),
        ("/data/an", ".", False),
        ("/data/an", "/data/other/deep", False),
        ("/data/an", "/data", False),
        ("/data/an", "/etc", False),
        ("s3://b/x/an", "other", True),
        ("s3://b/an", "other", True),
        ("s3://b/an", "s3://b/other", True),
        ("s3://b/an", "..", False),
        ("s3://evil", "victim", False),  # another bucket
        ("s3://evil", "s3://victim", False),
        ("abfss://c@a.dfs.core.windows.net", "c@b.dfs.core.windows.net", False),
        ("gs://b/an", "s3://b/other", False),
    ],
)
def test_beside_the_own_store(schema, place, expected):
    assert follows(Trust(), schema, place) == expected


def test_what_the_project_names_is_asked_last():
    asked = []

    def sources():
        asked.append(1)
        return ["/sources/an"]

    trust = Trust(("/own",), ("/more",), sources)
    assert follows(trust, "an", "/own/x")
    assert follows(trust, "an", "/more/x")
    assert not asked
    assert follows(trust, "an", "/sources/an")
    assert not follows(trust, "an", "/sources/other")


def test_whose_views_call_functions_of_the_project():
    assert [CLOUD.is_own(item) for item in ("an", "s3://b/prod/an", "gs://team/lake/an", "/x")] == [
        True, True, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/project/data/a.csv", True),
        ("/project/data/x/b.csv", True),  # a folder that the project names
        ("/project/patterns/*.csv", True),
        ("hdfs://h/x", True),
        ("/team/x.csv", True),
        ("/own/an/x.csv", False),  # a warehouse has relations
        ("/project/patterns/x.csv", False),
        ("/project/data/../secret.csv", False),
        ("/project/data/{..,x}/secret.csv", False),
        ("/project/data/*", False),
        ("/project/data2/x", False),
        ("hdfs://h/x/y", False),
        ("http://evil/x", False),
    ],
)
def test_plain_files(location, expected):
    named = ["/project/data", "/project/patterns/*.csv", "hdfs://h/x"]
    trust = Trust(("/own",), ("/team",), files=lambda: [(item, ()) for item in named])
    try:
        assert trust.follow_files("an", "v", (location, ())) == location
    except QueryError as error:
        assert not expected
        assert f"an.v reads the files at {location}" in str(error)
        assert f"trusted_stores: ['{location}']" in error.said(DBT)
    else:
        assert expected


def test_plain_files_are_opened_where_they_were_checked(tmp_path):
    root, secret = tmp_path / "shared", tmp_path / "secret"
    root.mkdir()
    secret.mkdir()
    (root / "out").symlink_to(secret)
    (root / "in").symlink_to(root / "a")
    (root / "pattern").symlink_to(root / "{..,x}" / "secret")  # what Spark would expand
    trust = Trust(stores=[str(root)])

    def opened(location: str) -> str | None:
        try:
            return trust.follow_files("an", "v", (location, ()))
        except QueryError:
            return None

    found = [f"{root}/a", f"file:{root}/%61", f"{root}/in", f"file://{root}/in"]
    assert {opened(item) for item in found} == {f"{root}/a"}
    refused = [
        f"{root}/out/x.csv",
        f"{root}/pattern",
        f"{root}/a/../a",
        f"file:{root}/%2e%2e/secret",
    ]
    assert [item for item in refused if opened(item)] == []


OWN = (("fs.x.impl", "y"), ("basePath", "/project"))


@pytest.mark.parametrize(
    ("location", "options", "expected"),
    [
        ("/project/data", (("HEADER", "true"), ("sep", ";")), True),
        ("/team/x.csv", (("pathGlobFilter", "*.csv"),), True),
        ("/project/data", OWN, True),  # those of the project's source
        ("/project/data", OWN[:1], False),
        ("/project/data", (("fs.x.impl", "z"), OWN[1]), False),
        ("/project/data/x", OWN, False),  # which it has for another location
        ("/team/x.csv", OWN, False),
        ("/team/x.csv", (("sep", ";"), ("fs.file.impl", "y")), False),
        ("/team/x.csv", (("io.compression.codecs", "y"),), False),
        ("/team/x.csv", (("path", "/etc/passwd"),), False),
        ("/team/x.csv", (("paths", "[]"),), False),
        ("/team/x.csv", (("", ""),), False),
    ],
)
def test_options_of_plain_files(location, options, expected):
    trust = Trust((), ("/team",), files=lambda: [("/project/data", ()), ("/project/data", OWN)])
    if expected:
        assert trust.follow_files("an", "v", (location, options)) == location
    else:
        with pytest.raises(QueryError, match=r"an\.v reads the files at .* with the option"):
            trust.follow_files("an", "v", (location, options))


AZURE = "abfss://c@a.dfs.core.windows.net/x"


@pytest.mark.parametrize(
    ("url", "root", "options", "expected"),
    [
        (AZURE, AZURE, {"sas_token": "s"}, True),
        (AZURE.replace("c@a", "d@b"), AZURE, {"sas_token": "s"}, True),
        ("az://c/x", AZURE, {"sas_token": "s"}, True),
        (AZURE, "./warehouse", {"sas_token": "s"}, True),
        (AZURE, "s3://b", {"region": "r"}, None),
        ("s3://b/x", AZURE, {"sas_token": "s"}, None),
        ("/folder", AZURE, {"sas_token": "s"}, None),
        (AZURE.replace("windows.net", "chinacloudapi.cn"), AZURE, {"endpoint": "https://e"}, True),
        (AZURE.replace("windows.net", "chinacloudapi.cn"), "./warehouse", {}, True),
        (
            AZURE.replace("windows.net", "chinacloudapi.cn"),
            AZURE,
            {},
            False,
        ),  # nor the environment's
        (AZURE.replace("core.windows.net", "evil.example"), AZURE, {"sas_token": "s"}, False),
        (AZURE.replace("core.windows.net", "evil.example"), "./w", {"sas_token": "s"}, False),
        (AZURE, AZURE.replace("windows.net", "chinacloudapi.cn"), {"sas_token": "s"}, False),
    ],
)
def test_which_settings_go_where(url, root, options, expected):
    if expected is False:
        with pytest.raises(ConfigurationError, match="another domain"):
            options_for(url, root, options)
    else:
        assert options_for(url, root, options) == (options if expected else None)
