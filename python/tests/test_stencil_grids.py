# SPDX-License-Identifier: Apache-2.0
"""Grids: cells in and out, files, snapshots, progress, interrupts, and what is refused."""
import os
import pickle
import signal
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

import hanare

HEAT = hanare.stencil("u = u[0,0,0] + 0.1 * (u[-1,0,0] + u[1,0,0] - 2*u[0,0,0])")


@pytest.fixture
def grid():
    with hanare.Grid((12, 7, 9), memory="64MiB") as opened:
        yield opened


def test_cells_in_and_out(grid, tmp_path):
    field = grid["u"]
    assert field.shape == (12, 7, 9) and field.dtype == "float64" and field.kind == "state"
    assert (np.asarray(field) == 0).all() and len(field) == 12
    plain = np.random.default_rng(1).random(field.shape)
    field[...] = plain
    for key in (..., 3, -1, slice(2, 5), (1, 2, 3), (slice(None), 4), (..., 0),
                (2, ..., slice(1, 4)), (slice(-3, None), slice(0, 0), 1),
                (slice(1, 9), -2, slice(None, -1)), np.int64(4)):
        assert np.array_equal(field[key], plain[key])
        value = np.random.default_rng(2).random(plain[key].shape)
        plain[key] = value
        field[key] = value
        assert np.array_equal(np.asarray(field), plain)
    field[2:4, 1] = 7
    field[:, :, 2] = np.arange(7, dtype="int32")
    plain[2:4, 1], plain[:, :, 2] = 7, np.arange(7)
    assert np.array_equal(field.read(), plain)
    assert all(np.array_equal(one, other) for one, other in zip(field, plain))
    out = np.empty((9, 7, 12)).T
    assert field.read(out=out) is out and np.array_equal(out, plain)
    mapped = np.memmap(tmp_path / "cells", "float64", "w+", shape=(3, 7, 9))
    assert field.read(slice(4, 7), out=mapped) is mapped and np.array_equal(mapped, plain[4:7])
    grid["u"] = 2
    field[4:7] = mapped
    plain[:] = 2
    assert field[3, 0, 0] == 2 and np.array_equal(field[4:7], mapped)
    grid["u"] = lambda z: np.full((7, 9), z)
    assert np.array_equal(field[...], np.broadcast_to(np.arange(12.0)[:, None, None], (12, 7, 9)))
    grid["u"].fill(lambda z: -z)
    assert field[5, 6, 8] == -5
    with pytest.raises(ZeroDivisionError):
        field.fill(lambda z: 1 // (z - 3))


@pytest.mark.parametrize(("key", "named"), [
    ((slice(0, 9, 2),), "has a step"), ("u", "is not possible"), (1.5, "is not possible"),
    ((0, 0, 0, 0), "4 parts for 3 axes"), (None, "is not possible"), (True, "is not possible"),
    (slice("a", None), "is not possible"), (slice(None, None, -1), "has a step"),
])
def test_indices_that_are_not_possible(grid, key, named):
    with pytest.raises(ValueError, match=named):
        grid["u"][key]
    with pytest.raises(ValueError, match=named):
        grid["u"][key] = 1


def test_values_that_do_not_fit(grid):
    for key in (12, -13, (0, 7)):
        with pytest.raises(IndexError):
            grid["u"][key]
    with pytest.raises(ValueError, match="values: .* do not fit"):
        grid["u"][...] = np.zeros((3, 3))
    with pytest.raises(ValueError, match="values: dtype.'complex128'. are no real numbers"):
        grid["u"][0] = 1j
    with pytest.raises(ValueError, match="out: .* does not fit"):
        grid["u"].read(out=np.empty(3))
    with pytest.raises(ValueError, match="field: 'v' is not in this grid; allowed is 'u'"):
        grid["v"]
    with pytest.raises(ValueError, match="has one level"):
        grid["u"].old
    assert "u" in grid and "v" not in grid


@pytest.mark.parametrize(("arguments", "named"), [
    ({"shape": 5}, "shape: 5 has not 2 or 3 axes"),
    ({"shape": (5,)}, "has not 2 or 3 axes"),
    ({"shape": (5, 5, 0)}, r"shape\[2\]: 0 is out of range"),
    ({"shape": (5, 5, 2.5)}, r"shape\[2\]: 2.5 is no whole number"),
    ({"shape": (2, 9, 9)}, "shape: 2 cells along z"),
    ({"shape": (8, 9, 9), "radius": 4}, "shape: 8 cells along z; with radius 4"),
    ({"radius": 5}, "radius: 5 is out of range; allowed is a whole number from 1 to 4"),
    ({"dtype": "int32"}, "dtype: 'int32' is not for grids; allowed is 'float64' or 'float32'"),
    ({"dtype": "no such"}, "dtype: 'no such' is no type"),
    ({"fields": []}, "fields: .* are 0"),
    ({"fields": ["u", "u"]}, "has a name twice"),
    ({"fields": ["2u"]}, "'2u' is no name of a field"),
    ({"fields": ["u" * 32]}, "is no name of a field"),
    ({"fields": {"u": "old"}}, "'old' is unknown; allowed is 'state', 'two_levels', 'constant'"),
    ({"boundary": "open"}, r"boundary\[0\]: 'open' is unknown"),
    ({"boundary": ("fixed", "fixed")}, "boundary: .* is not for 3 axes"),
    ({"memory": "lots"}, "memory: 'lots' is not a size"),
    ({"place": "disk"}, "place: 'disk' is unknown"),
    ({"durability": "none"}, "durability: 'none' is unknown"),
    ({"method": "magic"}, "method: 'magic' is unknown"),
    ({"io": "dma"}, "io: 'dma' is unknown"),
    ({"path": 3}, "path: 3 is no path"),
])
def test_grids_that_cannot_be(arguments, named):
    with pytest.raises(ValueError, match=named) as caught:
        hanare.Grid(**{"shape": (12, 9, 9), "memory": "64MiB", **arguments})
    assert isinstance(caught.value, hanare.ArgumentError) and "\n" not in str(caught.value)


def test_room_and_folders(tmp_path):
    with pytest.raises(MemoryError, match="64 KiB; the smallest window .* takes"):
        hanare.Grid((64, 64, 64), memory="64KiB", place="file", directory=tmp_path)
    with pytest.raises(MemoryError):
        hanare.Grid((64, 64, 64), memory="64KiB", place="memory")
    with pytest.raises(OSError, match="/proc"):  # nobody may write there
        hanare.Grid((64, 64, 64), memory="64MiB", place="file", directory="/proc")
    with pytest.raises(OSError, match="no-such-folder"):
        hanare.Grid((64, 64, 64), memory="64MiB", place="file",
                    directory=tmp_path / "no-such-folder")
    with pytest.raises(OSError, match="no-such-folder"):
        hanare.Grid((64, 64, 64), memory="64MiB", path=tmp_path / "no-such-folder" / "u.grid")
    if os.geteuid() != 0:
        (tmp_path / "read-only").mkdir(mode=0o500)
        with pytest.raises(OSError, match="read-only"):
            hanare.Grid((64, 64, 64), memory="64MiB", path=tmp_path / "read-only" / "u.grid")
    assert not list(tmp_path.glob("*.grid"))


@pytest.mark.parametrize("durability", ["in_place", "ping_pong"])
def test_files_that_stay(tmp_path, durability):
    path = tmp_path / "u.grid"
    cells = np.random.default_rng(1).random((30, 16, 20)).astype("float32")
    with hanare.Grid(cells.shape, ["u", "v"], dtype="float32", boundary="reflect", memory="16MiB",
                     path=path, durability=durability) as grid:
        grid["u"] = cells
        grid.run(3, HEAT)
        with pytest.raises(hanare.Error) as caught:
            hanare.Grid(cells.shape, path=path, memory="16MiB")
        assert caught.value.status == "BUSY"
        left = grid["u"][...]
        assert grid.file_bytes > 0 and grid.durability == durability
    with hanare.Grid.open(path, read_only=True) as grid:
        assert (grid.shape, grid.dtype, grid.step) == (cells.shape, np.dtype("float32"), 3)
        assert grid.fields == {"u": "state", "v": "state"} and grid.boundary == ("reflect",) * 3
        assert np.array_equal(grid["u"][...], left)
        for call in (lambda: grid.run(1, HEAT), lambda: grid["u"].write(1)):
            with pytest.raises(hanare.Error) as caught:
                call()
            assert caught.value.status == "PERMISSION"
    with hanare.Grid.open(path, memory="16MiB") as grid:
        grid.run(2, HEAT)
        assert grid.step == 5
    with pytest.raises(hanare.Error) as caught:
        hanare.Grid.open(tmp_path / "nothing")
    assert caught.value.status == "NOT_FOUND"
    with open(path, "r+b") as file:
        file.truncate(100)
    with pytest.raises(OSError):
        hanare.Grid.open(path)


def test_snapshots(tmp_path):
    seen = []
    with hanare.Grid((12, 7, 9), memory="64MiB") as grid:
        grid["u"] = np.random.default_rng(1).random(grid.shape)
        planes = hanare.Snapshots(2, function=lambda step, plane, cells: seen.append(
            (step, plane, cells.copy())), planes=slice(3, 5))
        grid.run(4, HEAT, snapshots=planes)
        last = grid["u"][3:5]
        assert sorted({(step, plane) for step, plane, _ in seen}) == [
            (2, 3), (2, 4), (4, 3), (4, 4)]
        found = {(step, plane): cells for step, plane, cells in seen}
        assert np.array_equal(np.stack([found[4, 3], found[4, 4]]), last)
        result = grid.run(4, HEAT, snapshots=hanare.Snapshots(
            3, "u", path=tmp_path / "shots.npy"))
        assert result.snapshots is None
        shots = np.load(tmp_path / "shots.npy")
        assert shots.shape == (1, 12, 7, 9)  # step 6
        whole = grid.run(4, HEAT, snapshots=hanare.Snapshots(4))
        assert whole.snapshot_steps == [12] and np.array_equal(whole.snapshots[0], grid["u"][...])
        with pytest.raises(hanare.Error) as caught:
            grid.run(4, HEAT, snapshots=hanare.Snapshots(2, path=tmp_path / "shots.npy"))
        assert caught.value.status == "BUSY" and grid.step == 12
        for bad, named in ((3, "snapshots: 3 is none"), (hanare.Snapshots(0), "every: 0"),
                           (hanare.Snapshots(1, "w"), "'w' is not in this grid"),
                           (hanare.Snapshots(1, planes=12), "planes: 12 is out of range"),
                           (hanare.Snapshots(1, planes=slice(3, 3)), "has no planes"),
                           (hanare.Snapshots(1, path="a.npy", planes=1), "is not for files"),
                           (hanare.Snapshots(1, function=3), "cannot be called")):
            with pytest.raises(ValueError, match=named):
                grid.run(1, HEAT, snapshots=bad)
        with pytest.raises(ZeroDivisionError):
            grid.run(4, HEAT, snapshots=hanare.Snapshots(1, function=lambda *_: 1 / 0))
        grid.run(1, HEAT)  # and the grid is good


def test_snapshots_of_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    with hanare.Grid((12, 7, 9), memory="64MiB") as grid:
        grid["u"] = lambda z: z * z
        grid.run(5, HEAT, snapshots=hanare.Snapshots(5, path=tmp_path / "shots.h5"))
        with h5py.File(tmp_path / "shots.h5") as file:
            assert np.array_equal(file["snapshots"][0], grid["u"][...])
            assert list(file["steps"]) == [5]


def test_progress_and_the_end_of_runs(capfd):
    # Who starts the tests in the background has it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    calls = []
    with hanare.Grid((40, 30, 30), memory="64MiB") as grid:
        result = grid.run(50, HEAT, progress=calls.append)
        assert result.steps == 50
        for each in calls:
            assert isinstance(each, hanare.Progress) and 0 <= each.fraction <= 1
            assert each.steps == 50 and 0 <= each.steps_done <= 50
        grid.run(5, HEAT, progress=True)
        assert "steps" in "".join(capfd.readouterr())
        ended = grid.run(10**7, HEAT, progress=lambda now: True,
                         steps_per_pass=4)
        assert 0 < ended.steps < 10**7 and ended.step == 55 + ended.steps
        with pytest.raises(ZeroDivisionError):
            grid.run(10**7, HEAT, progress=lambda now: 1 / 0, steps_per_pass=4)
        before = grid.step
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            grid.run(10**7, HEAT, steps_per_pass=4)
        assert before < grid.step < 10**7
        grid.run(1, HEAT)


def test_others_go_on_during_a_run():
    """The interpreter's lock is free; the grid is taken."""
    with hanare.Grid((40, 30, 30), memory="64MiB") as grid:
        ends, seen = threading.Event(), []

        def look():
            while not ends.is_set():
                try:
                    grid.step
                except hanare.Error as error:
                    seen.append(error.status)
                    ends.set()
        other = threading.Thread(target=look)
        other.start()
        grid.run(10**7, HEAT, steps_per_pass=4, progress=lambda now: ends.is_set())
        other.join()
        assert seen == ["BUSY"]


def test_runs_that_cannot_be(grid):
    wide = hanare.stencil("u = u[0,0,2] + u[0,0,-2]")
    for call, named in (
            (lambda: grid.run(-1, HEAT), "steps: -1 is out of range"),
            (lambda: grid.run(1.5, HEAT), "steps: 1.5 is no whole number"),
            (lambda: grid.run(1, 5), "stencil: 5 is no stencil"),
            (lambda: grid.run(1, wide),
             r"radius 2, the grid was made for 1: Grid\(..., radius=2\)"),
            (lambda: grid.run(1, "u = v[0,0,0]"), "'v' is neither a field|v: "),
            (lambda: grid.run(1, "u = u[0,1]"), "2 offsets, but the grid has 3 axes"),
            (lambda: grid.run(1, HEAT, threads=-1), "threads: -1 is out of range"),
            (lambda: grid.run(1, HEAT, sources=[3]), "sources: 3 is no source"),
            (lambda: grid.run(1, HEAT, sources=hanare.Source((1, 2), [1])), "is no cell"),
            (lambda: grid.run(1, HEAT, sources=hanare.Source((5, 5, 5), ["a"])), "are no numbers"),
            (lambda: grid.run(1, HEAT, sources=hanare.Source((5, 5, 5), [1], "w")),
             "'w' is not written"),
            (lambda: grid.run(1, HEAT, sources=hanare.Source((0, 0, 0), [1])),
             "not at a cell that is updated"),
            (lambda: grid.plan(1, wide), "radius 2")):
        with pytest.raises(ValueError, match=named):
            call()
    assert grid.step == 0
    assert grid.run(0, HEAT).steps == 0


def test_the_end_of_grids():
    with hanare.Grid((9, 9), memory="64MiB") as grid:
        assert "9 x 9 of float64, fields u" in repr(grid) and "state" in repr(grid["u"])
        assert grid.place == "memory" and grid.domain_bytes == 9 * 9 * 8 and grid.file_bytes == 0
        assert grid.radius == 1 and grid.memory_bytes == 64 << 20
        with pytest.raises(TypeError, match="a grid cannot be pickled"):
            pickle.dumps(grid)
    assert grid.closed and repr(grid) == "<hanare.Grid, closed>"
    for call in (lambda: grid.step, lambda: grid["u"][0], lambda: grid.run(1, HEAT)):
        with pytest.raises(ValueError, match="the grid is closed"):
            call()
    grid.close()


# Compilers, and what they have made.

SMALL = """
import sys, hanare
with hanare.Grid((9, 9, 9), memory="16MiB") as grid:
    grid["u"] = 1.0
    grid.run(1, f"u = u[0,0,1] + {sys.argv[1]}")
    assert grid["u"][4, 4, 4] == 1.0 + float(sys.argv[1])
"""


def environment_with(cache, **more):
    return {**os.environ, "XDG_CACHE_HOME": str(cache), **more}


def test_what_is_compiled_is_kept(script, tmp_path):
    folder = tmp_path / "hanare" / "stencils"
    script(SMALL, "2", environment=environment_with(tmp_path))
    (kept,) = folder.iterdir()
    made = kept.stat()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and made.st_mode & 0o022 == 0
    script(SMALL, "2", environment=environment_with(tmp_path, CC="/bin/cc"))
    assert len(list(folder.iterdir())) == 2  # another compiler, another name
    script(SMALL, "2", environment=environment_with(tmp_path))
    assert kept.stat().st_ino == made.st_ino
    os.chmod(kept, 0o600)
    kept.write_bytes(b"cut off")
    script(SMALL, "2", environment=environment_with(tmp_path))
    made = kept.stat()
    assert made.st_size > 100
    os.chmod(kept, 0o777)  # anybody may have changed it
    script(SMALL, "2", environment=environment_with(tmp_path))
    assert kept.stat().st_mode & 0o022 == 0 and kept.stat().st_ino != made.st_ino


def test_folders_that_others_may_write_are_not_used(script, tmp_path):
    folder = tmp_path / "hanare" / "stencils"
    folder.mkdir(parents=True)
    os.chmod(folder, 0o777)
    script(SMALL, "3", environment=environment_with(tmp_path))
    assert not list(folder.iterdir())
    os.rmdir(folder)
    os.symlink(tmp_path, folder)
    script(SMALL, "3", environment=environment_with(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["hanare"]


def test_parents_that_others_may_write_are_not_used(script, tmp_path):
    parent = tmp_path / "parent"
    cache = parent / "cache"
    cache.mkdir(parents=True)
    folder = cache / "hanare" / "stencils"
    for mode, is_used in ((0o777, False), (0o775, False), (0o1777, True)):
        os.chmod(parent, mode)  # who may rename `cache` decides what is in it
        script(SMALL, "8", environment=environment_with(cache))
        assert folder.exists() == is_used


# With too few addresses for the stack of a thread.
NO_THREAD = """
import resource, signal, sys, hanare
with hanare.Grid((9, 9, 9), memory="16MiB") as grid:
    if sys.argv[1] == "compile":
        sys.exit(bool(grid.run(1, "u = u[0,0,1]") is None))
    grid.plan(1, "u = u[0,0,1]")  # what is needed besides is there
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + (6 << 20), resource.RLIM_INFINITY))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:
        grid.run(1, "u = u[0,0,1]")
    except (RuntimeError, OSError, MemoryError) as error:
        print("refused", error)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before
"""


def test_signals_after_a_thread_that_could_not_start(script):
    script(NO_THREAD, "compile")
    assert "refused" in script(NO_THREAD, "run")


def test_many_processes_compile_at_once(tmp_path):
    running = [subprocess.Popen([sys.executable, "-c", SMALL, str(number % 2 + 5)],
                                env=environment_with(tmp_path), stderr=subprocess.PIPE)
               for number in range(6)]
    for process in running:
        assert process.wait(timeout=120) == 0, process.stderr.read()
        process.stderr.close()
    assert len(list((tmp_path / "hanare" / "stencils").iterdir())) == 2


def test_no_compiler(script, tmp_path):
    said = script(SMALL, "4", environment=environment_with(tmp_path, PATH="/nowhere"), fails=True)
    assert "hanare._errors.Error: there is no C compiler" in said
    said = script(SMALL, "4", environment=environment_with(tmp_path, CC="no-such-cc"), fails=True)
    assert "CC: the compiler 'no-such-cc' is not there" in said


@pytest.mark.parametrize(("arguments", "named"), [
    ({"code": "this is no C"}, "refuses the kernel"),
    ({"code": "void other(void) {}"}, "has no function 'kernel'"),
    ({"code": 0}, "code: 0 is no address"), ({"code": 1.5}, "code: 1.5 is no kernel"),
    ({"reads": {"u": 5}}, r"reads\['u'\]: 5 is no radius"), ({"reads": ["u"]}, "is no mapping"),
    ({"writes": []}, "writes: .* is empty"), ({"writes": ["w"]}, "kernel's 'w' is no field"),
    ({"reductions": {"r": "mean"}}, "'mean' is unknown; allowed is 'sum', 'max', 'min'"),
])
def test_kernels_that_cannot_be(grid, arguments, named):
    with pytest.raises(ValueError, match=named):
        grid.run(1, hanare.kernel(**{"code": "void kernel(const hanare_stencil_box *b) {}",
                                     "reads": {"u": 1}, "writes": "u", **arguments}))
