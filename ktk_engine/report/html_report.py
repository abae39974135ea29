"""A report as a self-contained HTML file with charts, scripts and styles."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from ktk_engine.extras import need
from ktk_engine.formatting import counted, moment, number, size
from ktk_engine.messages import PYTHON, Voice, spoken
from ktk_engine.plan.explain import explain
from ktk_engine.report.cube_report import CubeReport


def render_html(report: CubeReport, voice: Voice = PYTHON) -> str:
    """Render a report as a page, with names and values of the store escaped.

    Raises a `ConfigurationError` if the packages for charts are not installed.
    """
    need("report", "A report", "altair", "jinja2", "vl_convert")
    from jinja2 import Environment

    from ktk_engine.report.charts import charts_of

    template = files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(number=number, size=size, counted=counted, moment=moment)
    environment.filters["said"] = lambda text: spoken(text, voice)
    return environment.from_string(template).render(
        report=report,
        cube=report.description,
        charts=_as_script(charts_of(report)),
        scripts=_scripts(),
        explain=explain,
    )


@cache
def _scripts() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that loads nothing."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle(None)  # type: ignore[arg-type]
    return bundle.replace("</script", r"<\/script")


def _as_script(charts: dict[str, dict[str, Any]]) -> str:
    """JSON that is safe in a script element."""
    text = json.dumps(charts, default=str)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
