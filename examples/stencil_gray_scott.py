#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reaction and diffusion (Gray, Scott): two substances that make corals, on a torus."""
import numpy as np
from stencil_picture import CORAL, coloured, enlarged, parse, write_png

import hanare


def lap(f):
    """Nine points, which prefer no direction."""
    return (0.2 * (f[-1, 0] + f[1, 0] + f[0, -1] + f[0, 1])
            + 0.05 * (f[-1, -1] + f[-1, 1] + f[1, -1] + f[1, 1]) - f[0, 0])


@hanare.stencil(du=1.0, dv=0.5, feed=0.0545, kill=0.062)
def gray_scott(u, v):
    reaction = u * v * v
    high = max(v)
    u = u + du * lap(u) - reaction + feed * (1 - u)  # noqa: F821
    v = v + dv * lap(v) + reaction - (feed + kill) * v  # noqa: F821


def main():
    options = parse(__doc__.splitlines()[0], 768, 6000, "stencil_gray_scott.png")
    size = options.size
    random = np.random.default_rng(1)
    with hanare.Grid((size, size), ["u", "v"], dtype="float32", boundary="periodic",
                     memory=options.memory or "256MiB", directory=options.folder) as grid:
        grid["u"] = 1.0
        for _ in range(max(4, size // 24)):
            y, x = random.integers(0, size - 10, 2)
            grid["u"][y:y + 10, x:x + 10] = 0.5
            grid["v"][y:y + 10, x:x + 10] = 0.25 + 0.1 * random.random((10, 10))
        result = grid.run(options.steps, gray_scott)
        substance = grid["v"][...]
    assert np.isfinite(substance).all() and 0 <= substance.min() and substance.max() < 1
    assert result.reductions["high"][-1] > 0.2, "the corals have died"
    write_png(options.output, enlarged(coloured(substance, CORAL, 0, 0.4), 400))
    print(f"{result.statistics}: {options.output}")


if __name__ == "__main__":
    main()
