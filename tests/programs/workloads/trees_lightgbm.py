# SPDX-License-Identifier: Apache-2.0
"""LightGBM: boosted trees, with the options that make them the same each time."""

import hashlib
import sys

import lightgbm as lgb
import numpy as np

rows = int(sys.argv[1])
generator = np.random.default_rng(16)
features = generator.random((rows, 60))
target = (features[:, 0] * 3 + np.sin(features[:, 1] * 9) + features[:, 2] * features[:, 3]
          + generator.normal(scale=0.1, size=rows))
data = lgb.Dataset(features, target, free_raw_data=False)
model = lgb.train({"objective": "regression", "num_leaves": 63, "num_threads": 2, "seed": 1,
                   "deterministic": True, "force_row_wise": True, "verbose": -1}, data, 30)
print(hashlib.sha256(model.model_to_string().encode()).hexdigest())
print(f"{np.abs(model.predict(features[::10]) - target[::10]).mean():.10f}")
