# SPDX-License-Identifier: Apache-2.0
"""Numbers as people read them."""
from __future__ import annotations

from .._sizes import format_size

__all__ = ["count", "duration", "rate", "format_size", "number"]


def number(value: float) -> str:
    """Three digits that tell something."""
    if value != 0 and not 0.01 <= abs(value) < 1e7:
        return f"{value:.2e}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    whole = int(seconds)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d} min"
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d} h"


def rate(bytes_per_s: float) -> str:
    for unit, size in (("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)):
        if bytes_per_s >= size:
            return f"{number(bytes_per_s / size)} {unit}"
    return f"{bytes_per_s:.0f} B/s"


def count(value: float) -> str:
    return f"{round(value):,}"
