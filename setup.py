"""What pyproject.toml cannot say: the version, which is the engine's, and what is needed."""

import os
import tomllib
from pathlib import Path

from setuptools import setup

# This file has the version.
ENGINE = tomllib.loads(Path("ktk_engine/pyproject.toml").read_text(encoding="utf-8"))
VERSION = ENGINE["project"]["version"]
# The engine's extra that brings Spark. An extra of this package could only add a client of Spark
# Connect to classic PySpark, and the two share their modules.
SPARK = os.environ.get("KTK_SPARK", "spark")
if SPARK not in ("spark", "connect"):
    raise SystemExit(f"KTK_SPARK is {SPARK}: it is `spark` (unless it is set) or `connect`.")

setup(
    version=VERSION,
    install_requires=[
        f"ktk-engine[cli,{SPARK}]=={VERSION}",
        "agate>=1.9,<2",
        "dbt-adapters>=1.24.1,<2",
        "dbt-common>=1.37.2,<2",
        "dbt-core>=1.11.2,<1.13; python_version < '3.14'",  # 1.11.0 and 1.11.1 were withdrawn
        "dbt-core>=1.12,<1.13; python_version >= '3.14'",  # what 1.11 needs does not import there
        "dbt-spark>=1.11,<1.12",
        "jinja2>=3.1.6,<4",
    ],
    # sqlglot, and tools that are built on it, find the dialect of an adapter by its type.
    entry_points={"sqlglot.dialects": ["ktk = sqlglot.dialects.spark:Spark"]},
)
