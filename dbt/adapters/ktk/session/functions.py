"""The functions of a project (`functions/`): each Spark session defines those that it calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dbt_common.exceptions import DbtRuntimeError

from ktk_engine.sql.token import split_statements
from ktk_engine.types.quote import quote_identifier, unquote_identifier

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JINJA = re.compile(r"\{[{%#]")
_NOT_DETERMINISTIC = "non-deterministic"


def function_name(schema: str, alias: str) -> str:
    """Give the name of a function in SQL: one part, because it is a temporary function."""
    return quote_identifier(f"{schema}.{alias}")


@dataclass(frozen=True)
class Function:
    """A function of a project."""

    node: Mapping[str, Any]  # its entry in the manifest
    is_built: bool = False  # by this run

    @property
    def name(self) -> str:
        """Its name in SQL."""
        return function_name(str(self.node["schema"]), str(self.node["alias"]))

    @property
    def is_python(self) -> bool:
        """Whether its body is Python; a function in `--state` has no language."""
        return self.node.get("language", "python") == "python" and bool(
            self.node.get("language") or self.config.get("entry_point")
        )

    @property
    def body(self) -> str:
        """Its code, from its file if this run does not build it.

        Raises a `DbtRuntimeError` if only dbt can render the code.
        """
        compiled = self.node.get("compiled_code")
        code = str(compiled or self.node.get("raw_code") or "")
        if not compiled and not self.is_python and _JINJA.search(code):
            raise self.problem(
                "its body has Jinja, which only a run that builds the function renders: "
                f"dbt build --select {self.node['name']} ..."
            )
        return code

    @property
    def python_name(self) -> str:
        """The name that the SQL of a Python function calls."""
        return quote_identifier(f"{self.node['schema']}.{self.node['alias']}~python")

    @property
    def statement(self) -> str:
        """The statement that defines it; a Python function's calls `python_name`.

        Raises a `DbtRuntimeError`, as `body` does.
        """
        arguments = self.node.get("arguments") or ()
        if self.is_python:
            body = f"{self.python_name}({', '.join(_argument_name(a) for a in arguments)})"
        else:
            body = "; ".join(split_statements(self.body))
        kind = "NOT DETERMINISTIC " if self.is_random else ""
        return (
            f"CREATE OR REPLACE TEMPORARY FUNCTION {self.name}"
            f"({', '.join(_argument(item) for item in arguments)})\n"
            f"RETURNS {self.returns} {kind}\nRETURN {body}"
        )

    @property
    def returns(self) -> str:
        """Spark's name of its result type."""
        return str(self.node["returns"]["data_type"])

    @property
    def is_random(self) -> bool:
        """Whether it gives another value each time."""
        return str(self.config.get("volatility") or "") == _NOT_DETERMINISTIC

    @property
    def config(self) -> Mapping[str, Any]:
        """Its configuration."""
        config: Mapping[str, Any] = self.node.get("config") or {}
        return config

    def problem(self, text: str) -> DbtRuntimeError:
        """Say what is wrong with it."""
        return DbtRuntimeError(f"Function {self.node['name']}: {text}")

    def check(self) -> None:
        """Refuse what a function of a Spark session cannot be.

        The `DbtRuntimeError` names the function and what to do.
        """
        kind = str(self.config.get("type") or "scalar")
        if kind != "scalar":
            raise self.problem(
                f"config `type` is {kind}, and functions here are scalar: they give one value for "
                "one row. Aggregate in the models that call it."
            )
        if self.node.get("overloads"):
            raise self.problem(
                "`overloads` share one name, and a Spark session knows only one function of a "
                "name. Give each its own file and name."
            )
        depends_on = self.node.get("depends_on") or {}
        read = [item for item in depends_on.get("nodes") or () if not item.startswith("function.")]
        if read:
            raise self.problem(
                f"it reads {', '.join(read)}, and functions here compute from their arguments "
                "alone. Join the relation in the models that call it."
            )
        if self.is_python:
            self._check_python()

    def _check_python(self) -> None:
        if not self.config.get("entry_point"):
            raise self.problem("config `entry_point` is missing: the Python function's name.")
        for package in self.config.get("packages") or ():
            name = re.split(r"[^A-Za-z0-9._-]", str(package).strip(), maxsplit=1)[0]
            try:
                distribution(name)
            except PackageNotFoundError:
                raise self.problem(
                    f"it needs the package {package}. Python functions run in dbt's Python "
                    "environment, which lacks it: install it there."
                ) from None

    def define(self, session: SparkSession) -> None:
        """Define it in a session; a `DbtRuntimeError` if that fails."""
        self.check()
        if int(session.version.partition(".")[0]) < 4:
            raise self.problem(
                f"Spark {session.version} has no functions in SQL; they need Spark 4.0 or newer."
            )
        if self.is_python:
            self._register(session)
        session.sql(self.statement)

    def _register(self, session: SparkSession) -> None:
        """Register the Python function in a session; workers get it by value."""
        import pyspark  # noqa: F401 -- all of it before a part
        from pyspark.sql.functions import udf
        from pyspark.sql.types import _parse_datatype_string

        from dbt.adapters.ktk.materialize.temporary_module import temporary_module

        with temporary_module(str(self.node.get("original_file_path", "<function>"))) as module:
            try:
                exec(compile(self.body, str(module.__file__), "exec"), module.__dict__)
                called = module.__dict__[str(self.config["entry_point"])]
            except KeyError as error:
                raise self.problem(
                    f"its file does not define {error}, its `entry_point`."
                ) from error
            except Exception as error:
                raise self.problem(f"its file fails: {type(error).__name__}: {error}") from error
            kind = _parse_datatype_string(self.returns)
            function = udf(_verified(called, kind, str(self.node["name"])), kind)
            session.udf.register(
                unquote_identifier(self.python_name),
                function.asNondeterministic() if self.is_random else function,
            )


