#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generated kernels next to kernels by hand and to C++ lambdas: README.md."""
import argparse
import ctypes
import os
import pathlib
import statistics
import subprocess
import tempfile

import numpy as np

import hanare

HERE = pathlib.Path(__file__).parent
WEIGHTS = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
SEVEN = ("u = 0.4*u[0,0,0] + 0.1*(u[-1,0,0] + u[1,0,0] + u[0,-1,0] + u[0,1,0] + u[0,0,-1]"
         " + u[0,0,1])")
WAVE = """
lap = 3*w[0]*u + sum(w[d]*(u[0,0,d] + u[0,0,-d] + u[0,d,0] + u[0,-d,0] + u[d,0,0] + u[-d,0,0])
                     for d in range(1, 5))
u = 2*u[0,0,0] - old(u) + c*lap
"""
# Fields, reads, text, steps of a run.
CASES = {"seven": ({"u": "state"}, {"u": 1}, SEVEN, 60),
         "wave": ({"u": "two_levels", "c": "constant"}, {"u": 4, "c": 0}, WAVE, 20)}


def lambdas(build, folder):
    """Kernels of lambdas.cpp by name, or nothing where there is no library to link with."""
    if build is None:
        return {}
    made = pathlib.Path(folder) / "lambdas.so"
    subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-O3", "-march=native",
                    "-mprefer-vector-width=512", "-ffp-contract=off", "-shared", "-fPIC",
                    f"-I{HERE.parents[1] / 'include'}", HERE / "lambdas.cpp", "-o", made,
                    f"-L{build}", "-lhanare", f"-Wl,-rpath,{build}"], check=True)
    library = ctypes.CDLL(str(made))
    found = {}
    for name, (_, reads, _, _) in CASES.items():
        get_kernel, get_user = (getattr(library, f"{name}_{what}") for what in ("kernel", "user"))
        get_kernel.restype = get_user.restype = ctypes.c_void_p
        found[name] = hanare.kernel(get_kernel(), reads=reads, writes="u", user=get_user())
    return found


def compare(name, options, of_lambdas):
    fields, reads, text, steps = CASES[name]
    kernels = {"by hand": hanare.kernel((HERE / f"{name}.c").read_text(), reads=reads, writes="u"),
               "generated": hanare.stencil(text, w=WEIGHTS),
               "generated, fast_math": hanare.stencil(text, w=WEIGHTS, fast_math=True)}
    if name in of_lambdas:
        kernels["lambda"] = of_lambdas[name]
    rates = {kernel: [] for kernel in kernels}
    shape = (options.size, options.size, 2 * options.size)
    with hanare.Grid(shape, fields, radius=max(reads.values()), place="memory") as grid:
        start = np.random.default_rng(1).random(shape)
        results = []
        for kernel in kernels.values():  # they compute the same
            grid["u"] = start
            if "c" in fields:
                grid["u"].old.write(start)
                grid["c"] = 0.01 * start
            grid.run(8, kernel, measure=False)
            results.append(grid["u"][options.size // 2])
            assert np.allclose(results[0], results[-1], rtol=1e-12, atol=1e-12)
        for _ in range(options.rounds):
            for kernel, stencil in kernels.items():
                run = grid.run(steps, stencil, threads=options.threads, measure=False).statistics
                rates[kernel].append(run.cell_updates / run.elapsed_s / 1e6)
    for kernel, found in rates.items():
        ratios = [one / other for one, other in zip(found, rates["by hand"])]
        print(f"{name:6} {kernel:21} median {statistics.median(found):6.0f}  best "
              f"{max(found):6.0f} million updates/s, by hand's: median "
              f"{statistics.median(ratios):.3f}, best "
              f"{max(found) / max(rates['by hand']):.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--size", type=int, default=192, help="cells along y and z; twice along x")
    parser.add_argument("--build", help="a build folder of Hanare, for the lambdas")
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        of_lambdas = lambdas(options.build, folder)
        for name in options.cases:
            compare(name, options, of_lambdas)


if __name__ == "__main__":
    main()
