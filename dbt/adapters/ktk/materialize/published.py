"""Publishes a dataset in the formats of its model's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from traceback import format_exc

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.ktk.config.model_config import DatasetConfig
from dbt.adapters.ktk.materialize.outcome import Outcome
from dbt.adapters.ktk.voice import DBT
from ktk_engine.errors import KtkError
from ktk_engine.publish.publish_datasets import follow_setting
from ktk_engine.store.interface import ObjectStore

_LOGGER = AdapterLogger("ktk")


def published(
    outcome: Outcome, store: ObjectStore, config: DatasetConfig, history: Mapping[str, str]
) -> Outcome:
    """Start or stop publishing a dataset in other formats; a failure is a warning only.

    The dataset remembers its formats, so this acts only on a new configuration.
    """
    if config.publish is None:
        return outcome
    try:
        follow_setting(store, config.target.uuid, config.publish, history)
    except KtkError as error:
        _LOGGER.warning(f"{config.target} was written, but not published: {error.said(DBT)}")
    except Exception as error:  # noqa: BLE001 (a bug: the rows are committed)
        _LOGGER.warning(f"{config.target} was written, but could not be published: {error!r}")
        _LOGGER.debug(format_exc())
    else:
        return outcome
    return outcome.remarked(["not published, see the warning above"])
