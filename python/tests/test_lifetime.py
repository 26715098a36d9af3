# SPDX-License-Identifier: Apache-2.0
"""Memory comes back when the last reference is gone, and not before."""
import gc
import threading

import numpy as np
import pytest

import hanare

ELEMENTS = 4 << 20


def resident_bytes():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def test_memory_is_returned_after_del(pool):
    gc.disable()  # by counting alone
    try:
        a = pool.ones(ELEMENTS)
        view = a[10:20].reshape(2, 5)
        assert pool.stats()["virtual_bytes"] == ELEMENTS * 8
        del a
        assert view.all()
        assert pool.stats()["virtual_bytes"] == ELEMENTS * 8
        del view
        assert pool.stats()["virtual_bytes"] == 0
        assert pool.stats()["resident_bytes"] == 0
    finally:
        gc.enable()


def test_the_process_gets_smaller(store):
    before = resident_bytes()
    for _ in range(5):
        pool = hanare.Pool(local="64MiB", store=store)
        a = pool.ones(32 << 20)
        assert resident_bytes() - before > 32 << 20
        del a, pool
        assert resident_bytes() - before < 16 << 20


def test_the_store_gets_smaller(tmp_path):
    import os
    pool = hanare.Pool(local="8MiB", store=tmp_path)
    a = pool.ones(ELEMENTS)
    pool.flush()

    def store_bytes():
        total = 0
        for name in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink(f"/proc/self/fd/{name}")
                if target.startswith(str(tmp_path)):
                    total += os.stat(f"/proc/self/fd/{name}").st_blocks * 512
            except OSError:
                continue
        return total

    assert store_bytes() >= a.nbytes
    del a, pool
    assert store_bytes() == 0
    assert os.listdir(tmp_path) == []


def test_arrays_outlive_their_pool(store):
    with hanare.Pool(local="8MiB", store=store) as pool:
        a = pool.ones(ELEMENTS)
    assert pool.closed
    a += 1
    assert (a == 2).all()
    with pytest.raises(hanare.ArgumentError, match="the pool is closed"):
        pool.empty(3)
    with pytest.raises(hanare.ArgumentError, match="the pool is closed"), pool:
        pass


def test_threads_make_and_drop_arrays(pool):
    failures = []

    def work(seed):
        random = np.random.default_rng(seed)
        try:
            for _ in range(20):
                size = int(random.integers(1, 300_000))
                a = pool.full(size, seed)
                a[::2] += 1
                assert a.sum() == size * seed + (size + 1) // 2
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert pool.stats()["virtual_bytes"] == 0
