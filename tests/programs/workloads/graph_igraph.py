# SPDX-License-Identifier: Apache-2.0
"""igraph: a random graph that grows by preference; components, ranks, cores and distances."""

import random
import sys

import igraph

vertices = int(sys.argv[1])
random.seed(17)  # igraph takes its random numbers from Python's generator
graph = igraph.Graph.Barabasi(vertices, 4)
print(graph.vcount(), graph.ecount(), graph.maxdegree())
print(len(graph.connected_components()), max(graph.coreness()))
ranks = graph.pagerank()
print(max(range(vertices), key=ranks.__getitem__), f"{max(ranks):.9f}")
distances = graph.distances(source=[0])[0]
print(max(distances), sum(distances))
