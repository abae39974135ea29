"""Names of types: reads Arrow and SQL names, writes Arrow and Spark SQL names.

`columns: data_type` in a model's YAML accepts both kinds, and messages print them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate

import pyarrow as pa
import pyarrow.types as pat

from ktk_engine.errors import TypeClassError
from ktk_engine.types.did_you_mean import did_you_mean_clause
from ktk_engine.types.type_class import (
    MAX_DECIMAL_PRECISION,
    MAX_NESTING,
    TypeWithoutClass,
    is_list,
    normalize,
    unwrap,
)

_SIMPLE: dict[str, pa.DataType] = {
    **{name: pa.type_for_alias(name) for name in ("int8", "int16", "int32", "int64")},
    **{name: pa.type_for_alias(name) for name in ("uint8", "uint16", "uint32", "uint64")},
    **{name: pa.float16() for name in ("halffloat", "float16")},
    **{name: pa.float32() for name in ("float", "float32", "real")},
    **{name: pa.float64() for name in ("double", "float64", "double precision")},
    **{name: pa.bool_() for name in ("bool", "boolean")},
    **{name: pa.string() for name in ("string", "utf8", "str", "text", "varchar", "char")},
    **{name: pa.binary() for name in ("binary", "bytes", "bytea", "varbinary")},
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "null": pa.null(),
    "void": pa.null(),
    **{name: pa.date32() for name in ("date", "date32")},
    "date64": pa.date64(),
    **{name: pa.time64("us") for name in ("time", "time64")},
    "time32": pa.time32("ms"),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ltz": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "decimal": pa.decimal128(10, 0),
    "numeric": pa.decimal128(10, 0),
    "dec": pa.decimal128(10, 0),
}

_UNITS = ("s", "ms", "us", "ns")

_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([\w+/-]+)|(.))", re.DOTALL)

_PLAIN_FIELD = re.compile(r"\w+\Z")


@dataclass
class _Tokens:
    """The tokens of a type's name, and the reader's position."""

    text: str
    tokens: list[str] = field(default_factory=list)
    at: int = 0

    def peek(self, ahead: int = 0) -> str:
        """Give a later token, or "" at the end."""
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ""

    def take(self) -> str:
        """Give the next token and advance."""
        token = self.peek()
        self.at += 1
        return token

    def skip(self, token: str) -> bool:
        """Advance over a token if it is the next one."""
        found = self.peek().lower() == token
        self.at += found
        return found

    def expect(self, token: str) -> None:
        """Advance over a token, which must be the next one."""
        if not self.skip(token):
            raise TypeClassError(f"`{self.text}` is not a type: expected `{token}` {self._where()}")

    def number(self) -> int:
        """Take an integer."""
        token = self.take()
        if not re.fullmatch(r"-?[0-9]{1,18}", token):
            self.at -= 1
            raise TypeClassError(f"`{self.text}` is not a type: expected a number {self._where()}")
        return int(token)

    def _where(self) -> str:
        """Describe the reader's position."""
        return f"before `{self.peek()}`" if self.peek() else "at the end"


# Nested types in SQL, as examples.
_PARTS = {
    "struct": "struct<a: string, b: int>",
    "array": "array<int>",
    "map": "map<string, int>",
}


def parse_type(text: str) -> pa.DataType:
    """Read the name of a type, in Arrow (`list<item: int64>`) or SQL (`array<bigint>`).

    Arrow names are those that pyarrow prints; in structs, names of fields may be in backticks.
    Where SQL and Arrow differ, SQL's `timestamp` is timestamp[us, tz=UTC] and Arrow's has a unit in
    brackets; `float` has 32 bits in both. Raises a `TypeClassError` that suggests the nearest name.
    """
    tokens = _Tokens(text)
    for match in _TOKEN.finditer(text.strip()):
        quoted, word, sign = match.groups()
        tokens.tokens.append(f"`{quoted}" if quoted is not None else word or sign)
    opened = accumulate((token in "<(") - (token in ">)") for token in tokens.tokens)
    if max(opened, default=0) > MAX_NESTING:
        raise TypeClassError(
            f"`{text[:60]}...` has more than {MAX_NESTING} levels of nesting, which is the limit"
        )
    try:
        result = _type(tokens)
    except ValueError as error:
        raise TypeClassError(f"`{text}` is not a type: {error}") from error
    if tokens.peek():
        raise TypeClassError(f"`{text}` is not a type: unexpected `{tokens.peek()}`")
    return result


