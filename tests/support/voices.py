"""What the engine says, in the words of those who ask."""

from dbt.adapters.ktk.voice import DBT
from ktk_engine.cli.voice import COMMAND
from ktk_engine.messages import PYTHON, Message, Remedy, joined, spoken

__all__ = ["COMMAND", "DBT", "PYTHON", "Message", "Remedy", "joined", "spoken"]
