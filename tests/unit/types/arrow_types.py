"""Types that not every version of Arrow has."""

from __future__ import annotations

import pyarrow as pa

_NAMES = ("decimal32", "decimal64", "decimal128", "decimal256")
# Narrow ones first; the last holds more digits than the others.
DECIMALS = [getattr(pa, name) for name in _NAMES if hasattr(pa, name)]
_EXTENSIONS = (("uuid", pa.binary(), "binary"), ("json_", pa.string(), "string"))
# Extension type, the container of its class, the class.
EXTENSIONS = [
    (getattr(pa, name)(), container, class_)
    for name, container, class_ in _EXTENSIONS
    if hasattr(pa, name)
]
BOOL8 = [pa.bool8()] if hasattr(pa, "bool8") else []
# Arrow 17 has these types, but converts nothing to or from them.
VIEWS_AND_HALVES = (
    [pa.string_view(), pa.binary_view(), pa.float16()]
    if int(pa.__version__.split(".")[0]) >= 18
    else []
)
