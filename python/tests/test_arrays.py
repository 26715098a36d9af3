# SPDX-License-Identifier: Apache-2.0
"""Arrays larger than the pool's memory are as ordinary ones."""
import numpy as np
import pytest

import hanare

ELEMENTS = 4 << 20  # 32 MiB of float64, in pools of 8


def test_new_arrays_are_zeros(pool):
    a = pool.empty(ELEMENTS)
    assert a.dtype == np.float64 and a.shape == (ELEMENTS,) and not a.any()
    assert not pool.zeros((3, 5), dtype="int16").any()


def test_values_survive_leaving_local_memory(pool):
    a = pool.empty((ELEMENTS // 1024, 1024))
    a[:] = np.arange(ELEMENTS).reshape(a.shape)
    assert pool.stats()["written_bytes"] > 0
    a *= 3
    assert (a.ravel() == 3.0 * np.arange(ELEMENTS)).all()
    assert pool.stats()["resident_bytes"] <= pool.local_bytes < a.nbytes


@pytest.mark.parametrize("dtype", ["?", "i1", "<u8", ">f4", "c16", "S7", "U3", "M8[ns]",
                                   [("a", "i4"), ("b", "f8", 3)]])
def test_types(pool, dtype):
    far = pool.empty(1000, dtype)
    plain = np.zeros(1000, dtype)
    assert far.dtype == plain.dtype and (far == plain).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_orders(pool, order):
    a = pool.empty((300, 200), order=order)
    assert a.flags.c_contiguous == (order == "C") and a.flags.f_contiguous == (order == "F")
    a[17, 3] = 5
    assert a.sum() == 5


def test_full_and_ones(pool):
    assert (pool.ones((100, 100), dtype="f4") == 1).all()
    sevens = pool.full(1000, 7)
    assert sevens.dtype == np.asarray(7).dtype and (sevens == 7).all()
    assert (pool.full((2, 3), [1.5, 2.5, 3.5]) == [1.5, 2.5, 3.5]).all()


def test_nothing_and_one(pool):
    assert pool.empty(0).shape == (0,)
    assert pool.empty((3, 0, 2)).size == 0
    scalar = pool.empty(())
    scalar[()] = 4
    assert scalar == 4


def test_asarray(pool):
    plain = np.asfortranarray(np.random.default_rng(1).normal(size=(300, 200)))
    far = pool.asarray(plain)
    assert far in pool and plain not in pool
    assert far.flags.f_contiguous and (far == plain).all()
    assert pool.asarray(far) is far
    assert pool.asarray(far, dtype="f4").dtype == np.float32
    assert (pool.asarray([[1, 2], [3, 4]]) == [[1, 2], [3, 4]]).all()
    assert pool.asarray(far[::2]).base is far  # a view is far, too
    words = pool.asarray(["abc", "de"], dtype="S")
    assert words in pool and words.tolist() == [b"abc", b"de"]
    days = pool.asarray(["2026-11-27"], dtype="M8")
    assert days in pool and str(days[0]) == "2026-11-27"


def test_blocks_of_an_array(pool):
    assert pool.stats(pool.empty(ELEMENTS, block="16K"))["block_bytes"] == 16 << 10
    assert pool.stats(pool.empty(ELEMENTS))["block_bytes"] == 128 << 10


def test_advice(pool):
    a = pool.ones(ELEMENTS)
    for advice in ("sequential", "random", "normal"):
        pool.advise(a, advice)
    pool.advise(a, "dontneed")
    assert pool.stats(a)["resident_bytes"] == 0
    assert a[5] == 1
    pool.advise(a[:ELEMENTS // 2], "discard")
    assert a[:ELEMENTS // 2].sum() == 0 and a[ELEMENTS // 2:].all()
    pool.flush(a)
    assert pool.stats(a)["dirty_bytes"] == 0
    pool.flush()
    pool.advise(a[:100_000], "willneed")
    assert a[:100_000].sum() == 0


def test_pins(pool):
    a = pool.ones(ELEMENTS)
    with pool.pinned(a[:1000]) as part:
        assert pool.stats()["pinned_bytes"] > 0
        part += 1
    assert pool.stats()["pinned_bytes"] == 0
    with pytest.raises(hanare.NoRoomError), pool.pinned(a):
        pass


def test_representations(pool):
    a = pool.ones(ELEMENTS)
    assert "32 MiB of arrays" in repr(pool) and "of local memory" in repr(pool)
    page = pool._repr_html_()
    assert "32 MiB" in page and "<script" not in page
    pool.close()
    assert repr(pool) == "<hanare.Pool, closed>" and "closed" in pool._repr_html_()
    assert a.all()


def test_default_pool(store, script):
    text = """
import logging, os
logging.basicConfig(level=logging.INFO)
import hanare, numpy as np
a = hanare.zeros(1000)
b = hanare.full(10, 3.5)
assert a in hanare.default_pool() and b in hanare.default_pool()
assert (hanare.asarray([1, 2]) == [1, 2]).all()
limit = hanare.default_pool().local_bytes
available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
assert 0 < limit <= 0.81 * available, limit
"""
    assert script(text) == ""
