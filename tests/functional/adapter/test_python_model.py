"""dbt-tests-adapter: Python models."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
    BasePythonSampleTests,
)
from dbt.tests.adapter.python_model.test_spark import BasePySparkTests
from pandas.tseries import frequencies

from tests.support.spark import spark_version


class TestPythonModel(BasePythonModelTests):
    pass


class TestPythonIncremental(BasePythonIncrementalTests):
    pass


@pytest.mark.skipif(
    spark_version() < (4, 0), reason="the suite's own frame of nulls has no types before Spark 4.0"
)
class TestPythonMetaGet(BasePythonMetaGetTests):
    pass


class TestPythonEmpty(BasePythonEmptyTests):
    pass


class TestPythonSample(BasePythonSampleTests):
    pass


@pytest.mark.skipif(
    not hasattr(frequencies, "DateOffset"), reason="pyspark.pandas imports what pandas 3.1 has not"
)
@pytest.mark.filterwarnings("ignore:If `index_col` is not specified")  # by the suite's own model
class TestPySpark(BasePySparkTests):
    @pytest.fixture(scope="class")
    def models(self):
        """Koalas is called pyspark.pandas since Spark 3.2."""
        base = BasePySparkTests.models.__wrapped__(self)
        return {
            name: text.replace("import databricks.koalas as ks", "import pyspark.pandas as ks")
            for name, text in base.items()
        }
