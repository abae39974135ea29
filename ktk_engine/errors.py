"""The errors of the engine: one base class, narrow subclasses with the field's words.

A message says what is wrong, where (cube, dataset, column, file), what was and was not
written, and what to do next.
"""

from __future__ import annotations

import re

from ktk_engine.messages import Message, Remedy, Voice

# A scheme, then `user@`, or `user:secret@` whose secret may hold slashes; a port is no secret.
_USERINFO = re.compile(
    r"([A-Za-z][A-Za-z0-9+.\-]*):(/{1,3})"
    r"([^\s/@:'\"]*:(?!\d+(?:/|$))[^\s@'\"]*|[^\s/@'\"]+)@"
)
_QUERY = re.compile(r"\b(?!file:)([A-Za-z][A-Za-z0-9+.\-]*://[^\s?'\"]*)\?[^\s'\"]+")
# Parameters of a server of Spark Connect; one of them is a token.
_PARAMETERS = re.compile(r"\b(sc://[^\s/;'\"]*/?;)[^\s'\"]+")
# What stands in front of the @ of these is a container.
_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")


def without_secrets(text: str) -> str:
    """Mask user, secret, query and parameters of each URL in a text; they may be keys.

    Args:
        text: for people: a message, or an address.
    """
    if ":/" not in text:
        return text
    text = _PARAMETERS.sub(r"\1***", text)
    return _QUERY.sub(r"\1?***", _USERINFO.sub(_masked, text))


def _masked(match: re.Match[str]) -> str:
    scheme, slashes, user = match.groups()
    if scheme.lower() == "file" or (scheme.lower() in _CONTAINERS and ":" not in user):
        return match[0]
    return f"{scheme}:{slashes}***@"


class KtkError(Exception):
    """Base class of every error that this library raises on purpose; shows no secret of a URL.

    Attributes:
        message: what it says, with its remedies as data.
    """

    def __init__(self, message: object = "", *rest: object) -> None:
        parts = message.parts if isinstance(message, Message) else (str(message),)
        self.message = Message(*(without_secrets(p) if isinstance(p, str) else p for p in parts))
        super().__init__(str(self.message), *rest)

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What one can do about it."""
        return self.message.remedies

    def said(self, voice: Voice) -> str:
        """Give its message in the words of a voice; `str` gives it in Python's."""
        return self.message.said(voice)


class ConfigurationError(KtkError):
    """A setting, a profile or a model's configuration is wrong or incomplete."""


class SpecificationError(KtkError):
    """A cube's specification breaks a rule, whatever the data."""


class ConsistencyError(KtkError):
    """Datasets of one cube contradict each other."""


class TypeClassError(KtkError):
    """Columns break the rules of type classes; nothing was written.

    Attributes:
        findings: one entry per column that breaks a rule, as far as there are several.
    """

    def __init__(self, message: object, findings: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.findings = findings


class DataError(KtkError):
    """Rows break a rule (duplicate cell, null, lost precision); nothing was committed.

    Attributes:
        findings: one entry a rule and column, as far as there are several.
    """

    def __init__(self, message: object, findings: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.findings = findings


class ConditionError(KtkError):
    """A condition cannot be parsed, or compares a column with a value of another class."""


class QueryError(KtkError):
    """A query asks for something that the cube does not have or cannot give."""


class LocalEngineError(QueryError):
    """A query cannot be answered within this process; Spark can answer it."""


class DatasetNotFoundError(KtkError):
    """A cube, dataset or relation does not exist."""


class FormatError(KtkError):
    """A stored document or file is damaged or breaks the format's rules."""


class UnsupportedFormatError(FormatError):
    """A stored document or file of a form that this version does not know; it may well be sound."""


class StoreError(KtkError):
    """A store could not do what it was asked; whether it did part of it is unknown.

    Attributes:
        nothing_written: whether it is known that the store did nothing of it. Only said by
            stores, and only where it is certain.
    """

    def __init__(self, message: object, *, nothing_written: bool = False) -> None:
        super().__init__(message)
        self.nothing_written = nothing_written


class InvalidKeyError(StoreError):
    """A key is not a safe relative path, or lies outside its dataset."""


class ObjectNotFoundError(StoreError):
    """No object has this key. Only raised when the store said so."""


class ObjectExistsError(StoreError):
    """An object with this key exists already, and was left as it is."""


class TokenMismatchError(StoreError):
    """The object changed since its token was read, and was left as it is."""


class CommitConflictError(KtkError):
    """Another commit changed what this one is based on; nothing was committed."""


class CommitStateUnknownError(KtkError):
    """The store gave no answer about the commit; nothing was deleted, it may stand."""


class VersionGoneError(KtkError):
    """A clean-up removed files of a version while it was read."""


class ForeignWriterError(KtkError):
    """Another program changed a dataset behind the log; refused for writing."""


class ForeignWriterWarning(UserWarning):
    """Another program changed a dataset behind the log; what is read is what the log has."""


class SourceWarning(UserWarning):
    """Files of a source differ in what they have; what is read of them is said."""


class PublishError(KtkError):
    """What is committed cannot be published in another format as it is; the commit stands."""


class SessionError(KtkError):
    """Spark or Java is missing, too old, or could not be started; or no temporary file could."""
