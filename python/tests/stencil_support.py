# SPDX-License-Identifier: Apache-2.0
"""Stencils computed plainly, by NumPy, to compare with."""
import itertools

import numpy as np

MODES = {"reflect": "symmetric", "periodic": "wrap"}


class Padded:
    """A field with what lies beyond its boundary; indexed by offsets, as in stencils."""

    def __init__(self, array, boundary, radius):
        self.array = array
        self.radius = radius
        padded = array
        for axis, kind in enumerate(boundary):
            widths = [(radius, radius) if axis == each else (0, 0) for each in range(array.ndim)]
            if kind == "fixed":  # never looked at where cells are updated
                padded = np.pad(padded, widths, constant_values=np.nan)
            else:
                padded = np.pad(padded, widths, MODES[kind])
        self.padded = padded

    def __getitem__(self, offsets):
        return self.padded[tuple(
            slice(self.radius + offset, self.radius + offset + size)
            for offset, size in zip(offsets, self.array.shape))]


def updated(shape, boundary, radius):
    """The cells that are updated, as slices."""
    return tuple(slice(radius, size - radius) if kind == "fixed" else slice(None)
                 for size, kind in zip(shape, boundary))


def put(array, new, inside):
    """A copy, with the new values where cells are updated."""
    changed = array.copy()
    changed[inside] = np.broadcast_to(new, array.shape)[inside]
    return changed


def offsets_within(radius, dimensions):
    return list(itertools.product(range(-radius, radius + 1), repeat=dimensions))


def star(radius, dimensions):
    """Offsets of a star, the centre first."""
    found = [(0,) * dimensions]
    for axis in range(dimensions):
        for distance in range(1, radius + 1):
            for sign in (-1, 1):
                offset = [0] * dimensions
                offset[axis] = sign * distance
                found.append(tuple(offset))
    return found
