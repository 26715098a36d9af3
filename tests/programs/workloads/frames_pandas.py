# SPDX-License-Identifier: Apache-2.0
"""pandas: two tables joined, grouped, sorted, written as CSV and read back."""

import sys

import numpy as np
import pandas as pd

rows = int(sys.argv[1])
generator = np.random.default_rng(13)
sales = pd.DataFrame({"item": generator.integers(0, rows // 10, rows),
                      "place": generator.integers(0, 500, rows),
                      "amount": generator.integers(1, 1000, rows),
                      "day": generator.integers(0, 3650, rows)})
items = pd.DataFrame({"item": np.arange(rows // 10),
                      "weight": generator.integers(1, 99, rows // 10),
                      "name": [f"item {number}" for number in range(rows // 10)]})
joined = sales.merge(items, on="item")
joined["load"] = joined["amount"] * joined["weight"]
by_place = joined.groupby("place").agg({"load": "sum", "day": "max", "name": "nunique"})
print(by_place.head(10).to_csv())
ordered = joined.sort_values(["place", "load", "day", "item"], kind="stable")
print(ordered.iloc[::rows // 20].to_csv(index=False))
ordered.iloc[:rows // 8].to_csv("part.csv", index=False)
print(int(pd.read_csv("part.csv")["load"].sum()))
print(int(ordered.pivot_table(index="place", columns=ordered["day"] // 365, values="amount",
                              aggfunc="sum", fill_value=0).to_numpy().max()))
