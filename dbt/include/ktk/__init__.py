"""Macros, materializations and tests of the adapter `ktk`."""

import os

PACKAGE_PATH = os.path.dirname(__file__)
