# SPDX-License-Identifier: Apache-2.0
"""Runs on grids in memory and in files, against NumPy that computes the same in memory: to the last
bit, since operations are the same in the same order."""
import random

import numpy as np
import pytest
from stencil_support import Padded, put, star, updated

import hanare

PLACES = ["memory", "file"]


@pytest.fixture
def make(tmp_path):
    """Grids in memory, or in a file, with a budget that is a part of what they hold."""
    def made(shape, fields="u", place="memory", **options):
        if place == "file":
            options.setdefault("directory", tmp_path)
        return hanare.Grid(shape, fields, place=place, **options)
    return made


def start(grid, seed):
    """Random cells in all fields; what they are."""
    rng = np.random.default_rng(seed)
    arrays = {}
    for name in grid.fields:
        arrays[name] = rng.uniform(0.1, 1, grid.shape).astype(grid.dtype)
        grid[name] = arrays[name]
    return arrays


def star_text(radius, dimensions):
    offsets = star(radius, dimensions)
    weights = [round(0.9 / len(offsets) + 0.001 * number, 4) for number in range(len(offsets))]
    terms = " + ".join(f"{weight}*u[{','.join(map(str, offset))}]"
                       for weight, offset in zip(weights, offsets))
    return f"u = {terms}", list(zip(weights, offsets))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(16))
def test_random_stars(make, place, seed):
    print("seed", seed)
    rng = random.Random(seed)
    dimensions = rng.choice([2, 3, 3])
    radius = rng.randint(1, 4)
    boundary = [rng.choice(["fixed", "reflect", "periodic"]) for _ in range(dimensions)]
    shape = [rng.randint(2 * radius + 1, 40) for _ in range(dimensions)]
    shape[0] += 24
    dtype = rng.choice(["float64", "float32"])
    text, terms = star_text(radius, dimensions)
    steps = rng.randint(1, 9)
    with make(shape, place=place, boundary=boundary, dtype=dtype, radius=radius) as grid:
        u = start(grid, seed)["u"]
        grid.run(steps, hanare.stencil(text), threads=rng.randint(1, 3))
        got = grid["u"][...]
        assert grid.step == steps
    for _ in range(steps):
        near = Padded(u, boundary, radius)
        new = None
        for weight, offset in terms:
            new = weight * near[offset] if new is None else new + weight * near[offset]
        u = put(u, new, updated(shape, boundary, radius))
    assert got.dtype == dtype and np.array_equal(got, u), (shape, boundary, radius, steps)


@pytest.mark.parametrize("place", PLACES)
def test_gray_scott(make, place):
    du, dv, feed, kill = 0.16, 0.08, 0.06, 0.062

    def lap(f):
        return f[-1, 0] + f[1, 0] + f[0, -1] + f[0, 1] - 4 * f[0, 0]

    @hanare.stencil
    def gray_scott(u, v):
        uvv = u * v * v
        u = u + du * lap(u) - uvv + feed * (1 - u)
        v = v + dv * lap(v) + uvv - (feed + kill) * v
    boundary = ("periodic", "periodic")
    with make((60, 45), ["u", "v"], place, boundary=boundary) as grid:
        arrays = start(grid, 1)
        u, v = arrays["u"], arrays["v"]
        grid.run(20, gray_scott)
        got = grid["u"][...], grid["v"][...]
    for _ in range(20):
        near_u, near_v = Padded(u, boundary, 1), Padded(v, boundary, 1)
        uvv = u * v * v
        u, v = (u + du * lap(near_u) - uvv + feed * (1 - u),
                v + dv * lap(near_v) + uvv - (feed + kill) * v)
    assert np.array_equal(got[0], u) and np.array_equal(got[1], v)


