# SPDX-License-Identifier: Apache-2.0
"""SciPy: a Fourier transform in three dimensions and back, and a sparse product and solution."""

import sys

import numpy as np
import scipy.fft
import scipy.sparse
import scipy.sparse.linalg

n = int(sys.argv[1])
generator = np.random.default_rng(12)
field = generator.random((n, n, n))
spectrum = scipy.fft.rfftn(field, workers=2)
spectrum[n // 4:-n // 4] = 0
smooth = scipy.fft.irfftn(spectrum, s=field.shape, workers=2)
print("smooth", f"{smooth.mean():.10f} {smooth.std():.10f} {smooth[1, 2, 3]:.8f}")
del spectrum, smooth

rows = n * 4
diagonals = [np.full(rows * rows, value) for value in (-1.0, -1.0, 4.2, -1.0, -1.0)]
matrix = scipy.sparse.dia_matrix((diagonals, (-rows, -1, 0, 1, rows)), (rows * rows,) * 2).tocsr()
square = matrix @ matrix
print("square", square.nnz, f"{square.sum():.3f}")
solution, state = scipy.sparse.linalg.cg(matrix, np.ones(rows * rows), rtol=1e-8, maxiter=60)
print("solution", state, f"{np.linalg.norm(solution):.8f}")