def arrow_name(t: pa.DataType) -> str:
    """Print a type as pyarrow does, so that `parse_type` reads it back."""
    if isinstance(t, TypeWithoutClass):
        return t.spark_name
    if pat.is_struct(t):
        fields = [f"{_field_name(f.name)}: {_field_type(f)}" for f in t]
        return f"struct<{', '.join(fields)}>"
    if pat.is_map(t):
        ordered = ", keys_sorted" if t.keys_sorted else ""
        return f"map<{arrow_name(t.key_type)}, {_field_type(t.item_field)}{ordered}>"
    if pat.is_dictionary(t):
        values, indices = arrow_name(t.value_type), arrow_name(t.index_type)
        return f"dictionary<values={values}, indices={indices}, ordered={int(t.ordered)}>"
    if is_list(t):
        kind = str(t).partition("<")[0]
        size = f"[{t.list_size}]" if pat.is_fixed_size_list(t) else ""
        item = f"{_field_name(t.value_field.name)}: {_field_type(t.value_field)}"
        return f"{kind}<{item}>{size}"
    return str(t)


def sql_name(t: pa.DataType) -> str:
    """Name the Spark SQL type of a type's class, as in a cast.

    For example `bigint` for signed integers, `decimal(20,0)` for unsigned ones (decision 12),
    `timestamp_ntz` for timestamps without and `timestamp` for those with a zone (decision 7).
    """
    normalize(t)
    return _sql_name(t)


def _sql_name(t: pa.DataType) -> str:
    """Name the Spark SQL type; structs keep the order of their fields."""
    t = unwrap(t)
    if is_list(t):
        return f"array<{_sql_name(t.value_type)}>"
    if pat.is_map(t):
        return f"map<{_sql_name(t.key_type)}, {_sql_name(t.item_type)}>"
    if pat.is_struct(t):
        fields = [f"{_field_name(f.name)}: {_sql_name(f.type)}" for f in t]
        return f"struct<{', '.join(fields)}>"
    if pat.is_decimal(t):
        return f"decimal({MAX_DECIMAL_PRECISION},{t.scale})"
    if pat.is_timestamp(t):
        return "timestamp_ntz" if t.tz is None else "timestamp"
    names = {
        pa.int64(): "bigint",
        pa.uint64(): "decimal(20,0)",
        pa.float64(): "double",
        pa.bool_(): "boolean",
        pa.date32(): "date",
        pa.time64("us"): "time(6)",
        pa.null(): "void",
    }
    container = normalize(t)
    return names.get(container, str(container))


def _field_name(name: str) -> str:
    """Print the name of a nested field, in backticks if needed."""
    if _PLAIN_FIELD.match(name):
        return name
    return "`" + name.replace("`", "``") + "`"


def _field_type(nested: pa.Field) -> str:
    """Print the type of a nested field with its nullability, as pyarrow does."""
    return arrow_name(nested.type) + ("" if nested.nullable else " not null")


def _type(tokens: _Tokens) -> pa.DataType:
    """Read one type."""
    word = tokens.take()
    name = word.lower()
    if name == "double" and tokens.skip("precision"):
        return pa.float64()
    reader = _READERS.get(name)
    if reader is not None and tokens.peek() in ("<", "[", "("):
        return reader(name, tokens)
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name in _PARTS:
        raise TypeClassError(
            f"`{tokens.text}` is not a type: `{word}` needs the types of its parts, for instance "
            f"{_PARTS[name]}"
        )
    hint = did_you_mean_clause(name, {*_SIMPLE, *_READERS})
    raise TypeClassError(f"`{tokens.text}` is not a type: `{word.lstrip('`')}` is unknown{hint}")


def _nullable(tokens: _Tokens) -> bool:
    """Advance over "not null" and tell whether it was missing."""
    if tokens.skip("not"):
        tokens.expect("null")
        return False
    return True


def _named_field(tokens: _Tokens, default: str | None = None) -> pa.Field:
    """Read `name: type`; the name is optional if there is a default."""
    name = default
    if default is None or tokens.peek(1) == ":":
        name = tokens.take()
        name = name[1:].replace("``", "`") if name.startswith("`") else name
        tokens.expect(":")
    nested = _type(tokens)
    return pa.field(name, nested, nullable=_nullable(tokens))


def _list(name: str, tokens: _Tokens) -> pa.DataType:
    """Read a list's element type, and the size of a fixed-size list."""
    tokens.expect("<")
    item = _named_field(tokens, default="item")
    tokens.expect(">")
    if name == "fixed_size_list":
        tokens.expect("[")
        size = tokens.number()
        tokens.expect("]")
        return pa.list_(item, size)
    makers: dict[str, Callable[[pa.Field], pa.DataType]] = {
        "large_list": pa.large_list,
        "list_view": pa.list_view,
        "large_list_view": pa.large_list_view,
    }
    return makers.get(name, pa.list_)(item)


