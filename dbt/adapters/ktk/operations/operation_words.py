"""Says what the command `ktk` says in the words of `dbt run-operation`."""

from __future__ import annotations

import re

# What follows a command without a name; elsewhere that is one name.
_ARGUMENTS = {
    "remove": ("cube", "dataset"),
    "undrop": ("cube", "dataset"),
    "compact": ("cube",),
    "explain": ("cube", "where"),
    "tag": ("cube", "name"),
    "copy": ("cube", "into"),
    "rename": ("cube", "new"),
    "index": ("cube", "columns"),
    "report": ("cube",),
    "restore": ("cube",),
}
_COMMAND = re.compile(r"\bktk (\w+)((?: [\w+][\w+-]*(?:\.[\w+-]+)*)*)((?: --[a-z][\w-]*)+)")
# What a person has to fill in is in capitals: `--version N`.
_FLAG = re.compile(r"(?<!\S)--([a-z][a-z-]*)(?: ([A-Z]+))?(?=[\s.,;:]|$)")


def operation_words(text: str) -> str:
    """Give a text without flags of the command line.

    Args:
        text: maybe with commands, such as `ktk remove nyc flights --cascade`, or flags alone.

    Returns:
        The text with run-operations and arguments in their place, such as `cascade: true`.
    """
    said, end = [], 0
    for match in _COMMAND.finditer(text):
        said += [_without_flags(text[end : match.start()]), _operation(match)]
        end = match.end()
    return "".join([*said, _without_flags(text[end:])])


def missing_argument(command: str, given: int) -> str:
    """Name the first argument that an operation needs and was not given.

    Args:
        command: of `ktk`.
        given: how many arguments it has.
    """
    return _ARGUMENTS.get(command, ("name",))[given]


def _without_flags(text: str) -> str:
    return _FLAG.sub(lambda match: _given(match[1], match[2] or "true"), text)


def _operation(match: re.Match[str]) -> str:
    verb, words, flags = match[1], match[2].split(), match[3].split()
    names = _ARGUMENTS.get(verb, ("name",))
    if len(words) > len(names):
        return match[0]
    given = [f"{name}: {word}" for name, word in zip(names, words, strict=False)]
    given += [_given(flag.removeprefix("--"), "true") for flag in flags]
    return f"dbt run-operation ktk_{verb} --args '{{{', '.join(given)}}}'"


def _given(flag: str, value: str) -> str:
    return f"{flag.replace('-', '_')}: {value}"
