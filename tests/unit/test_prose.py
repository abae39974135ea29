"""The check of English finds what each rule bans, and nothing in what has to stay."""

from __future__ import annotations

import pytest

from tests import prose

BANNED = {
    "whoever": "Whoever asks gets an answer.",
    "anyone who|anybody who|everybody who|everyone who": "It is open to anyone who asks.",
    "nobody|no one": "Then nobody reads it.",
    "beside": "It is stored beside the log.",
    r"so (?:many|much)(?! that\b)": "A commit needs so many requests.",
    "as far as": "Pages are read as far as needed.",
    "but for": "All of them but for one are read.",
    "(?:is|are|was|were|be|been) (?:told|said)": "The reason is said.",
    "lie|lies|lay there": "The files lie in a folder.",
    r"(?:is|are|was|were) (?:\w+'s|ours|theirs|yours)(?: alone)?(?=[.,:;)]|$| and\b| or\b)": (
        "The format is Kartothek's."
    ),
    "(?:is|are|was|were) asked": "Spark is asked for rows.",
    "what is more|whereof|thereof|wherein|therein|hereby": "The key, and parts thereof.",
    r"(?<!there )(?:is|are|was|were|be) no (?!longer|more|less|fewer)(?:\w+|`x`)": (
        "It is no table."
    ),
    r"of (?:ours|theirs|yours|\w+'s(?=[.,:;)]|$))": "This calls a function of Kartothek's.",
    r"taken for (?!granted)\w+|(?:take|takes|took)(?: it| them| this| all| any \w+)? for \w+": (
        "Readers take it for null."
    ),
    "says? of|said of|known of": "It keeps what the log says of files.",
    "also (?:if|where|when)": "The commit remains, also if publishing fails.",
    "anew": "It writes the file anew.",
    "stands?|stood|standing": "Null stands for unknown.",
    r"(?-i:Of) (?!course|the|these|several|two)[^.,]{1,30}, \w+": "Of names, Spark folds the case.",
}


def found_in_page(text, path="docs/x.md"):
    return [(found.line, found.words.lower()) for found in prose.findings_in_page(path, text)]


def test_each_rule_has_a_case():
    assert BANNED.keys() == prose.BANNED.keys()


@pytest.mark.parametrize("sentence", BANNED.values())
def test_a_banned_word_is_found_in_pages_and_in_code(sentence):
    (found,) = found_in_page(f"# Title\n\n{sentence}\n")
    assert found[0] == 3 and found[1] in sentence.lower()
    code = f'"""A sentence."""\n\n\ndef f():\n    """{sentence}"""\n    x = 1  # {sentence}\n'
    code += f"    raise ValueError(f'{{x}} {sentence}')\n".replace("Kartothek's", "Kartothek\\'s")
    assert [found.line for found in prose.findings_in_module("x.py", code)] == [6, 5, 7]


@pytest.mark.parametrize(
    "sentence",
    [
        "`beside` is a name.",
        "[besides](beside) is a word.",
        "It has so much that it is refused.",
        "Spark's rows are dbt's rows.",
        "There is no table, which is no longer read.",
        "The job takes a minute for each of dbt's models, and no lock for a list of names, or two.",
        "Of the two, one is refused.",
    ],
)
def test_names_and_other_words_stay(sentence):
    assert found_in_page(sentence) == []


def test_blocks_of_code_stay():
    assert found_in_page("```\nbeside. Nobody\n```\n") == []


def test_pages_have_a_sentence_a_line():
    assert found_in_page("One. Two.") == [(1, "one. two.")]
    assert found_in_page("A long first sentence. And a long second sentence.") == [
        (1, "irst sentence. and a long seco")
    ]
    for line in ("One, e.g. Two.", "1. One", "## 1. One", "| One. Two. |", "One."):
        assert found_in_page(line) == []
    assert found_in_page("One. Two.", "CHANGELOG.md") == []


def test_chains_of_semicolons_are_found():
    assert found_in_page("One; two; three.") == [(1, "one; two; three")]
    assert found_in_page("One; two. Three; four.", "CHANGELOG.md") == []
    assert found_in_page("| One; two; three. |") == []
