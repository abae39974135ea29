import traceback

import pytest
from py4j.protocol import Py4JError

from ktk_engine.errors import FormatError
from ktk_engine.spark.session import executors
from ktk_engine.spark.session.spark_job import spark_job, worker_error
from tests.support.voices import DBT, Message, Remedy


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


@pytest.mark.parametrize("behind", ["", "\n\nDriver stacktrace:\n", "\n\n\tat org.apache.spark.X"])
def test_an_error_of_a_worker_keeps_its_remedies(behind):
    def fail(batches):
        yield from batches
        raise FormatError(Message("It is damaged\nhere: ", Remedy("rebuild"), "."))

    try:
        list(executors._checked(fail)(iter(())))
    except FormatError:
        text = f"From the Python worker:\n{traceback.format_exc()}{behind}"
    error = worker_error(text)
    assert isinstance(error, FormatError) and error.remedies == (Remedy("rebuild"),)
    assert str(error) == "It is damaged\nhere: build the dataset again with overwrite."
    assert error.said(DBT) == "It is damaged\nhere: rebuild the dataset with --full-refresh."
