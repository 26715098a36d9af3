# SPDX-License-Identifier: Apache-2.0
"""Drawings that take their colours and their type from the page, light or dark.

Matplotlib draws with colours that stand for something, which become the page's variables.
"""
from __future__ import annotations

import contextlib
import io
import itertools
import logging
import re
from collections.abc import Iterator
from typing import Any

# Where it cannot keep what it finds out, that is no concern of who wants a page.
logging.getLogger("matplotlib").setLevel(logging.ERROR)
import matplotlib  # noqa: E402
from matplotlib.figure import Figure as Canvas  # noqa: E402

INK = "#010101"
RULE = "#010102"
SERIES = tuple(f"#0101{number:02x}" for number in range(0x10, 0x18))
PAPER = "#010103"  # what the paper says
_VARIABLES = {INK: "--ink", RULE: "--rule", PAPER: "--paper",
              **{colour: f"--c{index + 1}" for index, colour in enumerate(SERIES)}}
MARKERS = "osD^vPX*"

_STYLE = {
    "svg.fonttype": "none", "text.parse_math": False, "svg.hashsalt": "hanare", "font.family": "sans-serif", "font.size": 9,
    "axes.edgecolor": RULE, "axes.labelcolor": INK, "axes.titlecolor": INK, "text.color": INK,
    "axes.titlesize": 9, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "xtick.color": RULE, "ytick.color": RULE, "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "axes.grid": True, "grid.color": RULE, "grid.linewidth": 0.5, "grid.alpha": 0.5,
    "axes.spines.top": False, "axes.spines.right": False, "axes.facecolor": "none",
    "figure.facecolor": "none", "savefig.facecolor": "none", "legend.frameon": False,
    "lines.linewidth": 1.6, "lines.markersize": 5,
    "axes.prop_cycle": matplotlib.cycler(color=list(SERIES)),
}
_numbers = itertools.count(1)


class Drawing:
    """Filled by `drawing`; its SVG is there afterwards."""

    def __init__(self, canvas: Canvas) -> None:
        self.canvas = canvas
        self.svg = ""


def _as_part_of_a_page(text: str, label: str) -> str:
    svg = text[text.index("<svg"):]
    prefix = f"f{next(_numbers)}"
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, f"var({variable})")
    # As wide as there is room, and as large as it was drawn for reading.
    svg = re.sub(r'<svg [^>]*?viewBox="([^"]+)"[^>]*>',
                 rf'<svg viewBox="\1" role="img" aria-label="{label}" '
                 'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns="http://www.w3.org/2000/svg">',
                 svg, count=1)
    return svg.strip()


@contextlib.contextmanager
def drawing(label: str, width: float = 7.2, height: float = 3.0, **options: Any
            ) -> Iterator[Drawing]:
    """A canvas of that many inches; ``label`` is plain text for who cannot see it."""
    with matplotlib.rc_context(_STYLE):
        made = Drawing(Canvas(figsize=(width, height), layout="constrained", **options))
        yield made
        buffer = io.StringIO()
        made.canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
        made.svg = _as_part_of_a_page(buffer.getvalue(),
                                      label.replace("&", "and").replace('"', "'")
                                      .replace("<", "below "))


def colour_of(index: int) -> str:
    return SERIES[index % len(SERIES)]
