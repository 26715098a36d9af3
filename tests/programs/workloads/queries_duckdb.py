# SPDX-License-Identifier: Apache-2.0
"""DuckDB in memory: tables made by the database, joined, grouped and ordered."""

import sys

import duckdb

rows = int(sys.argv[1])
base = duckdb.connect(":memory:", config={"threads": 2, "memory_limit": "16GB",
                                          "preserve_insertion_order": True})
base.execute(f"""
    create table facts as
    select i as id, (i * 2654435761) % 1000003 as key, hash(i) % 1000 as value,
           'name ' || ((i * 40503) % 65521) as name
    from range({rows}) rows(i)""")
base.execute("create table keys as select key, sum(value) as total, min(name) as first "
             "from facts group by key")
for query in (
        "select count(*), sum(id), sum(key), sum(value), max(name) from facts",
        "select count(*), sum(total), max(first) from keys",
        "select name, count(*), sum(value) from facts group by name order by 3 desc, 1 limit 10",
        "select sum(f.value * k.total), min(k.first || f.name) "
        "from facts f join keys k using (key)",
        "select id, name from facts order by value desc, name, id limit 10",
        "select max(r) from (select rank() over (partition by name order by value, id) r "
        "from facts)"):
    print(base.execute(query).fetchall())
