# SPDX-License-Identifier: Apache-2.0
import os
import resource
import threading

import numpy as np
import pytest

import hanare

ELEMENTS = 4 << 20


@pytest.fixture
def values():
    return np.random.default_rng(7).normal(size=(ELEMENTS // 2048, 2048))


@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_files(pool, values, tmp_path, order):
    path = tmp_path / "a.npy"
    far = pool.asarray(np.asarray(values, order=order))
    pool.save(path, far)
    assert os.listdir(tmp_path) == ["a.npy"]
    plain = np.load(path)
    assert plain.flags.c_contiguous == (order == "C") and (plain == values).all()
    again = pool.load(path, progress=True)
    assert again in pool and again.flags.c_contiguous == (order == "C")
    assert (again.ravel(order="A") == plain.ravel(order="A")).all()  # as it lies in memory


def test_parts_are_saved(pool, values, tmp_path):
    far = pool.asarray(values)
    pool.save(tmp_path / "part.npy", far[3::7, ::-2])
    assert (np.load(tmp_path / "part.npy") == values[3::7, ::-2]).all()
    pool.save(tmp_path / "empty.npy", far[:0])
    assert pool.load(tmp_path / "empty.npy").shape == (0, 2048)


def test_files_of_bare_values(pool, values, tmp_path):
    path = tmp_path / "bare"
    values.tofile(path)
    assert (pool.from_file(path) == values.ravel()).all()
    assert (pool.from_file(path, shape=values.shape) == values).all()
    assert (pool.from_file(path, shape=10, offset=80) == values.ravel()[10:20]).all()
    assert pool.from_file(path, "u1", offset=8 * ELEMENTS - 3).shape == (3,)
    assert pool.from_file(path, offset=8 * ELEMENTS).shape == (0,)


def test_bad_files(pool, tmp_path):
    path = tmp_path / "bare"
    path.write_bytes(b"12345")
    with pytest.raises(ValueError, match="5 bytes are not a whole number of values of float64"):
        pool.from_file(path)
    with pytest.raises(ValueError, match="11 of 16 bytes are missing"):
        pool.from_file(path, shape=2)
    with pytest.raises(ValueError, match="offset: -1 is out of range"):
        pool.from_file(path, offset=-1)
    with pytest.raises(FileNotFoundError):
        pool.load(tmp_path / "none.npy")
    with pytest.raises(ValueError, match="magic string"):
        pool.load(path)
    whole = tmp_path / "whole.npy"
    np.save(whole, np.ones(100))
    whole.write_bytes(whole.read_bytes()[:-8])
    with pytest.raises(ValueError, match="8 of 800 bytes are missing at the end"):
        pool.load(whole)
    objects = tmp_path / "objects.npy"
    np.save(objects, np.array([{}, None], dtype=object))
    with pytest.raises(ValueError, match="holds Python objects"):
        pool.load(objects)
    assert pool.stats()["virtual_bytes"] == 0


def test_what_cannot_be_saved_leaves_what_was(pool, tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(b"before")
    with pytest.raises(ValueError):
        pool.save(path, np.array([{}], dtype=object))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, limits[1]))  # as if the disk were full
    try:
        with pytest.raises(OSError):
            pool.save(path, np.ones(1 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["a.npy"]
    with pytest.raises(FileNotFoundError):
        pool.save(tmp_path / "none" / "a.npy", np.ones(3))


def test_many_save_to_one_path(pool, tmp_path):
    path = os.fsencode(tmp_path / "a.npy")
    threads = [threading.Thread(target=pool.save, args=(path, pool.full(300_000, i)))
               for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = np.load(tmp_path / "a.npy")
    assert values.shape == (300_000,) and (values == values[0]).all()
    assert os.listdir(tmp_path) == ["a.npy"]


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_names_of_fields_in_any_script(pool, tmp_path):
    a = pool.empty(10, [("離れ", "f4")])
    a["離れ"] = 3
    pool.save(tmp_path / "a.npy", a)
    assert (pool.load(tmp_path / "a.npy") == a).all()


def test_system_calls_take_far_arrays(pool, values, tmp_path):
    if not hanare.system_calls_are_caught():
        pytest.skip("system calls could not be caught when the package was imported")
    far = pool.asarray(values)
    far.tofile(tmp_path / "bare")
    assert (np.fromfile(tmp_path / "bare").reshape(values.shape) == values).all()
    np.save(tmp_path / "a.npy", far)
    assert (np.load(tmp_path / "a.npy") == values).all()
    pool.advise(far, "dontneed")
    far[:] = 0
    pool.advise(far, "dontneed")
    with open(tmp_path / "bare", "rb", buffering=0) as file:
        view = memoryview(far).cast("B")
        at = 0
        while at < len(view):
            at += file.readinto(view[at:])
    assert (far == values).all()
