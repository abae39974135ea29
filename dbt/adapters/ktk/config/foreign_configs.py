"""Acts on configs of other adapters, as `foreign_config_table.py` says.

None is ignored silently: each is carried out, refused before anything is written, or a warning of
the model's run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dbt_common.exceptions import DbtConfigError

from dbt.adapters.ktk.config.config_reader import ConfigReader, refusing
from dbt.adapters.ktk.config.foreign_config_table import FOREIGN_CONFIGS, ForeignConfig
from dbt.adapters.ktk.config.incremental import Incremental
from dbt.adapters.ktk.config.layout import LAYOUT, unused_indexes, unused_keys
from ktk_engine.cube.user_metadata import check_user_metadata

_ALL = tuple(item for group in FOREIGN_CONFIGS.values() for item in group)
KEYS = frozenset(item.key for item in _ALL)
# Properties with these names instruct another engine, which reads them from its own tables.
_ORDERS = ("delta.", "iceberg.", "orc.", "parquet.", "write.")
# Whole mappings of properties; any other note is one entry under its own name.
_PROPERTIES = ("tblproperties", "table_properties")
# Only files of plain tables can be sorted by any columns.
_SORTED_BY = "clustered_by"
_INDEXES = "indexes"
_OPTIONS = "options"
# Packages read these from `meta`, and dbt moves configs there that it does not know.
_ACCESS = tuple(item for item in FOREIGN_CONFIGS["Who may read"] if item.treatment == "refused")
_ONE_FOR_ALL = " (Shown once, for the first model that has it.)"
# `warn_of_grants` warns of it once per run.
_ONCE = "grants"


@dataclass(frozen=True)
class Hint:
    """What a config does not do."""

    about: str  # dbt warns of it once per run, for all models
    text: str


def in_own_words(
    model: str,
    config: Mapping[str, Any],
    columns: Mapping[str, Any],
    stored: bool,
    in_cube: bool,
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Map a model's foreign configs, and refuse those that have no equivalent here.

    `columns` are those in YAML, and `stored` says that it stores rows. Gives all of the config
    under this adapter's names, and what is for the user metadata of the dataset. The
    `DbtConfigError` names the config, why, and what to use.
    """
    for name, item, value in _of_columns(columns):
        if item.treatment == "refused":
            raise _refusal(f"{model}, column {name}", item, value)
    for item, value in _of_meta(config, stored):
        raise _refusal(model, item, value)
    own: dict[str, Any] = dict(config)
    metadata: dict[str, Any] = {}
    for item, value in _given(config, stored):
        if item.treatment == "refused" and str(value).lower() not in item.likewise:
            raise _refusal(model, item, value)
        if item.treatment == "mapped" and not (in_cube and item.instead == _SORTED_BY):
            _map(model, item, value, own)
        elif item.treatment == "noted" and stored:
            metadata |= _notes(model, item, value)
    with refusing(f"Model {model}"):
        check_user_metadata(model, metadata)
    return own, metadata


def hints(
    model: str, config: Mapping[str, Any], stored: bool, columns: Mapping[str, Any] | None = None
) -> list[Hint]:
    """Warn of configs without effect, where rows and their readers are the same anyway."""
    found, in_cube = [], bool(config.get("cube"))
    for name, item, _ in _of_columns(columns or {}):
        if item.treatment == "noted":
            text = " does nothing: only datasets have properties, not columns."
            about = f"config `{item.key}` of columns{text}"
            found.append(Hint(about, _said(f"{model}, column {name}", item, text)))
    for item, value in _given(config, stored):
        if item.treatment == "refused":
            found.append(Hint(f"{item.key}: {value}", _likewise(model, item, value)))
        elif item.key == _INDEXES and stored:
            if text := unused_indexes(ConfigReader(model, config)):
                found.append(Hint(text, _said(model, item, text)))
        elif item.key == _OPTIONS and stored:
            if unknown := ConfigReader(model, config).unknown_options():
                text = f": {', '.join(unknown)} does nothing: it is for another format or engine."
                found.append(Hint(f"options {unknown}", _said(model, item, text)))
        elif item.key in LAYOUT and stored and not in_cube:
            if text := unused_keys(ConfigReader(model, config), item.key):
                found.append(Hint(f"layout by {item.key}", _said(model, item, text)))
        elif text := _hint(item, value, in_cube, stored):
            found.append(Hint(f"config `{item.key}`{text}", _said(model, item, text)))
    return found


