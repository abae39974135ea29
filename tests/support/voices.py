"""What the engine says, in the words of those who ask."""

from importlib.util import find_spec

from ktk_engine.cli.voice import COMMAND
from ktk_engine.messages import PYTHON, Message, Remedy, joined, spoken

if find_spec("dbt") is not None and find_spec("dbt.adapters.base") is not None:
    from dbt.adapters.ktk.voice import DBT
else:
    DBT = None  # the engine alone is installed: see `make test-connect`

__all__ = ["COMMAND", "DBT", "PYTHON", "Message", "Remedy", "joined", "spoken"]
