"""A new form of publishing is a class of its own and its place in FORMS."""

import subprocess
import sys


def test_a_new_form_needs_only_its_class_and_its_place_in_the_list(tmp_path):
    command = [
        sys.executable,
        "-m",
        "tests.integration.processes.new_form",
        str(tmp_path / "store"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
