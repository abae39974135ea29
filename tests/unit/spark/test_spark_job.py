import pytest
from py4j.protocol import Py4JError

from ktk_engine.spark.session.spark_job import spark_job


def test_an_interrupt_while_batches_are_fetched_is_an_interrupt():
    """PySpark asks for the job's outcome on the way out, and that is an error of its own."""
    with pytest.raises(KeyboardInterrupt) as raised, spark_job():
        try:
            raise KeyboardInterrupt
        finally:
            raise Py4JError("Job 3 cancelled as part of cancellation of all jobs")
    assert isinstance(raised.value.__cause__, Py4JError)


def test_another_error_stays_what_it_is():
    with pytest.raises(Py4JError, match="division by zero"), spark_job():
        raise Py4JError("division by zero")
