# SPDX-License-Identifier: Apache-2.0
"""multiprocessing.Pool: forked workers that read the array of their parent and return parts."""

import array
import multiprocessing
import random
import sys

DATA = array.array("Q")


def work(part):
    """(start, sum, greatest, median of some) of a part of the array that the parent filled."""
    first, last = part
    piece = DATA[first:last]
    ordered = sorted(piece[::16])
    return first, sum(piece), max(piece), ordered[len(ordered) // 2]


def main():
    numbers = int(sys.argv[1])
    generator = random.Random(18)
    for _ in range(0, numbers, 1 << 20):
        DATA.frombytes(generator.randbytes(8 << 20))
    step = 1 << 18
    parts = [(first, first + step) for first in range(0, len(DATA), step)]
    with multiprocessing.get_context("fork").Pool(2) as workers:
        for row in workers.imap(work, parts):
            print(*row)
        for first in range(0, len(DATA), 4096):
            DATA[first] ^= 0xFFFF  # the workers must go on seeing what was there at the fork
        before = workers.map(work, parts[::4])
    print("after", sum(DATA), *(row[1] for row in before))


if __name__ == "__main__":
    main()
