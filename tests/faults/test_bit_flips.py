"""One flipped bit in any file: an error that names the file, or the right answer; none is wrong.

What Kartothek wrote has neither checksums nor digests: of its files it is only counted how many
flips are seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from tests.faults.answer import Answer, names_file
from tests.faults.asked_in_child import asked_in_child
from tests.faults.damage import flipped
from tests.faults.questions import Questions, subject
from tests.faults.report import Tally
from tests.faults.scale import cases
from tests.faults.victim import PLAIN, PLAIN_CUBE, build_victim, kinds

# Of files without a digest Arrow parses footers that are damaged, which may end the process.
PARSED_BY_ARROW = (
    "Kartothek's data file",
    "Kartothek's index file",
    "Kartothek's _common_metadata",
)
FOREIGN = (PLAIN, f"{PLAIN_CUBE}++flights", f"{PLAIN_CUBE}++weather")
NUMBERS = 5  # index values that Spark is asked for


def test_bit_flips(request, tmp_path, spark):
    store = build_victim(tmp_path / "an")
    questions, files = Questions(store, spark), kinds(store)
    tallies = {kind: Tally(f"a flipped bit: {kind}") for kind in files}
    known: dict[tuple[str, int, bool], Mapping[str, Answer]] = {}
    for case, random in cases("flip", 40, 1000):
        kind = random.choice(sorted(files))
        key, number = random.choice(files[kind]), random.randrange(NUMBERS)
        by_spark = kind == "view" or kind.endswith("data file") or random.random() < 0.1
        about = (subject(key), number, by_spark)
        if about not in known:
            known[about] = questions.ask(key, number, by_spark)
            assert not [answer for answer in known[about].values() if answer.error]
        path = store.root / key
        with flipped(path, random.randrange(path.stat().st_size * 8)) as place:
            if kind in PARSED_BY_ARROW and asked_in_child(store, FOREIGN) is None:
                tallies[kind].good("the process ends")
                continue
            given = questions.ask(key, number, by_spark)
            checked = questions.checked(key)
        name = f"{case}: {key}, {place}"
        _Flip(key, known[about], given, checked).judge(tallies[kind], name)
    for tally in tallies.values():
        tally.report(request)
    broken = [f"{tally.what}, {case}" for tally in tallies.values() for case in tally.broken]
    assert not broken, "\n".join(broken)


@dataclass(frozen=True)
class _Flip:
    """What came of one flip.

    Attributes:
        key: the damaged file.
        right: the answers without it.
        given: those with it.
        checked: what `ktk check --deep` said.
    """

    key: str
    right: Mapping[str, Answer]
    given: Mapping[str, Answer]
    checked: Answer

    def judge(self, tally: Tally, case: str) -> None:
        """Count the outcome."""
        wrong = [
            name
            for name, answer in self.given.items()
            if not answer.error and not self._is_right(name, answer)
        ]
        problems = [] if self.checked.error else self.checked.value
        if wrong and "Kartothek's" in tally.what:
            tally.good("wrong, as nothing tells" if not problems else "wrong, but check sees it")
        elif wrong:
            tally.bad(case, f"silently wrong: {', '.join(wrong)}; check finds {problems}")
        elif complaint := self._complaint():
            # Where another program's document names another file, that file is missing.
            named = "a raw error" not in complaint or self._names_file(complaint)
            if "Kartothek's" in tally.what and named:
                tally.good("another error")
            else:
                tally.bad(case, complaint)
        elif any(answer.error for answer in self.given.values()):
            tally.good("an error that names the file")
        elif any(answer.warned for answer in self.given.values()):
            tally.good("right, and a warning names the file")
        else:
            tally.good("right, and check names the file" if problems else "right")

    def _is_right(self, name: str, answer: Answer) -> bool:
        """Whether an answer is as before; a list of cubes says about each why it cannot be read."""
        return answer == self.right[name] or self._names_file(str(answer.value))

    def _complaint(self) -> str:
        """What is wrong with an error."""
        for name, answer in {**self.given, "check": self.checked}.items():
            if answer.error and not answer.ours:
                return f"{name}: a raw error: {answer.error[:600]}"
            if answer.error and not self._names_file(answer.error):
                return f"{name}: the error does not name the file: {answer.error[:600]}"
            if answer.warned and not self._names_file(answer.warned):
                return f"{name}: the warning does not name the file: {answer.warned[:600]}"
        problems = [] if self.checked.error else self.checked.value
        if problems and not any(self._names_file(problem) for problem in problems):
            return f"check does not name the file: {problems}"
        return ""

    def _names_file(self, text: str) -> bool:
        return names_file(text, PurePosixPath(self.key).name)
