# SPDX-License-Identifier: Apache-2.0
"""Sizes as people write and read them."""
from __future__ import annotations

import operator
import re

from ._errors import bad_argument

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"\s*(\d+)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)


def parse_size(name: str, value: int | str | None) -> int:
    """Bytes; 0 for None and "auto"."""
    if value is None or value == "auto":
        return 0
    allowed = "bytes above 0, or a text such as '512M', '2G' or '2GiB'"
    if isinstance(value, str):
        match = _SIZE.fullmatch(value)
        if match is None:
            raise bad_argument(name, value, "is not a size", allowed)
        size = int(match[1]) * _UNITS[match[2].upper()]
    else:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise bad_argument(name, value, "is not a size", allowed)
        size = operator.index(value)
    if not 0 < size < 1 << 63:
        raise bad_argument(name, value, "is out of range", allowed)
    return size


def format_size(size: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024 or unit == "TiB":
            break
        size /= 1024  # type: ignore[assignment]
    return f"{size:.0f} {unit}" if size == int(size) else f"{size:.1f} {unit}"
