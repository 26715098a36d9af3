#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A mosaic of overlapping pictures on a canvas that is larger than local memory.

Each tile is a Julia set of its own; where tiles overlap they are blended.  The picture is the canvas,
made smaller.
"""
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from beside import parse, run_both

TILE = 512
STEP = 384  # neighbours overlap by a quarter


def julia(constant: complex) -> np.ndarray:
    """Between 0 and 1, TILE x TILE."""
    axis = np.linspace(-1.5, 1.5, TILE)
    z = axis[None, :] + 1j * axis[:, None]
    steps = np.zeros(z.shape)
    for _ in range(40):
        inside = np.abs(z) < 4
        steps += inside
        z = np.where(inside, z * z + constant, z)
    return steps / 40


def main() -> None:
    options = parse(__doc__.splitlines()[0], "pixels of each side", 10_000, "mosaic.png")
    side = TILE + max(options.size - TILE, 0) // STEP * STEP
    rise = np.minimum(np.arange(TILE) + 1, np.arange(TILE, 0, -1)) / (TILE // 2)
    weight = np.minimum.outer(rise, rise).astype("float32")
    colours = plt.get_cmap("magma")
    tiles = []
    for k in range(24):
        shades = colours(julia(0.7885 * np.exp(2j * np.pi * k / 24)))[..., :3]
        tiles.append(shades.astype("float32") * weight[..., None])

    def compute(make):
        canvas = make((side, side, 3), "float32")
        weights = make((side, side), "float32")
        random = np.random.default_rng(5)
        for top in range(0, side - TILE + 1, STEP):
            for left in range(0, side - TILE + 1, STEP):
                place = np.s_[top:top + TILE, left:left + TILE]
                canvas[place] += tiles[random.integers(len(tiles))]
                weights[place] += weight
        factor = max(side // 1000, 1)
        part = side // factor * factor
        small = np.zeros((part // factor, part // factor, 3))
        for row in range(part // factor):
            lines = np.s_[row * factor:(row + 1) * factor, :part]
            blended = canvas[lines] / np.maximum(weights[lines], 1e-6)[..., None]
            small[row] = blended.reshape(factor, -1, factor, 3).mean(axis=(0, 2))
        return (np.clip(small, 0, 1),)

    (small,) = run_both(options, compute)
    plt.imsave(options.output, small)
    print(f"{side} x {side} pixels, {side * side * 16 >> 20} MiB: {options.output}")


if __name__ == "__main__":
    main()