def _argument_name(argument: Mapping[str, Any]) -> str:
    return quote_identifier(str(argument["name"]))


def _argument(argument: Mapping[str, Any]) -> str:
    default = argument.get("default_value")
    said = "" if default is None else f" DEFAULT {default}"
    return f"{_argument_name(argument)} {argument['data_type']}{said}"


def _verified(function: Callable[..., Any], kind: Any, name: str) -> Callable[..., Any]:
    """Make a function fail for values of another type, which Spark would turn into null."""
    import pyspark  # noqa: F401 -- all of it before a part
    from pyspark.sql.types import _make_type_verifier

    verify = _make_type_verifier(kind, name=f"what {name} returns")

    def call(*arguments: Any) -> Any:
        value = function(*arguments)
        verify(value)
        return value

    return call


class Functions:
    """The functions that a run has met, by their names in SQL."""

    def __init__(self) -> None:
        self._functions: dict[str, Function] = {}
        self._defined: WeakKeyDictionary[SparkSession, dict[str, Function]] = WeakKeyDictionary()

    def note(self, function: Function) -> None:
        """Register a function; one that this run has built stays."""
        before = self._functions.get(function.name)
        if function.is_built or before is None or not before.is_built:
            self._functions[function.name] = function

    def is_built(self, schema: str, alias: str) -> bool:
        """Whether this run has built a function."""
        known = self._functions.get(function_name(schema, alias))
        return known is not None and known.is_built

    def named_in(self, sql: str) -> list[Function]:
        """The functions that a text of SQL calls."""
        return [function for name, function in self._functions.items() if name in sql]

    def define(self, session: SparkSession, sql: str) -> None:
        """Define in a session the functions that a statement calls, unless it has them already.

        Raises a `DbtRuntimeError` if that fails.
        """
        for function in self.named_in(sql):
            defined = self._defined.setdefault(session, {})
            if defined.get(function.name) is not function:
                if not function.is_python:
                    self.define(session, function.body)
                function.define(session)
                defined[function.name] = function
