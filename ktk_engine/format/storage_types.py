"""Opens parquet files so that columns have their storage types instead of extension types."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# Arrow before 21 lacks this setting, and reads no Parquet type as an extension type.
_SETTING = "arrow_extensions_enabled"
_KNOWN = _SETTING in inspect.signature(pq.ParquetFile.__init__).parameters
_WITHOUT_EXTENSIONS: Mapping[str, Any] = {_SETTING: False} if _KNOWN else {}


def open_with_storage_types(source: pa.NativeFile, **settings: Any) -> pq.ParquetFile:
    """Open a file without extension types, which could run code in this process."""
    return pq.ParquetFile(source, **_WITHOUT_EXTENSIONS, **settings)
