# SPDX-License-Identifier: Apache-2.0
"""A bar for what takes long; in a terminal and in notebooks, by rich."""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def shown(title: str, total_bytes: int, wanted: bool) -> Iterator[Callable[[int], None]]:
    if not wanted:
        yield lambda done: None
        return
    try:
        from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn
    except ImportError:
        raise ImportError("progress=True needs the package rich: "
                          "pip install 'hanare[progress]'") from None
    with Progress("{task.description}", BarColumn(), DownloadColumn(binary_units=True),
                  TransferSpeedColumn()) as bars:
        task = bars.add_task(title, total=total_bytes)
        yield lambda done: bars.update(task, advance=done)
