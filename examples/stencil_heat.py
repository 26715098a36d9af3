#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Heat in a circuit board: explicit steps in three dimensions.

Chips on tracks of copper, in a board that conducts badly and loses heat to the air.  Conductivity
and chips are fields of their own.  The picture shows copper and chips, temperatures in the middle
of the board, and a section through it.
"""
import numpy as np
from stencil_picture import HEAT, coloured, enlarged, parse, side_by_side, write_png

import hanare

CHIPS = [(0.5, 0.5, 0.06), (0.25, 0.3, 0.04), (0.7, 0.22, 0.03), (0.3, 0.76, 0.03),
         (0.78, 0.72, 0.05), (0.62, 0.85, 0.02)]


def plan(size):
    """Copper, and how much chips heat, seen from above."""
    y, x = np.mgrid[0:size, 0:size] / size
    copper = np.abs(np.hypot(y - 0.5, x - 0.5) - 0.33) < 0.012
    heating = np.zeros((size, size))
    for cy, cx, half in CHIPS:
        chip = (np.abs(y - cy) < half) & (np.abs(x - cx) < half)
        heating[chip] = 0.02 + half
        for way in range(-2, 3):  # tracks from both sides, to the edge of the board
            copper |= (np.abs(y - cy - way * half / 2.5) < 0.006) & (np.abs(x - cx) < 0.22)
        copper |= chip
    return copper, heating


@hanare.stencil(loss=0.0002)
def heat(t, k, q):
    """What flows between two cells is in proportion to the mean of their conductivities."""
    flow = 0.0
    for dz, dy, dx in ((-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)):
        flow += (k + k[dz, dy, dx]) * (t[dz, dy, dx] - t)
    change = 0.08 * flow + q * (1 - t) - loss * t  # noqa: F821
    largest = max(abs(change))
    t = t[0, 0, 0] + change


def main():
    options = parse(__doc__.splitlines()[0], 240, 3000, "stencil_heat.png")
    size, layers = options.size, max(12, options.size // 12)
    copper, heating = plan(size)
    fields = {"t": "state", "k": "constant", "q": "constant"}
    with hanare.Grid((layers, size, size), fields, dtype="float32", boundary="reflect",
                     memory=options.memory or "1GiB", directory=options.folder) as grid:
        tracks = slice(layers // 3, 2 * layers // 3)
        grid["k"] = 0.02
        grid["k"][tracks] = np.where(copper, 1.0, 0.02)
        grid["q"][tracks] = heating
        result = grid.run(options.steps, heat)
        above = grid["t"][layers // 2]
        section = grid["t"][:, size // 2]
    assert section.min() >= 0 and above.max() <= 1, "heat does not come from nowhere"
    changes = result.reductions["largest"]
    assert changes[-1] < changes[len(changes) // 2] < changes[0], "it does not come to rest"
    board = coloured(copper + 2.0 * (heating > 0), ["12351f", "c77b30", "c77b30", "20242b"], 0, 3)
    high = float(above.max())
    write_png(options.output, enlarged(side_by_side(
        [board, coloured(above, HEAT, 0, high), coloured(section.T, HEAT, 0, high)]), 400))
    print(f"{result.statistics}; the last step changes {changes[-1]:.2e}: {options.output}")


if __name__ == "__main__":
    main()
