#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An acoustic wave below ground, in a grid that is larger than its memory.

Second order in time, eighth in space (25 points); velocities and an absorbing sponge are fields of
their own.  A source near the surface sends one pulse; the picture shows a section through it at
four times, over the layers that reflect it, with the salt in the middle.
"""
import numpy as np
from stencil_picture import SEA, coloured, enlarged, parse, side_by_side, write_png

import hanare

WEIGHTS = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
SPACING_M = 15.0
TIME_STEP_S = 0.0014
FREQUENCY_HZ = 12.0


def velocity(plane, size):
    """Of a plane y: metres a second, by depth and x."""
    y = (plane + 0.5) / size
    depth, x = np.mgrid[0:size, 0:size] / size
    speed = 1500 + 1800 * depth
    speed += np.where(depth > 0.45 + 0.06 * np.sin(5 * x + 3 * y), 500, 0)
    speed += np.where(depth > 0.75 - 0.1 * x, 600, 0)
    salt = (x - 0.55) ** 2 / 0.05 + (y - 0.5) ** 2 / 0.05 + (depth - 0.6) ** 2 / 0.012 < 1
    return np.where(salt, 4500, speed)


def sponge(plane, size, width):
    """Of a plane: 1 inside, less towards the sides and below."""
    place = np.arange(size)
    edge = np.minimum(place, size - 1 - place)
    depth = size - 1 - place
    outside = [np.clip(width - each, 0, None) for each in (
        np.full((size, size), edge[plane]), depth[:, None] + 0 * edge, edge + 0 * depth[:, None])]
    return np.exp(-(0.9 * np.hypot(np.hypot(*outside[:2]), outside[2]) / width / 3) ** 2)


def main():
    options = parse(__doc__.splitlines()[0], 224, 900, "stencil_acoustic.png")
    size, steps = options.size, options.steps
    wave = hanare.stencil("""
        lap = 3*w[0]*u + sum(w[d] * (u[0,0,-d] + u[0,0,d] + u[0,-d,0] + u[0,d,0] + u[-d,0,0]
                                     + u[d,0,0]) for d in range(1, 5))
        u = s * (2*u[0,0,0] - s*old(u) + c*lap)
        """, w=WEIGHTS, fast_math=True)
    phase = (np.pi * FREQUENCY_HZ * (TIME_STEP_S * np.arange(steps) - 1.2 / FREQUENCY_HZ)) ** 2
    pulse = (1 - 2 * phase) * np.exp(-phase)
    fields = {"u": "two_levels", "c": "constant", "s": "constant"}
    with hanare.Grid((size,) * 3, fields, dtype="float32", radius=wave, place="file",
                     memory=options.memory or "72MiB", directory=options.folder) as grid:
        grid["c"] = lambda y: (velocity(y, size) * TIME_STEP_S / SPACING_M) ** 2
        grid["s"] = lambda y: sponge(y, size, size // 10)
        middle = size // 2
        result = grid.run(steps, wave, progress=False,
                          sources=hanare.Source((middle, size // 12, size // 2), pulse),
                          snapshots=hanare.Snapshots(steps // 4, planes=middle))
        held = grid.domain_bytes + grid.domain_bytes // 3
        print(f"{grid!r}: {held / grid.memory_bytes:.1f} times its memory")
    section = velocity(middle, size)
    pictures = []
    for cells in result.snapshots:
        assert np.isfinite(cells).all() and np.abs(cells).max() > 0
        shown = cells / np.quantile(np.abs(cells), 0.995)
        ground = coloured(section, ["ffffff", "404040"], 1000, 5500).astype(float)
        strength = np.clip(np.abs(shown), 0, 1)[..., None] ** 0.7
        pictures.append(((1 - strength) * ground + strength * coloured(shown, SEA, -1, 1)).astype(
            np.uint8))
    write_png(options.output, enlarged(side_by_side(pictures), 280))
    print(f"{result.statistics}: {options.output}")


if __name__ == "__main__":
    main()
