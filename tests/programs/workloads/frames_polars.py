# SPDX-License-Identifier: Apache-2.0
"""Polars: tables made of expressions, joined, grouped and sorted; exact whole numbers."""

import sys

import polars as pl

rows = int(sys.argv[1])
number = pl.int_range(rows, eager=True)
mixed = (number * 2_654_435_761) % 4_294_967_291
table = pl.DataFrame({"id": number, "key": mixed % (rows // 8), "value": mixed % 100_003,
                      "name": "n" + (mixed % 65_521).cast(pl.String)})
groups = (table.group_by("key").agg(pl.col("value").sum().alias("total"), pl.len().alias("count"),
                                    pl.col("name").n_unique().alias("names")).sort("key"))
print(groups.head(5).write_csv(), groups.select(pl.all().sum()).write_csv())
joined = table.join(groups, on="key").sort("value", "id")
print(joined.gather_every(rows // 20).write_csv())
print(joined.select((pl.col("total") * pl.col("count") - pl.col("value")).sum()).item())
print(table.sort("name", "value", "id").gather_every(rows // 10).write_csv())