def without_key(model: str, how: Incremental) -> list[Hint]:
    """Warn of a strategy by key whose model names none, so that its runs only add rows."""
    if not how.keyless:
        return []
    text = (
        f"Model {model}: incremental_strategy '{how.keyless}' without a `unique_key` adds all new "
        f"rows, as `append` does. Set `unique_key` to replace old rows.{_ONE_FOR_ALL}"
    )
    return [Hint(f"{how.keyless} without unique_key", text)]


def _said(model: str, item: ForeignConfig, text: str) -> str:
    return f"Model {model}: config `{item.key}`{text}{_ONE_FOR_ALL}"


def _hint(item: ForeignConfig, value: Any, in_cube: bool, stored: bool) -> str:
    """What a config of one model does not do, after its name; empty for nothing to say."""
    if item.treatment == "warning" and item.key != _ONCE:
        advice = f" {_sentence(item.instead)}" if item.instead else ""
        return f" does nothing: {item.why}.{advice}"
    if item.instead == _SORTED_BY and in_cube:
        return (
            " does nothing: the files of a cube are sorted by partition and dimension columns. "
            "Give columns that conditions name an index: `indexes`."
        )
    if item.treatment == "noted" and not stored:
        return " does nothing: only what stores rows has properties."
    if item.key in _PROPERTIES:
        orders = [str(key) for key in value if str(key).startswith(_ORDERS)]
        if orders:
            return (
                f": {', '.join(orders)} is noted and does nothing else. The config `options` is "
                "what says how files are written."
            )
    return ""


def _likewise(model: str, item: ForeignConfig, value: Any) -> str:
    return (
        f"Model {model}, as all models with `{item.key}: {value}`, is a table of this adapter: "
        f"parquet with commits, merges, deletes and versions, but not in the format {value}. "
        "Remove the config to silence this warning."
    )


def _given(config: Mapping[str, Any], stored: bool) -> Iterator[tuple[ForeignConfig, Any]]:
    """The foreign configs with a value that requests something."""
    for item in _ALL:
        value = config.get(item.key)
        if value is None or value is False or value in ("", [], (), {}):
            continue
        if str(value).lower() not in item.fine and (stored or not item.of_tables):
            yield item, value


def _of_columns(columns: Mapping[str, Any]) -> Iterator[tuple[str, ForeignConfig, Any]]:
    """The foreign configs of columns in YAML: in `config` or `meta`, or next to their names."""
    for name, column in columns.items():
        said = column if isinstance(column, Mapping) else column.to_dict(omit_none=True)
        config = said.get("config") or {}
        for item, value in (
            *_given({**said, **config}, stored=False),
            *_of_meta(said, stored=False),
            *_of_meta(config, stored=False),
        ):
            yield name, item, value


def _of_meta(said: Mapping[str, Any], stored: bool) -> Iterator[tuple[ForeignConfig, Any]]:
    """The refused configs in `meta` that say who may read; other entries are the user's own."""
    meta = said.get("meta")
    for item, value in _given(meta if isinstance(meta, Mapping) else {}, stored):
        if item in _ACCESS:
            yield replace(item, key=f"meta.{item.key}"), value


def _refusal(model: str, item: ForeignConfig, value: Any) -> DbtConfigError:
    is_what = f" is {value!r}, but" if item.fine else " cannot be carried out:"
    return DbtConfigError(
        f"Model {model}: config `{item.key}`{is_what} {item.why}. Nothing was written. "
        f"{_sentence(item.instead)}"
    )


def _map(model: str, item: ForeignConfig, value: Any, own: dict[str, Any]) -> None:
    """Put a value under this adapter's name."""
    name, _, option = item.instead.partition(".")
    known = own.get(name) or None
    if option:
        if known is not None and not isinstance(known, Mapping):
            return  # the reader of the options refuses it
        options: Mapping[str, Any] = known or {}
        known, merged = options.get(option), {**options, option: value}
    else:
        merged = value
    if known is not None and known != value:
        raise DbtConfigError(
            f"Model {model}: config `{item.key}` is another name for `{item.instead}`, which is "
            f"given too: {value!r} and {known!r}. Keep one of them."
        )
    own[name] = merged


def _notes(model: str, item: ForeignConfig, value: Any) -> Mapping[str, Any]:
    """The metadata entries of a dataset that a config sets."""
    if item.key not in _PROPERTIES:
        return {item.key: value}
    if not isinstance(value, Mapping):
        raise DbtConfigError(
            f"Model {model}: config `{item.key}` must be a mapping of names to values, but is "
            f"{value!r}."
        )
    return value


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
