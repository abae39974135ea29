"""Run reference cases: `python -m tests.corpus <folder>/types.jsonl <folder>/cubes`.

`--engine local` answers the queries of cubes in this process, not in Spark. `--store s3://...`
copies the cubes there first; keys come from the environment.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.corpus.cube_cases import run_cubes
from tests.corpus.outcome import Outcome, summary
from tests.corpus.rejects_cases import run_rejects
from tests.corpus.types_cases import run_types

Runner = Callable[[Path], Iterator[Outcome]]


def runner_for(path: Path, engine: str = "spark", store: str = "") -> Runner | None:
    """Choose what judges a path.

    Args:
        path: a file or folder of reference cases.
        engine: what answers queries of cubes, "spark" or "local".
        store: address of a store that cubes are copied to, and read from.

    Returns:
        The function that judges it, or None if nothing does.
    """
    if path.is_file() and path.suffix == ".jsonl":
        return run_types
    if path.is_dir() and path.name == "cubes":
        return partial(run_cubes, engine=engine, copied_to=store)
    return run_rejects if path.is_dir() and path.name == "rejects" else None


def main(arguments: list[str]) -> int:
    """Judge every path, print the failures and the numbers.

    Args:
        arguments: paths and options.

    Returns:
        0 if nothing failed, 1 if a case failed, 2 if a path cannot be judged.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.corpus")
    parser.add_argument("paths", nargs="+", metavar="PATH")
    parser.add_argument("--engine", choices=("local", "spark"), default="spark")
    parser.add_argument("--store", default="", metavar="URL")
    options = parser.parse_args(arguments)
    outcomes: list[Outcome] = []
    for argument in options.paths:
        runner = runner_for(Path(argument), options.engine, options.store)
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