def _struct(_name: str, tokens: _Tokens) -> pa.DataType:
    """Read the fields of a struct."""
    tokens.expect("<")
    fields: list[pa.Field] = []
    while not tokens.skip(">"):
        if fields:
            tokens.expect(",")
        fields.append(_named_field(tokens))
    return pa.struct(fields)


def _map(_name: str, tokens: _Tokens) -> pa.DataType:
    """Read the key and value types of a map."""
    tokens.expect("<")
    key = _type(tokens)
    _nullable(tokens)
    tokens.expect(",")
    value = _type(tokens)
    nullable = _nullable(tokens)
    ordered = tokens.skip(",")
    if ordered:
        tokens.expect("keys_sorted")
    tokens.expect(">")
    return pa.map_(key, pa.field("value", value, nullable=nullable), keys_sorted=ordered)


def _dictionary(_name: str, tokens: _Tokens) -> pa.DataType:
    """Read a dictionary: pyarrow's long form, or only the value type."""
    tokens.expect("<")
    values, indices, ordered = None, pa.int32(), False
    while not tokens.skip(">"):
        key = tokens.take().lower() if tokens.peek(1) == "=" else "values"
        tokens.skip("=")
        if key == "values":
            values = _type(tokens)
        elif key == "indices":
            indices = _type(tokens)
        elif key == "ordered":
            ordered = bool(tokens.number())
        else:
            raise TypeClassError(f"`{tokens.text}` is not a type: a dictionary has no `{key}`")
        tokens.skip(",")
    if values is None or not pat.is_integer(indices):
        raise TypeClassError(f"`{tokens.text}` is not a type: write `dictionary<string>`")
    return pa.dictionary(indices, values, ordered)


def _temporal(name: str, tokens: _Tokens) -> pa.DataType:
    """Read a date, time or timestamp with unit and zone in brackets, or SQL's time(6)."""
    if tokens.skip("("):
        tokens.number()
        tokens.expect(")")
        return _SIMPLE[name]
    tokens.expect("[")
    unit = tokens.take()
    zone: str | None = None
    if tokens.skip(","):
        if tokens.skip("tz"):
            tokens.expect("=")
        zone = ""
        while tokens.peek() not in ("]", ""):
            zone += tokens.take()
    tokens.expect("]")
    allowed = {
        "date32": ("day",),
        "date64": ("ms",),
        "time32": ("s", "ms"),
        "time64": ("us", "ns"),
    }.get(name, _UNITS)
    if unit not in allowed:
        raise TypeClassError(f"`{tokens.text}` is not a type: {name} has {' or '.join(allowed)}")
    if name == "timestamp":
        return pa.timestamp(unit, tz=zone)
    if zone is not None:
        raise TypeClassError(f"`{tokens.text}` is not a type: only timestamps have a zone")
    return (
        {"time32": pa.time32, "time64": pa.time64}[name](unit) if "time" in name else _SIMPLE[name]
    )


def _decimal(name: str, tokens: _Tokens) -> pa.DataType:
    """Read precision and scale."""
    tokens.expect("(")
    precision, scale = tokens.number(), 0
    if tokens.skip(","):
        scale = tokens.number()
    tokens.expect(")")
    if name not in ("decimal32", "decimal64", "decimal256"):
        name = "decimal128"
    if not hasattr(pa, name):
        raise TypeClassError(
            f"`{tokens.text}` is a type that Arrow {pa.__version__} does not have yet (19 has it). "
            f"Write decimal128({precision},{scale}), which holds the same values."
        )
    maker: Callable[[int, int], pa.DataType] = getattr(pa, name)
    return maker(precision, scale)


def _sized(name: str, tokens: _Tokens) -> pa.DataType:
    """Read a type with a length, which only fixed-size binary keeps."""
    closing = {"(": ")", "[": "]"}.get(tokens.take(), ">")
    size = tokens.number()
    tokens.expect(closing)
    return pa.binary(size) if name == "fixed_size_binary" else _SIMPLE[name]


_READERS: dict[str, Callable[[str, _Tokens], pa.DataType]] = {
    **dict.fromkeys(("list", "array", "large_list", "fixed_size_list"), _list),
    **dict.fromkeys(("list_view", "large_list_view"), _list),
    "struct": _struct,
    "map": _map,
    "dictionary": _dictionary,
    **dict.fromkeys(("date32", "date64", "time32", "time64", "timestamp", "time"), _temporal),
    **dict.fromkeys(("decimal", "numeric", "dec"), _decimal),
    **dict.fromkeys(("decimal32", "decimal64", "decimal128", "decimal256"), _decimal),
    **dict.fromkeys(("varchar", "char", "fixed_size_binary"), _sized),
}
