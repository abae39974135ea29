"""Finds the store for a command, and prints which one it is.

See docs/stores.md, How dbt and ktk find the store.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ktk_engine.errors import ConfigurationError

if TYPE_CHECKING:
    from ktk_engine.store.interface import ObjectStore

_ENV_VAR = re.compile(
    r"""\{\{\s*env_var\(\s*(['"])(?P<name>\w+)\1\s*"""
    r"""(?:,\s*(['"])(?P<default>.*?)\3\s*)?\)\s*\}\}"""
)
_F = TypeVar("_F", bound=Callable[..., Any])


def store_option(command: _F) -> _F:
    """Add the option `--store` to a command, before or after its name."""
    return click.option(
        "--store",
        "store_url",
        metavar="PATH",
        help="The store: a schema's folder, or a warehouse with one schema.",
    )(command)


def find_store(store_url: str | None, *, quiet: bool = False) -> ObjectStore:
    """Open the store of this command.

    It is what `--store` names, else the environment's `KTK_STORE`, else what the profile of the
    dbt project in the current folder names.

    Args:
        store_url: what was given with the command's own `--store`.
        quiet: do not print which store it is.

    Raises:
        ConfigurationError: none of the three names a store, it is not clear which one, or its
            folder does not exist.
    """
    (store,) = _found(store_url, _schema_of, quiet)
    return store


def find_stores(store_url: str | None, *, quiet: bool = False) -> list[ObjectStore]:
    """Open all schemas of this command's warehouse, or its only store.

    A folder next to them counts too if it lost all that tells of its datasets.

    Args:
        store_url: as for `find_store`.
        quiet: as for `find_store`.

    Raises:
        ConfigurationError: as for `find_store`.
    """
    return _found(store_url, _schemas_and_lost, quiet)


def _found(
    store_url: str | None,
    opened: Callable[[str, Mapping[str, Any] | None], list[ObjectStore]],
    quiet: bool,
) -> list[ObjectStore]:
    root = click.get_current_context().find_root().obj or {}
    given = store_url or root.get("store_url")
    if given:
        stores, source = opened(given, root.get("storage_options")), "--store"
    elif os.environ.get("KTK_STORE"):
        stores, source = opened(os.environ["KTK_STORE"], None), "KTK_STORE"
    else:
        url, schema, options, source = _from_profile(Path.cwd())
        whole = opened is not _schema_of
        stores = opened(url, options) if whole else [_open(f"{url}/{schema}", options)]
    from ktk_engine.store.local.local_store import missing_folder

    for store in stores:
        if problem := missing_folder(store):
            named = f" (It is named by the {source}.)" if source.startswith("profile") else ""
            raise ConfigurationError(f"{problem}{named}")
        if not quiet:
            click.secho(f"store {store.url} (from {source})", err=True, dim=True)
    return stores


def find_place(text: str, store_url: str | None, quiet: bool) -> tuple[ObjectStore, str]:
    """Find the store and the name that `nyc`, `prod.nyc` or `/data/prod.nyc` says."""
    place, _, name = text.rpartition(".")
    if "/" in name:
        raise ConfigurationError(
            f"{text} is a path. A cube or table of a store is written as the path of the store, a "
            "dot and its name, for instance ./warehouse/analytics.nyc."
        )
    if not place:
        return find_store(store_url, quiet=quiet), name
    if "/" in place:
        return open_other_store(place), name
    known = find_stores(store_url, quiet=True)
    schemas = {store.url.rpartition("/")[2]: store for store in known}
    folder = known[0].url.rpartition("/")[0]
    return schemas.get(place) or open_other_store(f"{folder}/{place}"), name


def open_other_store(url: str) -> ObjectStore:
    """Open another store that a command writes to, as the project in the current folder would.

    An object store gets the `storage_options` of the target whose store contains it, else those of
    the current target if they are for its kind, else those of the environment.

    Args:
        url: its path or address.

    Raises:
        ConfigurationError: the address is wrong, or the options need a variable that is not set.
    """
    from ktk_engine.store.open_store import cloud_of
    from ktk_engine.store.trust import options_for

    kind, root = cloud_of(url), click.get_current_context().find_root().obj or {}
    given, named = root.get("storage_options"), str(root.get("store_url"))
    if given and cloud_of(named) == kind:
        return _open(url, options_for(url, named, given))
    try:
        options = _options_for(url, kind) if kind else {}
    except _NoProfileError:
        options = {}  # no project that uses ktk: the environment remains
    return _open(url, options)


class _NoProfileError(ConfigurationError):
    """There is no profile that could name a store."""


def _options_for(url: str, kind: str) -> dict[str, Any]:
    """The options for an object store in the profile of the current folder."""
    from ktk_engine.store.open_store import cloud_of
    from ktk_engine.store.trust import options_for

    try:
        profile, path, _ = _profile_of(Path.cwd())
        outputs = _section(profile, "outputs", path)
        present = os.environ.get("DBT_TARGET") or _text(profile, "target", path, "default")
    except ConfigurationError as error:
        raise _NoProfileError(str(error)) from error
    best: tuple[int, Mapping[str, Any]] = (-1, {})
    for name, output in outputs.items():
        if not isinstance(output, dict) or output.get("type") != "ktk":
            continue
        address = _address(output, path)
        inside = f"{url}/".startswith(f"{address.rstrip('/')}/")
        if cloud_of(address) == kind and (inside or name == present):
            best = max(best, (len(address) if inside else 0, output), key=lambda item: item[0])
    return dict(options_for(url, _address(best[1], path), _options(best[1], path)) or {})


def _address(output: Mapping[str, Any], path: Path) -> str:
    """The address of a target's store; empty if it cannot be determined."""
    try:
        return _text(output, "store", path, "./warehouse")
    except ConfigurationError:
        return ""


def _open(url: str, options: Mapping[str, Any] | None = None) -> ObjectStore:
    # Imports Arrow, which --help does not need.
    from ktk_engine.store.open_store import cloud_of, open_store

    return open_store(url, options if cloud_of(url) else None)


def _schema_of(url: str, options: Mapping[str, Any] | None = None) -> list[ObjectStore]:
    """Open a store; for a warehouse with exactly one schema, that schema."""
    from ktk_engine.catalog.find_scope import is_schema

    store = _open(url, options)
    stores = [store] if is_schema(store) else _schemas_of(url, options)
    if len(stores) > 1:
        names = (store.url.rpartition("/")[2] for store in stores)
        paths = "\n".join(f"  --store {url.rstrip('/')}/{name}" for name in names)
        raise ConfigurationError(f"{url} has several schemas. Choose one:\n{paths}")
    return stores


def _schemas_of(url: str, options: Mapping[str, Any] | None = None) -> list[ObjectStore]:
    """Open a store if it is a schema, and all schemas in its folders; at least the store."""
    from ktk_engine.catalog.find_scope import is_schema, schemas_below

    store = _open(url, options)
    found = [_open(f"{url.rstrip('/')}/{name}", options) for name in schemas_below(store)]
    return [store, *found] if is_schema(store) or not found else found


def _schemas_and_lost(url: str, options: Mapping[str, Any] | None = None) -> list[ObjectStore]:
    """Open all schemas, and folders next to them that have files of datasets alone."""
    from ktk_engine.catalog.find_scope import is_schema
    from ktk_engine.maintain.check import has_lost_logs

    found, root = _schemas_of(url, options), _open(url, options)
    if is_schema(root):
        return found
    folders = [name[:-1] for name in root.list_names() if name.endswith("/")]
    others = [_open(f"{url.rstrip('/')}/{name}", options) for name in folders if name != ".ktk"]
    return [*found, *(store for store in others if has_lost_logs(store))]


def _from_profile(project: Path) -> tuple[str, str, dict[str, Any], str]:
    """A dbt project's warehouse and schema, its options, and their source."""
    profile, profiles_file, name = _profile_of(project)
    target = os.environ.get("DBT_TARGET") or _text(profile, "target", profiles_file, "default")
    output = _section(_section(profile, "outputs", profiles_file), target, profiles_file)
    where = f"profile {name}, target {target}, in {profiles_file}"
    if output.get("type") != "ktk":
        raise ConfigurationError(
            f"The {where} has type {output.get('type')!r}, not ktk. Give --store."
        )
    root = _text(output, "store", profiles_file, "./warehouse")
    from ktk_engine.store.open_store import is_url

    if not is_url(root):
        root = str(project / os.path.expanduser(root))
    schema = _text(output, "schema", profiles_file)
    return root.rstrip("/"), schema, _options(output, profiles_file), where


def _profile_of(project: Path) -> tuple[Mapping[str, Any], Path, str]:
    """A dbt project's profile, its file, and its name."""
    project_file = project / "dbt_project.yml"
    if not project_file.is_file():
        raise ConfigurationError(
            "Which store? Give --store, set KTK_STORE, or run this in the folder of a dbt project."
        )
    name = os.environ.get("DBT_PROFILE") or _text(_load(project_file), "profile", project_file)
    profiles_file = _profiles_file(project)
    return _section(_load(profiles_file), name, profiles_file), profiles_file, name


def _options(output: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The options of an object store, with environment variables resolved."""
    given = _section(output, "storage_options", path) if output.get("storage_options") else {}
    return {
        key: _text(given, key, path) if isinstance(value, str) and value else value
        for key, value in given.items()
    }


def _profiles_file(project: Path) -> Path:
    """Find profiles.yml as dbt does."""
    folders = [project, Path.home() / ".dbt"]
    if os.environ.get("DBT_PROFILES_DIR"):
        folders.insert(0, Path(os.environ["DBT_PROFILES_DIR"]).expanduser())
    for folder in folders:
        if (folder / "profiles.yml").is_file():
            return folder / "profiles.yml"
    searched = ", ".join(str(folder) for folder in folders)
    raise ConfigurationError(f"There is no profiles.yml in {searched}. Give --store.")


def _load(path: Path) -> Mapping[str, Any]:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        # Without the error itself, which repeats the line and may contain a key.
        mark = getattr(error, "problem_mark", None)
        place = f"line {mark.line + 1}" if mark else "it"
        raise ConfigurationError(
            f"{path} cannot be read: {place} is not YAML. Give --store."
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}. Give --store.") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path} is not a map of settings. Give --store.")
    return content


def _section(content: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    section = content.get(name)
    if not isinstance(section, dict):
        raise ConfigurationError(f"{path} has no section `{name}`. Give --store.")
    return section


def _text(content: Mapping[str, Any], key: str, path: Path, default: str | None = None) -> str:
    """Read a setting; supports only `env_var` of Jinja."""
    value = content.get(key, default)
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{path} names no `{key}`. Give --store.")
    rendered = _ENV_VAR.sub(lambda match: _environment(match, path), value)
    if "{{" in rendered or "{%" in rendered:
        raise ConfigurationError(
            f"{path} computes `{key}` in a way that only dbt understands. Give --store."
        )
    return rendered


def _environment(match: re.Match[str], path: Path) -> str:
    value = os.environ.get(match["name"], match["default"])
    if value is None:
        raise ConfigurationError(
            f"{path} needs the environment variable {match['name']}, which is not set."
        )
    return value
