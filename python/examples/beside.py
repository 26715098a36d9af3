# SPDX-License-Identifier: Apache-2.0
"""What the examples share: the same computation in far memory and in numpy.memmap."""
from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import hanare

Maker = Callable[..., np.ndarray]  # (shape, dtype): an array of zeros


def parse(description: str, size: str, default: int, picture: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--size", type=int, default=default, help=f"{size} (default {default})")
    parser.add_argument("--local", default="128MiB",
                        help="local memory of the far arrays (default 128MiB)")
    parser.add_argument("--folder", default="/var/tmp",
                        help="where both keep what is not in memory (default /var/tmp)")
    parser.add_argument("--output", default=picture, help=f"the picture (default {picture})")
    return parser.parse_args()


def run_both(options: argparse.Namespace, compute: Callable[[Maker], Any]) -> Any:
    """The result of compute(maker), which has to be the same for both.

    numpy.memmap takes what memory of the machine there is: run this in a control group to see
    both with the same.
    """
    results = []
    with hanare.Pool(local=options.local, store=f"file:{options.folder}") as pool:
        begin = time.perf_counter()
        results.append(compute(pool.zeros))
        seconds = time.perf_counter() - begin
        counters = pool.stats()
        print(f"hanare        {seconds:7.2f} s, {options.local} of local memory, "
              f"{counters['read_bytes'] >> 20} MiB read, {counters['written_bytes'] >> 20} MiB "
              "written")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        made = 0

        def mapped(shape: Any, dtype: Any = float) -> np.ndarray:
            nonlocal made
            made += 1
            return np.memmap(f"{folder}/{made}", dtype, "w+", shape=shape)

        begin = time.perf_counter()
        results.append(compute(mapped))
        print(f"numpy.memmap  {time.perf_counter() - begin:7.2f} s, of all the memory there is")
    for far, plain in zip(*results, strict=True):
        np.testing.assert_array_equal(np.asarray(far), np.asarray(plain))
    return results[0]
