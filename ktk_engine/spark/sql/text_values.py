"""Values of CSV and JSON files: read as text, and converted by SQL that changes none of them.

Spark's own readers round decimals, cut times off dates and take `1d` for a number. See
docs/sources.md, Values of CSV and JSON.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pat
import pyspark  # noqa: F401
from pyspark.sql import types as st

from ktk_engine.errors import SourceWarning
from ktk_engine.spark.session.session import expression
from ktk_engine.types.arrow_name import parse_type
from ktk_engine.types.quote import quote_identifier, quote_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Options of Spark's reader whose meaning only that knows: it then converts the values itself.
SPARKS_OWN = frozenset(
    """
    columnnameofcorruptrecord enabledatetimeparsingfallback locale mode preferdate samplingratio
    timestampntzformat timezone
    """.split()  # noqa: SIM905
)

_LENGTH = re.compile(r"\s*(?:var)?char\s*\(\s*(\d+)\s*\)\s*", re.IGNORECASE)
# Patterns have no backslash, so that they mean the same in each dialect of SQL.
_INTEGER = "[+-]?[0-9]+"
_NUMBER = "[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?"
_SPECIAL = "NaN|[+-]?(Inf|INF|Infinity)"
# Few digits with an exponent: a double tells whether a decimal has the same value.
_SHORT = "[+-]?(?=[0-9.]{1,16}[eE])([0-9]+[.]?[0-9]*|[.][0-9]+)[eE][+-]?[0-9]+"
_DATE = "[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}"
_CLOCK = "[0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}([.][0-9]{0,6}0*)?)?"
_ZONE = " ?(Z|UTC|GMT|[+-][0-9]{1,2}(:?[0-9]{2})?|[A-Za-z_]+(/[A-Za-z_]+)+)"
_LEADING_ZERO = "[+-]?0[0-9].*"
# What texts may be, the narrowest type first.
_CANDIDATES: tuple[st.DataType, ...] = (
    st.IntegerType(),
    st.LongType(),
    st.DecimalType(38, 0),
    st.DoubleType(),
    st.BooleanType(),
    st.DateType(),
    st.TimestampType(),
)
_SAMPLE = 1_000  # rows
_NO_ZEROS = 1 << len(_CANDIDATES)


@dataclass(frozen=True)
class TextValues:
    """Converts texts of one source's files, as options of Spark's reader say."""

    options: Mapping[str, str]  # in lower case
    source: str  # for messages
    declared: Mapping[str, str]  # column -> its type in the user's words

    def infer(self, frame: DataFrame, names: Collection[str]) -> dict[str, st.DataType]:
        """Find the first type that all texts of a column fit, for some columns of a frame.

        Warns of numbers whose leading zeros are lost.
        """
        # A few rows mostly tell the type, and then one comparison for each value is enough.
        count, bits = self._bits(frame.limit(_SAMPLE), {name: self._fits(name) for name in names})
        found = {name: _first(fitting) for name, fitting in bits.items()}
        if count == _SAMPLE:
            known = {name: t for name, t in found.items() if t != st.StringType()}
            _, fit = self._bits(frame, {name: self._fits(name, t) for name, t in known.items()})
            again = [name for name, fitting in fit.items() if not fitting & 1]
            _, all_bits = self._bits(frame, {name: self._fits(name) for name in again})
            found |= {name: _first(fitting) for name, fitting in all_bits.items()}
            bits |= {**fit, **all_bits}
        zeros = [name for name, t in found.items() if _is_number(t) and not bits[name] & _NO_ZEROS]
        if zeros:
            warnings.warn(
                f"Source {self.source}: leading zeros are lost, since all values are numbers: "
                f"{', '.join(zeros)}. To keep them, declare the data_type string.",
                SourceWarning,
                stacklevel=1,
            )
        return found

    def _bits(self, frame: DataFrame, fits: Mapping[str, str]) -> tuple[int, dict[str, int]]:
        """How many rows there are, and the bits that all texts of each column have."""
        if not fits:
            return 0, {}
        session = frame.sparkSession
        chosen = [expression(session, f"bit_and({sql})") for sql in fits.values()]
        count, *row = frame.select(expression(session, "count(*)"), *chosen).collect()[0]
        return count, {name: bits or 0 for name, bits in zip(fits, row, strict=True)}

    def _fits(self, name: str, only: st.DataType | None = None) -> str:
        """SQL for bits of the candidates that a column's text fits, or whether it fits one."""
        text = quote_identifier(name)
        zeros = f"if({text} like '%0%' and {_like(text, _LEADING_ZERO)}, 0, {_NO_ZEROS})"
        exact = (  # no integer is rounded
            f"({text} not rlike '[0-9]{{16}}' or try_cast(try_cast({text} as double) as "
            f"decimal(38,0)) = try_cast({text} as decimal(38,0)))"
        )

        def fit(t: st.DataType) -> str:
            if isinstance(t, st.DecimalType):
                return f"{_like(text, _INTEGER)} and try_cast({text} as decimal(38,0)) is not null"
            fitting = f"{self.typed(text, t)} is not null"
            return f"{fitting} and {exact}" if isinstance(t, st.DoubleType) else fitting

        if only is not None:
            fitting = f"if({fit(only)}, 1, 0)"
        else:
            fitting = " + ".join(f"if({fit(t)}, {1 << i}, 0)" for i, t in enumerate(_CANDIDATES))
        return f"case when {text} is not null then {fitting} + {zeros} end"

    def typed(self, text: str, t: st.DataType) -> str:
        """SQL for the value of a text, null where it is none of a flat type."""
        cast = f"try_cast({text} as {t.simpleString()})"
        if isinstance(t, st.StringType):
            return text
        if isinstance(t, st.BooleanType):
            return f"case lower(trim({text})) when 'true' then true when 'false' then false end"
        if isinstance(t, st.IntegralType):
            return f"case when {_like(text, _INTEGER)} then {cast} end"
        if isinstance(t, st.DecimalType):
            whole = f"[0-9]{{0,{t.precision - t.scale}}}"
            plain = f"(?=[+-]?[.]?[0-9])[+-]?0*{whole}([.][0-9]{{0,{t.scale}}}0*)?"
            return (
                f"case when {_like(text, plain)} then {cast} when {_like(text, _SHORT)} and "
                f"cast({cast} as double) = try_cast({text} as double) then {cast} end"
            )
        if isinstance(t, st.FractionalType):
            return self._float(text, cast)
        if isinstance(t, st.BinaryType):
            return f"cast({text} as binary)"
        return self._moment(text, t, cast)

    def _float(self, text: str, cast: str) -> str:
        named = {"nanvalue": "NaN", "positiveinf": "Infinity", "negativeinf": "-Infinity"}
        when = "".join(
            f"when {text} = {quote_text(self.options[option])} then cast('{value}' as double) "
            for option, value in named.items()
            if option in self.options
        )
        return (
            f"case {when}when {_like(text, _SPECIAL)} then {cast} "
            f"when {_like(text, _NUMBER)} and abs({cast}) < cast('Infinity' as double) "
            f"then {cast} end"
        )

    def _moment(self, text: str, t: st.DataType, cast: str) -> str:
        """SQL for a date or time, which has no part that its type would cut off."""
        option = {"date": "dateformat", "timestamp": "timestampformat"}.get(t.simpleString(), "")
        if option in self.options:
            parsed = f"try_to_timestamp({text}, {quote_text(self.options[option])})"
            return f"cast({parsed} as {t.simpleString()})"
        patterns = {
            "date": _DATE,
            "timestamp": f"{_DATE}([ T]{_CLOCK}({_ZONE})?)?",
            "timestamp_ntz": f"{_DATE}([ T]{_CLOCK})?",
        }
        pattern = patterns.get(t.simpleString(), _CLOCK)
        return f"case when {_like(text, pattern)} then {cast} end"

    def exact(self, text: str, t: st.DataType, name: str) -> str:
        """SQL for a value of the column `name`, whose nested texts are converted too.

        It raises an error where a text is not a value of its type.
        """
        known = self.declared.get(name)
        return self._exact(text, t, name, parse_type(known) if known else None)

    def _exact(
        self, text: str, t: st.DataType, name: str, said: pa.DataType | None, depth: int = 0
    ) -> str:
        """SQL for a value, whose declared type is also told as Arrow's."""
        inner, below = f"x{depth}", depth + 1
        if isinstance(t, st.StructType):
            parts = ", ".join(
                f"{quote_text(f.name)}, "
                + self._exact(f"{text}.{quote_identifier(f.name)}", f.dataType, name, of, below)
                for f in t.fields
                for of in [said and said.field(f.name).type]
            )
            return f"case when {text} is not null then named_struct({parts}) end"
        if isinstance(t, st.ArrayType):
            value = self._exact(inner, t.elementType, name, said and said.value_type, below)
            return f"transform({text}, {inner} -> {value})"
        if isinstance(t, st.MapType):
            value = self._exact(inner, t.valueType, name, said and said.item_type, below)
            return f"transform_values({text}, (k{depth}, {inner}) -> {value})"
        shown = self.declared.get(name, t.simpleString())
        value, length = self.typed(text, t), _LENGTH.fullmatch(shown)
        if said and pat.is_unsigned_integer(said):
            value = (
                f"case when {_like(text, _INTEGER)} and {value} between 0 and {2**64 - 1} then "
                f"{value} end"
            )
        if isinstance(t, st.StringType):
            if not length:
                return text
            value = f"case when char_length({text}) <= {length[1]} then {text} end"
        message = (
            f"concat({quote_text(f'Source {self.source}: column {name} has ')}, {text}, "
            f"{quote_text(f', which does not fit {shown}, in ')}, _metadata.file_path)"
        )
        return f"coalesce({value}, case when {text} is not null then raise_error({message}) end)"


def as_texts(t: st.DataType) -> st.DataType:
    """The type with texts in the place of all values."""
    if isinstance(t, st.StructType):
        return st.StructType([st.StructField(f.name, as_texts(f.dataType)) for f in t.fields])
    if isinstance(t, st.ArrayType):
        return st.ArrayType(as_texts(t.elementType))
    if isinstance(t, st.MapType):
        return st.MapType(t.keyType, as_texts(t.valueType))
    return st.StringType()


def _first(bits: int) -> st.DataType:
    """The first candidate of those that all texts fit; text if there is none."""
    return next((t for i, t in enumerate(_CANDIDATES) if bits >> i & 1), st.StringType())


def _is_number(t: st.DataType) -> bool:
    return isinstance(t, st.NumericType)


def _like(text: str, pattern: str) -> str:
    """SQL for whether all of a text, without blanks around it, matches."""
    return f"{text} rlike {quote_text(f'(?s)^ *({pattern}) *(?!.)')}"