@pytest.mark.parametrize("place", PLACES)
def test_waves_of_second_order_with_coefficients_sources_and_snapshots(make, place):
    steps, radius = 12, 4
    weights = [-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560]
    wave = hanare.stencil("""
        lap = 3*w[0]*u + sum(w[d]*(u[0,0,d] + u[0,0,-d] + u[0,d,0] + u[0,-d,0] + u[d,0,0]
                                   + u[-d,0,0]) for d in range(1, 5))
        u = 2*u[0,0,0] - old(u) + c*lap
        """, w=weights)
    shape = (40, 23, 37)
    series = np.sin(np.arange(7.0))
    with make(shape, {"u": "two_levels", "c": "constant"}, place, radius=wave) as grid:
        arrays = start(grid, 2)
        u, c = arrays["u"], 0.05 * arrays["c"]
        grid["c"] = c
        before = 0.9 * u
        grid["u"].old.write(before)
        first = grid.run(3, wave, sources=hanare.Source((20, 11, 18), series))
        second = grid.run(steps - 3, wave, snapshots=hanare.Snapshots(4, planes=slice(10, 12)),
                          sources=[hanare.Source((20, 11, 18), series, "u", first_step=0)])
        got, got_before = grid["u"][...], grid["u"].old[...]
    kept = {}
    inside = updated(shape, ["fixed"] * 3, radius)
    for step in range(steps):
        near = Padded(u, ["fixed"] * 3, radius)
        lap = 3 * weights[0] * u
        total = None
        for d in range(1, 5):
            term = weights[d] * (near[0, 0, d] + near[0, 0, -d] + near[0, d, 0] + near[0, -d, 0]
                                 + near[d, 0, 0] + near[-d, 0, 0])
            total = term if total is None else total + term
        new = 2 * u - before + c * (lap + total)
        before, u = u, put(u, new, inside)
        if step < len(series):
            u[20, 11, 18] += series[step]
        kept[step + 1] = u[10:12].copy()
    assert np.array_equal(got, u)
    assert np.array_equal(got_before[inside], before[inside])
    assert first.snapshots is None and first.steps == 3 and second.step == steps
    assert second.snapshot_steps == [4, 8, 12]
    assert np.array_equal(second.snapshots, np.stack([kept[step] for step in (4, 8, 12)]))


@pytest.mark.parametrize("place", PLACES)
def test_stages_see_what_those_before_have_written(make, place):
    """Maxwell's equations in two dimensions: h from e, then e from the new h."""
    shape, boundary = (50, 33), ("periodic", "reflect")
    fdtd = hanare.stencil("""
        hx = hx[0,0] - 0.5*(ez[0,1] - ez[0,0])
        hy = hy[0,0] + 0.5*(ez[1,0] - ez[0,0])
        """, "ez = ez[0,0] + 0.5*(hy[0,0] - hy[-1,0] - (hx[0,0] - hx[0,-1]))")
    with make(shape, ["ez", "hx", "hy"], place, boundary=boundary) as grid:
        arrays = start(grid, 3)
        ez, hx, hy = arrays.values()
        grid.run(11, fdtd)
        got = [grid[name][...] for name in ("ez", "hx", "hy")]
    for _ in range(11):
        near = Padded(ez, boundary, 1)
        hx = hx - 0.5 * (near[0, 1] - near[0, 0])
        hy = hy + 0.5 * (near[1, 0] - near[0, 0])
        near_x, near_y = Padded(hx, boundary, 1), Padded(hy, boundary, 1)
        ez = ez + 0.5 * (near_y[0, 0] - near_y[-1, 0] - (near_x[0, 0] - near_x[0, -1]))
    for one, other in zip(got, (ez, hx, hy)):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("place", PLACES)
