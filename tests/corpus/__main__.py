"""Run reference cases: `python -m tests.corpus <folder>/types.jsonl <folder>/cubes`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.corpus.cube_cases import run_cubes
from tests.corpus.outcome import Outcome, summary
from tests.corpus.rejects_cases import run_rejects
from tests.corpus.types_cases import run_types

Runner = Callable[[Path], Iterator[Outcome]]


def runner_for(path: Path) -> Runner | None:
    """Choose what judges a path.

    Args:
        path: a file or folder of reference cases.

    Returns:
        The function that judges it, or None if nothing does.
    """
    if path.is_file() and path.suffix == ".jsonl":
        return run_types
    return FOLDER_RUNNERS.get(path.name) if path.is_dir() else None


# Folders of cases, by name.
FOLDER_RUNNERS: dict[str, Runner] = {"cubes": run_cubes, "rejects": run_rejects}


def main(arguments: list[str]) -> int:
    """Judge every path, print the failures and the numbers.

    Args:
        arguments: paths.

    Returns:
        0 if nothing failed, 1 if a case failed, 2 if a path cannot be judged.
    """
    if not arguments:
        print("usage: python -m tests.corpus PATH ...", file=sys.stderr)
        return 2
    outcomes: list[Outcome] = []
    for argument in arguments:
        runner = runner_for(Path(argument))
        if runner is None:
            print(f"{argument}: no reference cases known by this name", file=sys.stderr)
            return 2
        for outcome in runner(Path(argument)):
            outcomes.append(outcome)
            if outcome.status == "failed":
                print(f"FAILED {outcome.case}: {outcome.detail}", flush=True)
    print(summary(outcomes))
    return int(any(outcome.status == "failed" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
