# SPDX-License-Identifier: Apache-2.0
"""NumPy: product of matrices, sort, sums along both axes, a file written and read back."""

import sys

import numpy as np

n = int(sys.argv[1])
generator = np.random.default_rng(11)
a = generator.integers(-8, 8, (n, n)).astype(np.float64)
b = generator.integers(-8, 8, (n, n)).astype(np.float64)
c = a @ b  # whole numbers below 2^53: exact in every order of summation
print("product", int(c.sum()), int(np.trace(c)))
rows = np.sort(c, axis=1)
print("sorted", int(rows[:, 0].sum()), int(rows[:, -1].sum()), int(rows[n // 2, n // 2]))
np.save("sorted.npy", rows)
again = np.load("sorted.npy")
print("file", bool((again == rows).all()), int(np.cumsum(again, axis=0)[-1, n // 3]))
transposed = np.ascontiguousarray(again.T)
print("columns", int(transposed[1].sum()), int((transposed[::2] - transposed[1::2]).max()))
values, counts = np.unique((a * 16 + b).astype(np.int64), return_counts=True)
print("pairs", len(values), int(counts.max()))