def test_himeno_and_its_residual(make, place):
    """19 points, twelve coefficients, the residual of each step."""
    himeno = hanare.stencil("""
        s0 = a0*p[1,0,0] + a1*p[0,1,0] + a2*p[0,0,1] \\
            + b0*(p[1,1,0] - p[1,-1,0] - p[-1,1,0] + p[-1,-1,0]) \\
            + b1*(p[0,1,1] - p[0,-1,1] - p[0,1,-1] + p[0,-1,-1]) \\
            + b2*(p[1,0,1] - p[-1,0,1] - p[1,0,-1] + p[-1,0,-1]) \\
            + c0*p[-1,0,0] + c1*p[0,-1,0] + c2*p[0,0,-1] + wrk1
        ss = (s0*a3 - p) * bnd
        gosa = sum(ss*ss)
        largest = max(abs(ss))
        p = p[0,0,0] + 0.8*ss
        """)
    names = ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "c0", "c1", "c2", "bnd", "wrk1"]
    fields = {"p": "state", **dict.fromkeys(names, "constant")}
    shape, inside = (33, 17, 25), updated((33, 17, 25), ["fixed"] * 3, 1)
    with make(shape, fields, place, dtype="float32") as grid:
        arrays = start(grid, 4)
        for name in names:
            arrays[name] *= np.float32(0.15)
            grid[name] = arrays[name]
        result = grid.run(6, himeno)
        got = grid["p"][...]
    p = arrays["p"]
    a, b, c = ([arrays[f"{letter}{number}"] for number in range(count)]
               for letter, count in (("a", 4), ("b", 3), ("c", 3)))
    gosa, largest = [], []
    for _ in range(6):
        n = Padded(p, ["fixed"] * 3, 1)
        s0 = (a[0] * n[1, 0, 0] + a[1] * n[0, 1, 0] + a[2] * n[0, 0, 1]
              + b[0] * (n[1, 1, 0] - n[1, -1, 0] - n[-1, 1, 0] + n[-1, -1, 0])
              + b[1] * (n[0, 1, 1] - n[0, -1, 1] - n[0, 1, -1] + n[0, -1, -1])
              + b[2] * (n[1, 0, 1] - n[-1, 0, 1] - n[1, 0, -1] + n[-1, 0, -1])
              + c[0] * n[-1, 0, 0] + c[1] * n[0, -1, 0] + c[2] * n[0, 0, -1] + arrays["wrk1"])
        ss = (s0 * a[3] - p) * arrays["bnd"]
        gosa.append((ss * ss)[inside].sum(dtype="float64"))
        largest.append(np.abs(ss)[inside].max())
        p = put(p, p + np.float32(0.8) * ss, inside)
    assert np.array_equal(got, p)
    assert result.reductions["gosa"] == pytest.approx(gosa, rel=1e-12)
    assert np.array_equal(result.reductions["largest"], np.array(largest, "float64"))


def test_a_file_larger_than_its_memory(make):
    """Results and sums are those in memory, to the last bit, whatever threads and sizes are."""
    text, _ = star_text(1, 3)
    stencil = hanare.stencil(text + "\nr = sum((u[0,0,0] - 0.5)**2)")
    shape = (300, 64, 64)
    results = []
    for options in ({"place": "memory"}, {"place": "file", "memory": "4MiB"}):
        with make(shape, **options) as grid:
            start(grid, 5)
            if options["place"] == "file":
                assert grid.place == "file" and grid.domain_bytes > 2 * grid.memory_bytes
                plan = grid.plan(40, stencil)
                assert plan.passes > 1 and plan.window_bytes <= grid.memory_bytes
            result = grid.run(40, stencil, threads=1 if options["place"] == "memory" else 2)
            results.append((grid["u"][...], result.reductions["r"]))
            statistics = result.statistics
            assert statistics.steps == 40 and statistics == grid.statistics
            assert "40 steps in " in str(statistics)
    assert statistics.read_bytes > 0 and statistics.written_bytes > 0
    assert np.array_equal(results[0][0], results[1][0])
    assert np.array_equal(results[0][1], results[1][1])


@pytest.mark.parametrize("place", PLACES)
def test_fields_that_change_in_place(make, place):
    """Nothing but the cell itself is read: fields are exchanged, one grows, one is of floats."""
    with make((30, 11, 37), ["u", "v"], place, dtype="float32", boundary="reflect") as grid:
        arrays = start(grid, 7)
        grid.run(5, "u, v = v[0,0,0], 2*u[0,0,0]")
        u, v = arrays["u"], arrays["v"]
        for _ in range(5):
            u, v = v, 2 * u
        assert np.array_equal(grid["u"][...], u) and np.array_equal(grid["v"][...], v)
        grid.run(2, "u = u + step")
        assert np.array_equal(grid["u"][...], u + np.float32(5) + np.float32(6))


@pytest.mark.parametrize("place", PLACES)
def test_two_levels_in_two_dimensions(make, place):
    boundary = ("reflect", "periodic")
    with make((40, 31), {"u": "two_levels"}, place, boundary=boundary) as grid:
        u = start(grid, 8)["u"]
        before = u.copy()
        grid["u"].old.write(before)
        grid.run(9, "u = 2*u[0,0] - old(u) + 0.2*(u[0,1] + u[0,-1] + u[1,0] + u[-1,0] - 4*u[0,0])",
                 sources=hanare.Source((20, 0), [1.0, -2.0, 0.5]))
        got = grid["u"][...]
    for step in range(9):
        n = Padded(u, boundary, 1)
        before, u = u, 2 * u - before + 0.2 * (n[0, 1] + n[0, -1] + n[1, 0] + n[-1, 0] - 4 * u)
        if step < 3:
            u[20, 0] += [1.0, -2.0, 0.5][step]
    assert np.array_equal(got, u)


