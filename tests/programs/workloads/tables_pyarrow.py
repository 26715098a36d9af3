# SPDX-License-Identifier: Apache-2.0
"""Apache Arrow: a table sorted, grouped, joined, written as Parquet and read back."""

import random
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

rows = int(sys.argv[1])
numbers = pa.Array.from_buffers(pa.uint32(), rows,
                                [None, pa.py_buffer(random.Random(14).randbytes(4 * rows))])
key = pc.cast(pc.bit_wise_and(numbers, pa.scalar(0xFFFF, pa.uint32())), pa.int64())
value = pc.cast(pc.shift_right(numbers, pa.scalar(8, pa.uint32())), pa.int64())
name = pc.binary_join_element_wise("key", pc.cast(key, pa.string()), "-")
table = pa.table({"key": key, "value": value, "name": name})
ordered = table.sort_by([("value", "ascending"), ("key", "descending")])
print("sorted", ordered.slice(rows // 2, 3).to_pylist())
groups = table.group_by("name").aggregate([("value", "sum"), ("value", "max")]).sort_by("name")
print("groups", groups.num_rows, groups.slice(1000, 3).to_pylist())
joined = table.join(groups, "name").sort_by([("value", "ascending"), ("key", "descending")])
print("joined", joined.num_rows, pc.sum(pc.subtract(joined["value_max"], joined["value"])))
pq.write_table(ordered, "ordered.parquet", compression="snappy")
print("file", pq.read_table("ordered.parquet").equals(ordered))
