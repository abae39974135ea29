"""The entry point of the script `ktk`."""

from __future__ import annotations

import sys

from ktk_engine.errors import ConfigurationError
from ktk_engine.extras import need


def ktk() -> None:
    """Run the command, or say how to install its packages."""
    try:
        need("cli", "The command ktk", "click", "rich", "yaml")
    except ConfigurationError as error:
        sys.exit(f"Error: {error}")
    from ktk_engine.cli.main import main

    main()
