import io

import pytest
from rich.console import Console

from ktk_engine.cli.console import make_table, print_table


@pytest.mark.parametrize("width", [40, 80, 100, 120])
def test_a_long_text_beside_a_long_word_breaks_neither(width):
    table = make_table(["version", "time", "change", "by"], ["rows"])
    table.add_row("4", "2026-11-22 14:23:48 UTC", "rebuild", "model.nyc_flights.weather", "+1")
    table.add_row("3", "", "unknown: its log entry cannot be read", "", "+36")
    written = io.StringIO()
    print_table(Console(file=written, width=width), table)
    found = written.getvalue()
    for word in ("14:23:48", "model.nyc_flights.weather", "unknown:", "cannot", "+36"):
        assert word in found, found
    if width == 120:
        assert "2026-11-22 14:23:48 UTC   rebuild" in found
