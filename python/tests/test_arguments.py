# SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong is one exception that names the argument and what is allowed."""
import pickle

import numpy as np
import pytest

import hanare


@pytest.mark.parametrize(("arguments", "named"), [
    ({"local": "lots"}, "local: 'lots' is not a size; allowed is bytes above 0, or a text"),
    ({"local": 0}, "local: 0 is out of range"),
    ({"local": -1}, "local: -1 is out of range"),
    ({"local": 1.5}, "local: 1.5 is not a size"),
    ({"local": True}, "local: True is not a size"),
    ({"local": [1]}, r"local: \[1\] is not a size"),
    ({"local": "9" * 30}, "local: '9+' is out of range"),
    ({"block": "5K"}, "block.*'5K'|block.*5120.*is not a power of two"),
    ({"block": "8M"}, "too large"),
    ({"store": "/scratch"}, "'/scratch' lacks the kind"),
    ({"store": 3}, "store: 3 is no text"),
    ({"store": "file:/nonexistent-folder"}, "/nonexistent-folder"),
    ({"engine": "turbo"}, "'turbo' is unknown; allowed is auto, sigbus-move"),
    ({"replacement": "lru"}, "'lru' is unknown"),
    ({"background": "maybe"}, "'maybe' is unknown"),
    ({"read_ahead": -1}, "read_ahead: -1 is out of range; allowed is a number from 0 to 1024"),
    ({"read_ahead": 5000}, "read_ahead: 5000 is out of range"),
])
def test_pools(arguments, named, store):
    with pytest.raises(hanare.Error, match=named) as caught:
        hanare.Pool(**{"local": "8MiB", "store": store, **arguments})
    assert isinstance(caught.value, (ValueError, OSError))
    assert "\n" not in str(caught.value)


def test_a_pool_too_small(store):
    with pytest.raises(MemoryError, match="at least"):
        hanare.Pool(local="256K", store=store).empty(10)


def test_a_store_too_small(store):
    with hanare.Pool(local="8MiB", store=store + "?size=16M") as pool:
        with pytest.raises(MemoryError):
            pool.empty(100 << 20)
        assert pool.ones(1000).all()


@pytest.mark.parametrize(("shape", "named"), [
    (-1, "shape: -1 is negative"), ((3, -1), r"shape: \(3, -1\) is negative"),
    (2.5, "shape: 2.5 is no shape"), ("3", "shape: '3' is no shape"),
    ((1 << 40, 1 << 40), "has more bytes than an address has bits"),
])
def test_shapes(pool, shape, named):
    with pytest.raises(ValueError, match=named):
        pool.empty(shape)


def test_shapes_for_which_there_is_no_room(pool):
    with pytest.raises(ValueError, match=r"shape: \(35184372088832,\) of float64: .*64 TiB"):
        pool.empty(1 << 45)
    with pytest.raises(MemoryError):
        pool.empty(1 << 42)


def test_types_and_orders(pool):
    with pytest.raises(ValueError, match="dtype: .* holds Python objects"):
        pool.empty(3, dtype=object)
    with pytest.raises(ValueError, match="dtype: 'no such' is no type"):
        pool.empty(3, dtype="no such")
    with pytest.raises(ValueError, match="order: 'A' is unknown; allowed is 'C' or 'F'"):
        pool.empty(3, order="A")
    with pytest.raises(ValueError, match="holds Python objects"):
        pool.asarray(np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="dtype: 'S' has no size of its own"):
        pool.empty(3, "S")
    with pytest.raises(ValueError, match="dtype: "):
        pool.empty(3, [("a", "f4"), ("a", "f4")])


def test_arrays_of_others(pool):
    plain = np.ones(3)
    for call in (pool.stats, pool.flush, lambda a: pool.advise(a, "random")):
        with pytest.raises(hanare.Error):
            call(plain)
    with pytest.raises(ValueError, match=r"array: \[1, 2\] is no NumPy array"):
        pool.advise([1, 2], "random")
    far = pool.ones((4, 4))
    with pytest.raises(ValueError, match="advice: 'sometimes' is unknown; allowed is 'normal'"):
        pool.advise(far, "sometimes")
    with pytest.raises(ValueError, match=r"array: \[1, 2\] is no NumPy array"):
        pool.advise([1, 2], "discard")
    with pytest.raises(ValueError, match=r"advice: \[\] is unknown"):
        pool.advise(far, [])
    with pytest.raises(ValueError, match="is empty"):
        pool.stats(far[:0])
    pool.flush(far[:0])
    pool.advise(far[:0], "willneed")
    with pytest.raises(ValueError, match="has gaps"):
        pool.advise(far[::2, ::2], "discard")
    assert "x" not in pool and plain not in pool


def test_pools_are_not_pickled(pool):
    with pytest.raises(TypeError, match="a pool cannot be pickled"):
        pickle.dumps(pool)


def test_what_is_exported():
    for name in hanare.__all__:
        assert getattr(hanare, name).__doc__, name
    assert issubclass(hanare.ArgumentError, ValueError)
    assert issubclass(hanare.NoRoomError, MemoryError)
    assert issubclass(hanare.StoreError, OSError)
    assert hanare.__version__.count(".") == 2
