"""One more worker of pytest-xdist, for tests without Java, in what the others leave of the cores.

Tests with Java wait for it, for other processes and for locks: two workers leave a twelfth of two
cores idle. A third one with a JVM of its own would cost more than it gains.
"""

from __future__ import annotations

import os

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

_QUICK = "tests/unit/"
_NICENESS = 10


class QuickTestsBeside(LoadScopeScheduling):
    """Workers take modules from the front of the queue; the last takes quick ones from its end."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        if node.gateway.id == _last(self.numnodes):
            module = next(reversed(self.workqueue))
            if not module.startswith(_QUICK):
                node.shutdown()
                return
            self.workqueue.move_to_end(module, last=False)
        super()._assign_work_unit(node)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer what `make test` asks for."""
    parser.addoption(
        "--quick-beside",
        action="store_true",
        help="let the last worker run tests without Java alone, and yield to the others",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Let the last worker yield."""
    worker = getattr(config, "workerinput", None)
    beside = worker is not None and config.getoption("quick_beside")
    if beside and worker["workerid"] == _last(worker["workercount"]):
        os.nice(_NICENESS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> QuickTestsBeside | None:
    """Schedule by module, as `--dist loadscope` does."""
    return QuickTestsBeside(config, log) if config.getoption("quick_beside") else None


def _last(count: int) -> str:
    return f"gw{count - 1}"
