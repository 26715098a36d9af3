# SPDX-License-Identifier: Apache-2.0
"""What a page consists of."""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence

Cell = str | int | float | None


@dataclasses.dataclass(frozen=True)
class Table:
    """``caption`` says what its numbers are; cells that are no text are right-aligned."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclasses.dataclass(frozen=True)
class Figure:
    """``svg`` is a drawing, ``numbers`` what it shows, for who cannot see it."""

    title: str
    text: str
    svg: str
    numbers: Table | None = None


@dataclasses.dataclass(frozen=True)
class Tile:
    """A figure that is read first."""

    name: str
    value: str
    remark: str = ""


@dataclasses.dataclass(frozen=True)
class Section:
    title: str
    text: str = ""
    tiles: Sequence[Tile] = ()
    advice: Sequence[str] = ()
    parts: Sequence[Figure | Table] = ()
