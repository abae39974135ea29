"""Records the configs of models that other adapters read, from their wheels.

    pip download --no-deps --dest wheels dbt-databricks dbt-bigquery dbt-snowflake dbt-redshift \
        dbt-glue dbt-athena dbt-duckdb dbt-clickhouse dbt-trino dbt-postgres
    python -m tests.foreign_keys wheels

A config is a field of an adapter's `AdapterConfig`, or a name that macros or Python ask `config`
for. Writes `tests/unit/adapter/foreign_keys.txt`; `test_foreign_configs.py` finds those of which
nothing is said.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

RECORDED = Path(__file__).parent / "unit" / "adapter" / "foreign_keys.txt"
_CLASS = re.compile(
    r"^class \w*Config\((?:\w*AdapterConfig|AdapterConfig|BaseModel)\):\n((?:(?: {4}.*)?\n)+)",
    re.MULTILINE,
)
_FIELD = re.compile(r"^ {4}(\w+):", re.MULTILINE)
_ASKED = re.compile(r"""config\.(?:get|require|persist_\w+)\(\s*['"](\w+)['"]""")


def keys_of(wheel: Path) -> set[str]:
    """The configs of models that an adapter reads."""
    found: set[str] = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith((".py", ".sql")):
                text = archive.read(name).decode()
                for fields in _CLASS.findall(text):
                    found.update(_FIELD.findall(fields))
                found.update(_ASKED.findall(text))
    return found


if __name__ == "__main__":
    lines = [
        f"{wheel.name.split('-')[0].removeprefix('dbt_')} {wheel.name.split('-')[1]}: "
        + " ".join(sorted(keys_of(wheel)))
        for wheel in sorted(Path(sys.argv[1]).glob("*.whl"))
    ]
    RECORDED.write_text("\n".join(lines) + "\n", encoding="utf-8")
