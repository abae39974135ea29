import shutil

import click
import pytest
import yaml
from click.testing import CliRunner

from ktk_engine.cli.find_store import open_other_store
from ktk_engine.cli.main import main
from ktk_engine.errors import ConfigurationError
from tests.support.dataset_builder import build_table
from tests.support.stores import LocalStore, probe


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, in an environment that names no store."""
    for name in ("KTK_STORE", "DBT_PROFILES_DIR", "DBT_TARGET", "DBT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def info(*arguments):
    return CliRunner().invoke(main, [*arguments, "info"])


def schema(root, name, table="t"):
    build_table(LocalStore(root / name), table)


def project(folder, profiles=None, output="store: ./wh, schema: an, type: ktk", name="sample"):
    (folder / "dbt_project.yml").write_text(f"name: x\nprofile: {name}\n")
    profiles = profiles or folder
    profiles.mkdir(exist_ok=True)
    text = f"sample:\n  target: dev\n  outputs:\n    dev: {{{output}}}\n"
    (profiles / "profiles.yml").write_text(text)


def test_option_before_and_behind_the_command(folder):
    schema(folder, "wh/an")
    for arguments in (["--store", "wh/an", "info"], ["info", "--store", "wh/an"]):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0
        assert "wh/an (from --store)" in result.stderr


def test_environment(folder, monkeypatch):
    schema(folder, "wh/an")
    monkeypatch.setenv("KTK_STORE", "wh/an")
    assert "wh/an (from KTK_STORE)" in info().stderr


def test_warehouse_with_one_schema_or_several(folder):
    schema(folder, "wh/an")
    (folder / "wh" / "other").mkdir()
    assert "wh/an (from" in info("--store", "wh").stderr
    schema(folder, "wh/two")
    result = info("--store", "wh")
    assert result.exit_code == 1
    assert "--store wh/an\n  --store wh/two" in result.stderr


def check(*arguments):
    return CliRunner().invoke(main, ["check", *arguments])


def test_what_a_probe_leaves_is_no_schema(folder):
    project(folder)
    schema(folder, "wh/an")
    probe(LocalStore(folder / "wh"))
    assert (folder / "wh" / ".ktk" / "lock").exists()
    for arguments in ([], ["--store", "wh"]):
        assert "t, version 1" in check(*arguments).stdout
    next((folder / "wh" / "an" / "t").glob("**/*.parquet")).unlink()
    for arguments in ([], ["--store", "wh"], ["--deep"], ["--json"]):
        assert check(*arguments).exit_code == 1
    assert "wh/an (from" in info("--store", "wh").stderr


def test_schemas_below_a_root_that_is_one_are_checked_too(folder):
    project(folder)
    schema(folder, "wh", "top")
    schema(folder, "wh/an")
    found = check()
    assert "top, version 1" in found.stdout and "t, version 1" in found.stdout
    next((folder / "wh" / "an" / "t").glob("**/*.parquet")).unlink()
    assert (check().exit_code, check("--store", "wh").exit_code) == (1, 1)


@pytest.mark.parametrize("lost", [["two"], ["an", "two"]])
def test_a_schema_that_lost_its_log_and_documents_is_named(folder, lost):
    project(folder)
    for name in ("an", "two"):
        schema(folder, f"wh/{name}")
    (folder / "wh" / "notes" / "of").mkdir(parents=True)
    assert check("--store", "wh").exit_code == 0
    for name in lost:
        shutil.rmtree(folder / "wh" / name / ".ktk")
        for document in (folder / "wh" / name).glob("*.by-dataset*"):
            document.unlink()
    for arguments in ([], ["--store", "wh"], ["--store", "wh/two"], ["--json"]):
        found = check(*arguments)
        assert found.exit_code == 1
        assert "Restore them from a backup" in " ".join(found.stdout.split())
        assert all(f"wh/{name}" in found.output for name in lost if "wh/two" not in arguments)


def empty(folder):
    (folder / "wh").mkdir()


def probed(folder):
    probe(LocalStore(folder / "wh"))


def foreign(folder):
    LocalStore(folder / "wh").put("t/table/a.parquet", b"PAR1")


def without_tables(folder):
    LocalStore(folder / "wh" / "an").put(".ktk/store.json", b"{}")


@pytest.mark.parametrize("made", [empty, probed, foreign, without_tables])
@pytest.mark.parametrize("arguments", [[], ["--deep"], ["--json"]])
def test_a_check_of_nothing_does_not_end_well(folder, made, arguments):
    project(folder)
    made(folder)
    for store in ([], ["--store", "wh"], ["--store", "wh/an"]):
        found = check(*arguments, *store)
        assert found.exit_code == 1
        said = " ".join(found.output.split())
        assert any(
            words in said
            for words in ("nothing was checked", "does not exist", "Restore them from a backup")
        )
        assert "no problems" not in found.stdout


def test_a_check_of_a_wrong_place_or_name_does_not_end_well(folder):
    schema(folder, "wh/an")
    for arguments in (["--store", "wh/na"], ["t2", "--store", "wh"], ["an", "--store", "wh"]):
        assert check(*arguments).exit_code == 1


@pytest.mark.parametrize("where", ["project", "variable", "home"])
def test_profile(folder, monkeypatch, where):
    schema(folder, "wh/an")
    profiles = {"project": folder, "variable": folder / "p", "home": folder.parent / "home"}[where]
    if where == "home":
        profiles.mkdir()
        profiles = profiles / ".dbt"
    if where == "variable":
        monkeypatch.setenv("DBT_PROFILES_DIR", "p")
    project(folder, profiles)
    result = info()
    assert result.exit_code == 0
    assert "wh/an (from profile sample, target dev, in " in result.stderr
    assert " t " in result.stdout or result.stdout.splitlines()[2].startswith("t")


def test_variables_in_a_profile(folder, monkeypatch):
    schema(folder, "wh/an")
    output = """store: "{{ env_var('ROOT') }}/wh", schema: "{{ env_var('S', 'an') }}", type: ktk"""
    project(folder, output=output)
    result = info()
    assert (result.exit_code, "ROOT, which is not set" in result.stderr) == (1, True)
    monkeypatch.setenv("ROOT", str(folder))
    assert "wh/an (from profile" in info().stderr


def test_a_broken_profile_shows_no_line_of_it(folder):
    project(folder)
    (folder / "profiles.yml").write_text("sample:\n  key: 'S3cret\n  target: dev\n")
    result = info()
    assert result.exit_code == 1 and "is not YAML" in result.stderr
    assert "S3cret" not in result.output + repr(result.exception)


def test_an_address_with_a_key_shows_none(folder):
    for address in ("s3:/key:S3cret@bucket", "s3://key:S3cret@bucket", "ftp://u:S3cret@host"):
        result = info("--store", address)
        assert result.exit_code == 1 and "S3cret" not in result.output + str(result.exception)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("store: ./wh, schema: '{{ target.name }}', type: ktk", "only dbt understands"),
        ("store: ./wh, schema: an, type: duckdb", "has type 'duckdb', not ktk"),
        ("store: ./wh, type: ktk", "names no `schema`"),
        ("store: [", "cannot be read"),
    ],
)
def test_unusable_profiles(folder, output, message):
    project(folder, output=output)
    result = info()
    assert result.exit_code == 1
    assert message in result.stderr
    assert "--store" in result.stderr


def test_nothing_names_a_store(folder):
    assert "Which store?" in info().stderr
    (folder / "dbt_project.yml").write_text("profile: sample\n")
    assert "no profiles.yml" in info().stderr
    project(folder, name="other")
    assert "no section `other`" in info().stderr


KEYS = {"access_key_id": "k", "secret_access_key": "s"}


@pytest.fixture
def opened(folder, monkeypatch):
    """With which options each store was opened."""
    found = {}
    monkeypatch.setattr(
        "ktk_engine.store.open_store.open_store",  # deep: patched
        lambda url, options=None: found.update({url: options}) or LocalStore(folder / "target"),
    )
    return found


def targets(folder, **outputs):
    (folder / "dbt_project.yml").write_text("name: x\nprofile: sample\n")
    content = {"sample": {"target": "dev", "outputs": outputs}}
    (folder / "profiles.yml").write_text(yaml.safe_dump(content))


def options_of(url, opened, **root):
    with click.Context(click.Command("copy"), obj=root):
        open_other_store(url)
    return opened[url]


def target(store, **options):
    return {"type": "ktk", "schema": "an", "store": store, "storage_options": options}


def test_the_store_of_a_copy_is_asked_with_the_options_of_its_own_target(folder, opened):
    targets(
        folder,
        dev=target("s3://dev/wh", access_key_id="dev"),
        live=target("s3://live/wh", access_key_id="{{ env_var('KEY_OF_LIVE', 'live') }}"),
        near=target("s3://live/wh/near", access_key_id="near"),
        broken=target("{{ env_var('NOT_SET') }}", access_key_id="{{ env_var('NOT_SET') }}"),
        other={"type": "postgres"},
    )
    for url, key in (
        ("s3://live/wh/an", "live"),
        ("s3://live/wh/near/an", "near"),
        ("s3://dev/wh", "dev"),
        ("s3://live/whole", "dev"),  # of the present target's kind, in no target's store
    ):
        assert options_of(url, opened) == {"access_key_id": key}
    assert not options_of("gs://live/wh", opened) and not options_of("elsewhere", opened)


def test_without_a_profile_the_environment_is_left(folder, opened):
    assert not options_of("s3://live/wh", opened)
    targets(folder, live=target("s3://live/wh", access_key_id="{{ env_var('NOT_SET') }}"))
    assert not options_of("s3://other/wh", opened)
    with pytest.raises(ConfigurationError, match="NOT_SET"):
        options_of("s3://live/wh", opened)


def test_a_command_of_dbt_has_the_options_of_its_profile(folder, opened):
    root = {"store_url": "s3://dev/wh/an", "storage_options": KEYS}
    assert options_of("s3://live/wh", opened, **root) == KEYS
    assert not options_of("gs://live/wh", opened, **root)
