"""Python models: the user's `model(dbt, session)` runs in this process."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.ktk.errors import translated
from dbt.adapters.ktk.materialize.materializations import Materializations
from dbt.adapters.ktk.materialize.outcome import KtkResponse
from dbt.adapters.ktk.operations.cube_query import plan_line
from dbt.adapters.ktk.session.spark_message import spark_message
from ktk_engine.log.change.reads import Reads
from ktk_engine.write.retry import Source

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_LOGGER = AdapterLogger("ktk")
_WITHOUT_ROWS = ("view", "cube", "ephemeral")
_DBTS_PART = "<dbt>"  # dbt appends it to the user's code: ref, source, config, this


@dataclass(frozen=True)
class _Code:
    """A Python model's code."""

    path: str  # the user's file, as dbt shows it
    file: Path  # where it is stored
    own: str  # the user's part, with the line numbers of the file
    dbts: str  # the part that dbt appends

    def run(self, module: ModuleType) -> None:
        """Run both parts of the code, each with its own `from __future__`."""
        for text, name in ((self.own, str(self.file)), (self.dbts, _DBTS_PART)):
            exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)

    def failure(self, model: str, error: Exception, hint: str) -> DbtRuntimeError:
        """Show an error with the lines of the user's file; the log has the whole stack.

        `hint` says what to do about a missing relation.
        """
        frames = traceback.StackSummary.from_list(
            traceback.FrameSummary(self.path, frame.lineno, frame.name, line=frame.line)
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(self.file)
        )
        what = spark_message(error, hint) or "".join(traceback.format_exception_only(error))
        return DbtRuntimeError(
            f"Python model {model} failed:\n{''.join(frames.format())}{what.rstrip()}"
        )


class PythonModels(Materializations):
    """Runs Python models and writes what they return."""

    @available
    def python_preview_problem(self, model: Mapping[str, Any]) -> str:
        """Say why `dbt show` cannot show a Python model."""
        return (
            f"Python model {model['name']} has no SQL that could be shown before it is built. "
            "Build it, then show its rows: "
            f"dbt show --inline \"select * from {{{{ ref('{model['name']}') }}}}\""
        )

    @available.parse(lambda *_, **__: KtkResponse(""))
    def write_python_model(
        self,
        model: Mapping[str, Any],
        relation: BaseRelation,
        compiled_code: str,
        full_refresh: bool = False,
    ) -> KtkResponse:
        """Run a Python model and write its rows as a dataset, in one commit.

        The model has a session of its own, so its settings and temporary views end with it. Its
        module stays registered until the rows are written, because Spark computes them only then.

        Args:
            model: the node as Jinja's `model`.
            relation: the model's relation.
            compiled_code: the user's code, followed by dbt's.
            full_refresh: whether this run is one.

        Returns:
            The response for dbt's log and run_results.
        """
        from dbt.adapters.ktk.materialize.temporary_module import temporary_module

        _refuse_sql(model)
        code = self._code_of(model, compiled_code)
        with (
            self.connections.running(),
            self.connections.sessions.separate(),
            temporary_module(str(code.file)) as module,
        ):
            return self._write(
                model,
                relation,
                lambda: self._given(model, code, relation, module),
                full_refresh,
                compiled_code,
            )

    def _given(
        self, model: Mapping[str, Any], code: _Code, relation: BaseRelation, module: ModuleType
    ) -> Source[DataFrame | pa.Table]:
        """The rows of a function that runs once, and what it read."""
        with self.connections.sessions.current().noting_reads() as noted:
            rows = self._run(model, code, relation, module)
        self.connections.sessions.check()
        return Source.given(rows, Reads(tuple(noted)))

    def _run(
        self, model: Mapping[str, Any], code: _Code, relation: BaseRelation, module: ModuleType
    ) -> DataFrame | pa.Table:
        """Call the user's function; an error shows its own lines."""
        from ktk_engine.spark.sql.model_session import model_session
        from ktk_engine.warehouse.returned_rows import returned_rows

        session = model_session(
            self.connections.sessions.current(),
            lambda plan: _LOGGER.info(f"{relation} reads {plan_line(plan)}"),
        )
        module.__dict__["spark"] = session  # notebooks and dbt-spark have it as well
        try:
            code.run(module)
            dbt = module.__dict__["dbtObj"](lambda text: self._load(relation, text))
            result = module.__dict__["model"](dbt, session)
        except Exception as error:
            _LOGGER.debug(traceback.format_exc())
            hint = self.connections.missing_hint()
            raise code.failure(str(model["name"]), error, hint) from error
        with translated():
            return returned_rows(result)

    def _load(self, relation: BaseRelation, text: str) -> DataFrame:
        """The rows for `dbt.ref` and `dbt.source`; with `--empty`, a source is a query."""
        session = self.connections.sessions.current()
        frame = session.sql(f"select * from {text}")
        for plan in session.plans:
            _LOGGER.info(f"{relation}: dbt.ref gives {plan_line(plan)}")
        return frame

    def _code_of(self, model: Mapping[str, Any], compiled_code: str) -> _Code:
        """Split the compiled code; dbt strips the user's file, which moves its lines."""
        path, own = str(model["original_file_path"]), str(model["raw_code"])
        file = self._folder_of(str(model["package_name"])) / path
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        above = text[: len(text) - len(text.lstrip())].count("\n")
        return _Code(path, file, "\n" * above + own, compiled_code.removeprefix(own))

    def _folder_of(self, package: str) -> Path:
        """The folder of the project or of one of its packages."""
        root = Path(getattr(self.config, "project_root", ""))
        if package == self.config.project_name:
            return root
        return root / str(getattr(self.config, "packages_install_path", "")) / package


def language_problem(node: RelationConfig) -> str:
    """Say what is wrong with a Python model's materialization; empty if nothing is."""
    kind = str(getattr(node.config, "materialized", ""))
    if getattr(node, "language", "") != "python" or kind not in _WITHOUT_ROWS:
        return ""
    return (
        f"Model {node.name}: config `materialized` is {kind}, which stores a query, but a Python "
        "model returns rows. Use table, incremental, cube_seed or cube_enrichment."
    )


def _refuse_sql(model: Mapping[str, Any]) -> None:
    """Refuse what dbt supports only in SQL."""
    who = f"Python model {model['name']}"
    names = [str(item["id"]).rsplit(".", 1)[-1] for item in model.get("extra_ctes") or ()]
    if names:
        raise DbtRuntimeError(
            f"{who} refers to {', '.join(names)}, which is ephemeral: it exists only in SQL. "
            "Materialize it as a view or a table. Nothing was written."
        )
    if model["config"].get("sql_header"):
        raise DbtRuntimeError(
            f"{who} has a sql_header, but no SQL that it could precede. Use session.sql(...) or "
            "session.conf.set(...) in the model. Nothing was written."
        )
