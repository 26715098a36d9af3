#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Heat in a block of copper and insulation: explicit steps in three dimensions.

Two coils of copper run through a block that conducts badly; one end is kept hot, the other one cold.
The conductivity is a field of its own.  The picture shows temperatures in the middle, and how much a
step changes.
"""
import numpy as np
from stencil_picture import HEAT, SEA, coloured, enlarged, parse, side_by_side, write_png

import hanare


def conductivity(z, size):
    """Of one plane: 1 in copper, 0.02 elsewhere."""
    y, x = np.mgrid[0:size, 0:size] / size - 0.5
    turn = 4 * np.pi * z / (2 * size)
    copper = np.zeros((size, size), bool)
    for side in (0, np.pi):
        copper |= (np.hypot(y - 0.28 * np.sin(turn + side), x - 0.28 * np.cos(turn + side)) < 0.09)
    return np.where(copper, 1.0, 0.02)


def main():
    options = parse(__doc__.splitlines()[0], 96, 3000, "stencil_heat.png")
    size = options.size
    shape = (2 * size, size, size)

    @hanare.stencil
    def heat(t, k):
        """What flows between two cells is in proportion to the mean of their conductivities."""
        flow = 0.0
        for dz, dy, dx in ((-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)):
            flow += (k + k[dz, dy, dx]) * (t[dz, dy, dx] - t)
        change = 0.08 * flow
        largest = max(abs(change))
        t = t[0, 0, 0] + change

    with hanare.Grid(shape, {"t": "state", "k": "constant"}, boundary=("fixed", "reflect", "reflect"),
                     memory=options.memory or "1GiB", directory=options.folder) as grid:
        grid["k"] = lambda z: conductivity(z, size)
        grid["t"][0] = 1.0
        result = grid.run(options.steps, heat)
        temperature = grid["t"][:, size // 2]
        copper = grid["k"][:, size // 2]
        front = grid["t"][size // 2]
    assert temperature.min() >= 0 and temperature.max() <= 1, "heat does not come from nowhere"
    changes = result.reductions["largest"]
    assert (np.diff(changes[len(changes) // 2:]) <= 0).all(), "it does not come to rest"
    pictures = [coloured(temperature.T, HEAT, 0, 1), coloured(copper.T, SEA[:4], 0, 1),
                coloured(front, HEAT, 0, 1)]
    write_png(options.output, enlarged(side_by_side(pictures), 400))
    print(f"{result.statistics}; the last step changes {changes[-1]:.2e}: {options.output}")


if __name__ == "__main__":
    main()