@pytest.mark.parametrize("fast_math", [False, True])
def test_whatever_sizes_and_threads_are(make, fast_math):
    text, _ = star_text(2, 3)
    stencil = hanare.stencil(text, fast_math=fast_math)
    results = []
    for options in ({"threads": 1}, {"threads": 2, "steps_per_pass": 3, "tile_height": 4},
                    {"threads": 3, "window_planes": 16}):
        for place in PLACES:
            with make((70, 40, 45), place=place, radius=2,
                      boundary=("fixed", "periodic", "reflect")) as grid:
                start(grid, 9)
                grid.run(11, stencil, **options)
                results.append(grid["u"][...])
    assert all(np.array_equal(result, results[0]) for result in results[1:])


@pytest.mark.parametrize("method", ["trapezoid", "trapezoid_two_level"])
def test_the_scheme_of_the_paper(make, method):
    text, _ = star_text(1, 3)
    results = []
    for options in ({}, {"place": "file", "method": method, "io": "mmap", "memory": "8MiB"}):
        with make((80, 40, 45), **options) as grid:
            start(grid, 10)
            statistics = grid.run(10, text, steps_per_pass=5, window_planes=20).statistics
            results.append(grid["u"][...])
    assert statistics.redundant_updates > 0
    assert np.array_equal(*results)


C_KERNEL = """
void kernel(const hanare_stencil_box *box)
{
    for (int64_t i = 0; i < box->rows; ++i) {
        const T *m = (const T *)box->in[1] + i * box->row_stride;
        const T *up = (const T *)box->in[0] + i * box->row_stride;
        const T *down = (const T *)box->in[2] + i * box->row_stride;
        T *o = (T *)box->out[0] + i * box->row_stride;
        for (int64_t j = 0; j < box->columns; ++j)
            o[j] = (T)0.25 * (m[j - 1] + m[j + 1] + up[j] + down[j]);
    }
}
"""
SAME = "u = 0.25 * (u[0,0,-1] + u[0,0,1] + u[-1,0,0] + u[1,0,0])"


def run_of(make, stencil, dtype="float64", steps=7):
    with make((30, 20, 40), dtype=dtype, boundary="reflect") as grid:
        start(grid, 6)
        grid.run(steps, stencil)
        return grid["u"][...]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_of_c(make, dtype):
    written = hanare.kernel(C_KERNEL, reads={"u": 1}, writes="u")
    assert written.radius == 1 and written.fields == ("u",)
    want = run_of(make, SAME, dtype)
    assert np.array_equal(run_of(make, written, dtype), want)
    bound = hanare.stencil(SAME)
    with make((30, 20, 40), dtype=dtype) as grid:
        address = grid.bound(bound).stages[0].kernel
    by_address = hanare.kernel(address, reads={"u": 1}, writes=["u"])
    assert np.array_equal(run_of(make, by_address, dtype), want)
    both = hanare.stencil(by_address, hanare.stencil(SAME))
    assert np.array_equal(run_of(make, both, dtype, 3), run_of(make, SAME, dtype, 6))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_kernels_of_numba(make, dtype):
    numba = pytest.importorskip("numba")
    element = getattr(numba, dtype)

    @numba.cfunc(hanare.kernel_signature(dtype))
    def kernel(inputs, outputs, row_stride, rows, columns, step, z, y, x, reduction, user):
        up, m, down, o = inputs[0], inputs[1], inputs[2], outputs[0]
        for i in range(rows):
            at = i * row_stride
            for j in range(at, at + columns):
                o[j] = element(0.25) * (m[j - 1] + m[j + 1] + up[j] + down[j])
    made = hanare.kernel(kernel, reads={"u": 1}, writes="u")
    assert np.array_equal(run_of(make, made, dtype), run_of(make, SAME, dtype))
    other = "float32" if dtype == "float64" else "float64"
    with pytest.raises(hanare.StencilError, match=f"is for {dtype}, the grid is of {other}"):
        run_of(make, made, other)
