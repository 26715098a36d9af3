// SPDX-License-Identifier: Apache-2.0
//
// The program that an interpreter with Devito runs for `hanare bench stencil`: a StencilJob as its
// argument, a part of a StencilOutcome as the last line of its output.  The values that cells begin
// with, sums and cells that are compared are those of bench/stencil_seven.hpp.
#pragma once

namespace hanare::cli {

inline constexpr const char* kDevitoProgram = R"python(
import json, os, sys
os.environ.setdefault("DEVITO_ARCH", "gcc")
os.environ.setdefault("DEVITO_LANGUAGE", "openmp")
os.environ.setdefault("DEVITO_LOGGING", "ERROR")
job = json.loads(sys.argv[1])
os.environ["OMP_NUM_THREADS"] = str(job["threads"])
import devito
import numpy as np
nz, ny, nx = job["z"], job["y"], job["x"]
steps = job["steps"]

def mixed(z):
    z = z + np.uint64(0x9e3779b97f4a7c15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xbf58476d1ce4e5b9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94d049bb133111eb)
    return z ^ (z >> np.uint64(31))

def fill(u):
    index = np.arange(ny * nx, dtype=np.uint64)
    for z in range(nz):
        values = (mixed(index + np.uint64(z * ny * nx)) >> np.uint64(11)) * 2.0**-53
        for level in range(2):
            u.data[level, z] = values.reshape(ny, nx)

grid = devito.Grid(shape=(nz, ny, nx), extent=(nz - 1, ny - 1, nx - 1), dtype=np.float64)
u = devito.TimeFunction(name="u", grid=grid, time_order=1, space_order=2)
z, y, x = grid.dimensions
sides = sum(u.subs(d, d + s * d.spacing) for d in (z, y, x) for s in (-1, 1))
step = devito.Operator(devito.Eq(u.forward, 0.4 * u + 0.1 * sides, subdomain=grid.interior))
fill(u)
step.apply(time_M=1)
fill(u)
summary = step.apply(time_M=steps - 1, autotune=("basic", "preemptive"))
seconds = sum(entry.time for entry in summary.values())
cells = u.data[steps % 2]
groups = min(128, nz)
sums = [sum(float(cells[z].sum()) for z in range(nz * g // groups, nz * (g + 1) // groups))
        for g in range(groups)]
places = mixed(np.arange(256, dtype=np.uint64)) % np.uint64(nz * ny * nx)
samples = [float(cells[int(p) // (ny * nx), int(p) // nx % ny, int(p) % nx]) for p in places]
print(json.dumps({"seconds": seconds, "details": f"Devito {devito.__version__}",
                  "result": {"digest": 0, "sums": sums, "cells": samples}}))
)python";

}  // namespace hanare::cli
