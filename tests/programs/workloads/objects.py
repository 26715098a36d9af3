# SPDX-License-Identifier: Apache-2.0
"""CPython: dictionaries, lists, tuples and strings by the million, sorted and looked up."""

import random
import sys

rows = int(sys.argv[1])
generator = random.Random(19)
people = {f"person {number}": (number, generator.random(), [number % 7, number % 11])
          for number in range(rows)}
by_rest = {}
for name, (number, value, rest) in people.items():
    by_rest.setdefault(tuple(rest), []).append((value, name))
for rest in sorted(by_rest):
    by_rest[rest].sort()
print(len(people), [by_rest[rest][0] for rest in sorted(by_rest)][:10])
total = 0
for _ in range(rows // 2):
    total += people[f"person {generator.randrange(rows)}"][0]
print(total)
names = sorted(people, key=lambda name: people[name][1])
print(names[:5], names[rows // 2], len(set(names)))
for name in names[::3]:
    del people[name]
print(len(people), sum(len(entry[2]) for entry in people.values()))
