"""What all tests share: Spark's settings for tests, and where reference cases lie."""

from __future__ import annotations

SPARK_SETTINGS = {
    "spark.master": "local[2]",
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "4",
    "spark.default.parallelism": "2",
    # Broadcasts would hide exchanges that the plans promise to do without.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


def pytest_addoption(parser):
    parser.addoption(
        "--storage",
        choices=("table", "cube"),
        default="table",
        help="what models of dbt-tests-adapter's suites are stored as",
    )
