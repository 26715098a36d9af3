#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PageRank of a graph whose edges are more than local memory holds.

A page links to pages that came before it, to well-known ones most often.  The picture shows how many
pages have at least a given rank.
"""
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from beside import parse, run_both

LINKS = 16  # of each page
DAMPING = 0.85
PIECE = 1 << 20  # links at a time


def main() -> None:
    options = parse(__doc__.splitlines()[0], "pages, with 16 links each", 3_000_000, "pagerank.png")
    pages = options.size

    def compute(make):
        random = np.random.default_rng(11)
        links = pages * LINKS
        sources = make(links, "int32")
        targets = make(links, "int32")
        for begin in range(0, links, PIECE):
            pages_of = np.arange(begin, min(begin + PIECE, links)) // LINKS
            sources[begin:begin + PIECE] = pages_of
            targets[begin:begin + PIECE] = pages_of * random.power(0.8, len(pages_of))
        rank = np.full(pages, 1 / pages)
        changes = []
        for _ in range(12):
            incoming = np.zeros(pages)
            for begin in range(0, links, PIECE):
                given = rank[sources[begin:begin + PIECE]] / LINKS
                incoming += np.bincount(targets[begin:begin + PIECE], given, pages)
            new = (1 - DAMPING) / pages + DAMPING * incoming
            new += (1 - new.sum()) / pages
            changes.append(np.abs(new - rank).sum())
            rank = new
        return rank, np.array(changes)

    rank, changes = run_both(options, compute)
    ordered = np.sort(rank)[::-1] * pages
    places = np.unique(np.geomspace(1, pages, 400).astype(int))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
    left.loglog(ordered[places - 1], places)
    left.set(title=f"{pages:,} pages, {pages * LINKS:,} links", xlabel="rank, by the mean",
             ylabel="pages with at least that")
    right.semilogy(range(1, len(changes) + 1), changes, "o-")
    right.set(title="convergence", xlabel="iteration", ylabel="change of all ranks together")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.savefig(options.output, dpi=120)
    print(f"the first page has {ordered[0]:.0f} times the mean rank: {options.output}")


if __name__ == "__main__":
    main()
