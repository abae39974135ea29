"""Opens parquet files so that columns have their storage types, whatever Arrow makes of them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# Before Arrow 21 there is no such setting, and no type of Parquet becomes an extension type.
_SETTING = "arrow_extensions_enabled"
_KNOWN = _SETTING in inspect.signature(pq.ParquetFile.__init__).parameters
_WITHOUT_EXTENSIONS: Mapping[str, Any] = {_SETTING: False} if _KNOWN else {}


def open_with_storage_types(source: pa.NativeFile, **settings: Any) -> pq.ParquetFile:
    """Open a file; extension types could run code of the process.

    Args:
        source: the file.
        settings: as `pyarrow.parquet.ParquetFile` has them.
    """
    return pq.ParquetFile(source, **_WITHOUT_EXTENSIONS, **settings)
