"""The errors of the engine: one base class, narrow subclasses with terms of the field.

A message says what is wrong, where (cube, dataset, column, file), what was and was not written, and
what to do next.
"""

from __future__ import annotations

import re
from typing import Self

from ktk_engine.messages import Message, Remedy, Spoken, Voice, printable

# Others may have written the text, so each expression looks at each stretch of it only once.
_BEFORE_AT = re.compile(r"(?<![^\s@'\"])[^\s@'\"]++@")
# A scheme, then `user@`, or `user:secret@` whose secret may contain slashes; a port is not a
# secret.
_USERINFO = re.compile(
    r"([A-Za-z][A-Za-z0-9+.\-]{0,63}):(/{1,3})"
    r"([^\s/@:'\"]*+:(?!\d+/)[^\s@'\"]*+|[^\s/@'\"]++)@"
)
# A secret may hold an @, so all up to the last one is part of it.
_TO_LAST_AT = re.compile(r"\*\*\*:@(?:[^\s@'\"]*+@)*+")
_QUERY = re.compile(
    r"(?<![^\s?'\"])((?>[^\s?'\"]*?[A-Za-z0-9+.\-]://(?<!\bfile://))[^\s?'\"]*+)\?[^\s'\"]++"
)
# Parameters of a Spark Connect server, such as its token.
_PARAMETERS = re.compile(r"\b(sc://[^\s/;'\"]*/?;)[^\s'\"]+")
# In these, a container precedes the @.
_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")


def without_secrets(text: str) -> str:
    """Mask user, secret, query and parameters of each URL in a text, which may be keys."""
    if ":/" not in text:
        return text
    text = _PARAMETERS.sub(r"\1***", text)
    text = _BEFORE_AT.sub(lambda match: _USERINFO.sub(_masked, match[0]), text)
    text = _TO_LAST_AT.sub("***@", text)
    return _QUERY.sub(r"\1?***", text)


def _shown(text: str) -> str:
    return printable(without_secrets(text))


def _masked(match: re.Match[str]) -> str:
    scheme, slashes, user = match.groups()
    if scheme.lower() == "file" or (scheme.lower() in _CONTAINERS and ":" not in user):
        return match[0]
    return f"{scheme}:{slashes}***{':' if ':' in user else ''}@"


class KtkError(Exception):
    """Base class of every error that this library raises on purpose.

    It shows no secret of a URL and no control character.

    Attributes:
        message: what it says, with its remedies as data.
        committed: whether the change was committed before the error, and stays so.
    """

    committed = False

    def __init__(self, *parts: object) -> None:
        """Make an error of the parts of its message."""
        said = (p if isinstance(p, Spoken) else _shown(str(p)) for p in Message(*parts).parts)
        self.message = Message(*said)
        super().__init__(str(self.message))

    def with_message(self, *parts: object) -> Self:
        """The same error with another message: it keeps notes, findings, and what was committed."""
        error = type(self)(Message(*parts))
        vars(error).update({**vars(self), "message": error.message})
        return error

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What can be done about it."""
        return self.message.remedies

    def said(self, voice: Voice) -> str:
        """Give its message in a voice; `str` gives it in Python's."""
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
        findings: one entry per column that breaks a rule; empty if the message says it all.
    """

    def __init__(self, message: object, findings: tuple[object, ...] = ()) -> None:
        super().__init__(message)
        self.findings = findings


class DataError(KtkError):
    """Rows break a rule (duplicate cell, null, lost precision); nothing was committed.

    Attributes:
        findings: one entry per rule and column; empty if the message says it all.
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
    """A stored document or file has a form that this version does not support; it may be intact."""


class StoreError(KtkError):
    """An operation of a store failed; whether it was done in part is unknown.

    Attributes:
        nothing_written: whether the store has certainly done nothing. Only stores set it.
    """

    def __init__(self, message: object, *, nothing_written: bool = False) -> None:
        super().__init__(message)
        self.nothing_written = nothing_written


class InvalidKeyError(StoreError):
    """A key is not a safe relative path, or is outside of its dataset."""


class ObjectNotFoundError(StoreError):
    """No object has this key; raised only if the store says so."""


class ObjectExistsError(StoreError):
    """An object with this key already exists; it was not changed."""


class TokenMismatchError(StoreError):
    """The object changed since its token was read; it was not changed."""


class CommitConflictError(KtkError):
    """Another commit changed what this one is based on; nothing was committed."""


class CommitStateUnknownError(KtkError):
    """The store did not answer about the commit, which may have succeeded; nothing was deleted."""


class VersionGoneError(KtkError):
    """A clean-up deleted files of a version while it was read."""


class ForeignWriterError(KtkError):
    """Another program changed a dataset without the log, so writing is refused."""


class _StoreWarning(UserWarning):
    """A warning about what others have stored; shows no control character."""

    def __str__(self) -> str:
        return printable(super().__str__())


class ForeignWriterWarning(_StoreWarning):
    """Another program changed a dataset without the log; reads return what the log has."""


class SourceWarning(_StoreWarning):
    """Files of a source differ in their columns; the warning says which are read."""


class PublishWarning(UserWarning):
    """Readers of a published dataset find it elsewhere, or another program wrote to its record."""


class PublishError(KtkError):
    """A commit cannot be published in another format; the commit itself remains."""


class SessionError(KtkError):
    """Spark or Java is missing, too old, or could not start, or a temporary file failed."""
