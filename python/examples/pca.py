#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Principal components of a tall matrix that is larger than local memory.

Three hidden factors are mixed into 64 columns; the picture shows where the rows lie on the first two
components, and how much each component explains.
"""
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from beside import parse, run_both

COLUMNS = 64
PIECE = 65536  # rows at a time


def main() -> None:
    options = parse(__doc__.splitlines()[0], "rows of 64 float32", 2_000_000, "pca.png")
    rows = options.size

    def compute(make):
        random = np.random.default_rng(1)
        matrix = make((rows, COLUMNS), "float32")
        mixing = random.normal(size=(3, COLUMNS)).astype("float32")
        for begin in range(0, rows, PIECE):
            part = matrix[begin:begin + PIECE]
            angle = random.uniform(0, 4 * np.pi, len(part)).astype("float32")
            factors = np.stack([angle * np.cos(angle), angle * np.sin(angle),
                                random.normal(size=len(part))], axis=1).astype("float32")
            part[:] = factors @ mixing + random.normal(size=part.shape)
        matrix -= matrix.mean(axis=0, dtype="float64").astype("float32")
        covariance = np.zeros((COLUMNS, COLUMNS))
        for begin in range(0, rows, PIECE):
            part = np.asarray(matrix[begin:begin + PIECE], "float64")
            covariance += part.T @ part
        values, vectors = np.linalg.eigh(covariance / (rows - 1))
        shown = np.zeros((300, 300))
        edge = 4 * np.sqrt(values[-1])
        for begin in range(0, rows, PIECE):
            places = matrix[begin:begin + PIECE] @ vectors[:, [-1, -2]].astype("float32")
            shown += np.histogram2d(*places.T, bins=300, range=[[-edge, edge]] * 2)[0]
        return values[::-1], shown, np.array(edge)

    values, shown, edge = run_both(options, compute)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    left.imshow(np.log1p(shown.T), origin="lower", extent=[-edge, edge] * 2, cmap="viridis")
    left.set(title=f"{rows:,} rows", xlabel="first component", ylabel="second component")
    right.bar(range(1, 11), 100 * values[:10] / values.sum())
    right.set(title="what the components explain", xlabel="component", ylabel="% of the variance")
    figure.savefig(options.output, dpi=120)
    print(f"three of {COLUMNS} components explain {100 * values[:3].sum() / values.sum():.1f} %: "
          f"{options.output}")


if __name__ == "__main__":
    main()
