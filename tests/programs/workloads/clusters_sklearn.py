# SPDX-License-Identifier: Apache-2.0
"""scikit-learn: clusters, principal components and nearest neighbours of points."""

import sys

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import PCA
from sklearn.neighbors import KDTree
from sklearn.preprocessing import StandardScaler

rows = int(sys.argv[1])
generator = np.random.default_rng(15)
centers = generator.normal(scale=20, size=(12, 40))
labels = generator.integers(0, 12, rows)
points = centers[labels] + generator.normal(size=(rows, 40))
scaled = StandardScaler().fit_transform(points)
reduced = PCA(n_components=5, random_state=0, svd_solver="covariance_eigh").fit_transform(scaled)
found = MiniBatchKMeans(12, n_init=1, random_state=0, batch_size=4096).fit_predict(reduced)
pairs = np.unique(found * 100 + labels)
print("clusters", len(np.unique(found)), "pairs", len(pairs))
tree = KDTree(reduced[:, :3])
distances, _ = tree.query(reduced[::500, :3], k=5)
print("neighbours", f"{distances.mean():.6f}", f"{np.abs(reduced).mean():.6f}")
