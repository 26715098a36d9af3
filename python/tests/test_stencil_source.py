# SPDX-License-Identifier: Apache-2.0
"""How stencils are read: what is wrong is one exception with line and caret, before any work;
kernels are called directly, without a grid."""
import ctypes
import math
import random

import numpy as np
import pytest

import hanare
from hanare._stencil._stencil import FieldSet

K = 0.25
WEIGHTS = (0.0, 0.5, 0.25)


def fields(*names, dimensions=3, single=False, **kinds):
    return FieldSet(tuple((name, kinds.get(name, "state")) for name in names), dimensions, single)


class Settings:
    weight = 0.25


class Box(ctypes.Structure):
    _fields_ = [("input", ctypes.POINTER(ctypes.c_void_p)),
                ("output", ctypes.POINTER(ctypes.c_void_p)),
                *((name, ctypes.c_int64) for name in ("row_stride", "rows", "columns", "step", "z",
                                                      "y", "x")),
                ("reduction", ctypes.POINTER(ctypes.c_double)), ("user", ctypes.c_void_p)]


def call(stage, planes, out, corner, rows, columns, step=0):
    """Calls a kernel for a box of the middle plane; planes and out: a list of 2-D arrays for each
    field, padded.  Values of reductions."""
    row, column = corner
    stride = out[0].shape[1]
    at = (row * stride + column) * out[0].itemsize
    inputs = [plane.ctypes.data + at for each in planes for plane in each]
    outputs = [each.ctypes.data + at for each in out]
    start = {"sum": 0.0, "max": -math.inf, "min": math.inf}
    values = (ctypes.c_double * max(1, len(stage.reductions)))(
        *(start[kind] for _, kind in stage.reductions))
    box = Box((ctypes.c_void_p * len(inputs))(*inputs), (ctypes.c_void_p * len(outputs))(*outputs),
              stride, rows, columns, step, 5, row, column, values, None)
    ctypes.CFUNCTYPE(None, ctypes.POINTER(Box))(stage.kernel)(ctypes.byref(box))
    return list(values)


def compute(text, arrays, dtype="float64", rows=5, columns=37, start=8, step=3, **options):
    """The first field of a stencil with all others read, of random planes; and what NumPy says of
    `reference(cells)`, where cells(name, dz, dy, dx) are arrays."""
    made = hanare.stencil(text, **options)
    names = list(arrays)
    bound = made.bind(fields(*names, single=dtype == "float32"))
    (stage,) = bound.stages
    planes = [[arrays[name][4 + offset] for offset in range(-radius, radius + 1)]
              for name, radius in stage.reads]
    out = [np.full_like(arrays[name][0], np.nan) for name in stage.writes]
    values = call(stage, planes, out, (4, start), rows, columns, step)
    inside = (slice(4, 4 + rows), slice(start, start + columns))
    for each in out:
        outside = each.copy()
        outside[inside] = np.nan
        assert np.isnan(outside).all(), "written beyond the box"
    return [each[inside] for each in out], values


def random_planes(dtype="float64", seed=1, low=0.1, high=1.0):
    return np.random.default_rng(seed).uniform(low, high, (9, 16, 96)).astype(dtype)


def cells_of(array, rows=5, columns=37, start=8):
    return lambda dz, dy, dx: array[4 + dz, 4 + dy:4 + dy + rows,
                                    start + dx:start + dx + columns]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("columns", [1, 7, 8, 15, 16, 17, 31, 32, 33, 64, 77])
@pytest.mark.parametrize("start", [4, 8, 9])
def test_boxes_of_any_size(dtype, columns, start):
    array = random_planes(dtype)
    u = cells_of(array, columns=columns, start=start)
    (got,), _ = compute("u = u[0,0,0] + k * (u[-1,0,0] + u[1,0,0] + u[0,-1,0] + u[0,1,0] "
                        "+ u[0,0,-1] + u[0,0,1] - 6 * u[0,0,0])", {"u": array}, dtype,
                        columns=columns, start=start, k=0.1)
    k = 0.1
    want = u(0, 0, 0) + k * (u(-1, 0, 0) + u(1, 0, 0) + u(0, -1, 0) + u(0, 1, 0)
                             + u(0, 0, -1) + u(0, 0, 1) - 6 * u(0, 0, 0))
    assert want.dtype == dtype and np.array_equal(got, want)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_rows_two_at_a_time(rows):
    array = random_planes()
    u = cells_of(array, rows=rows)
    text = "u = sum(u[a,b,c] for a in range(-1,2) for b in range(-1,2) for c in range(-1,2)) / 27"
    assert "span_2_" in hanare.stencil(text).c_source()
    (got,), _ = compute(text, {"u": array}, rows=rows)
    want = None
    for a in range(-1, 2):
        for b in range(-1, 2):
            for c in range(-1, 2):
                want = u(a, b, c) if want is None else want + u(a, b, c)
    assert np.array_equal(got, want / 27)


def random_expression(random_, depth):
    """A text that stencils and NumPy understand alike."""
    if depth == 0 or random_.random() < 0.1:
        return random_.choice([
            "u[%d,%d,%d]" % tuple(random_.randint(-4, 4) for _ in range(3)),
            "v[%d,%d,%d]" % tuple(random_.randint(-2, 2) for _ in range(3)),
            "v[0,0,0]", repr(round(random_.uniform(0.2, 3), 3)), "k"])
    one = lambda: random_expression(random_, depth - 1)  # noqa: E731
    form = random_.choice(["({} + {})", "({} - {})", "({} * {})", "({} / (2 + abs({})))",
                           "(-{})", "abs({})", "sqrt(abs({}))", "({})**2",
                           "where({} < {}, {}, {})", "minimum({}, {})", "maximum({}, {})",
                           "floor({})"])
    return form.format(*(one() for _ in range(form.count("{}"))))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_random_expressions_are_those_of_numpy_to_the_last_bit(seed, dtype):
    print("seed", seed)
    random_ = random.Random(seed)
    text = random_expression(random_, 5)
    u, v = random_planes(dtype, seed), random_planes(dtype, seed + 100)
    columns = random_.randint(1, 70)
    (got,), _ = compute(f"w = {text}\nu = u[0,0,0] + w * v", {"u": u, "v": v}, dtype,
                        columns=columns, k=0.7)

    class Cells:
        def __init__(self, array):
            self.at = cells_of(array, columns=columns)

        def __getitem__(self, offsets):
            return self.at(*offsets)

    def of(function):  # NumPy makes float64 of functions of plain numbers, which stencils do not
        def called(*values):
            result = function(*values)
            return float(result) if np.ndim(result) == 0 else result.astype(dtype)
        return called
    names = {name: of(getattr(np, name))
             for name in ("sqrt", "abs", "minimum", "maximum", "floor", "where")}
    choose = names["where"]  # what is constant is chosen, and stays a number
    names["where"] = lambda test, yes, no: (choose(test, yes, no) if np.ndim(test) else
                                            yes if test else no)
    names |= {"u": Cells(u), "v": Cells(v), "k": 0.7}
    want = names["u"][0, 0, 0] + eval(text, names) * names["v"][0, 0, 0]  # noqa: S307
    assert got.dtype == dtype and np.array_equal(got, want.astype(dtype)), text


def test_mathematics_is_that_of_libm():
    u = random_planes()
    at = cells_of(u)(0, 0, 1)
    (got,), _ = compute("a = u[0,0,1]\nu = exp(a) + log(a) + math.sin(a) + np.arctan2(a, 2) + a**3 "
                        "+ a**-1 + pow(a, 0.3) + a**0.5", {"u": u})
    want = (np.exp(at) + np.log(at) + np.sin(at) + np.arctan2(at, 2) + at**3 + 1 / at + at**0.3
            + np.sqrt(at))
    assert np.allclose(got, want, rtol=1e-14, atol=0)


def test_fused_is_close_and_the_same_everywhere():
    u = random_planes()
    text = "u = 0.3*u[0,0,0] + 0.1*u[0,0,-1] - u[0,1,0]*0.2 + u[1,0,0]/3"
    (plain,), _ = compute(text, {"u": u}, columns=61)
    (fused,), _ = compute(text, {"u": u}, columns=61, fast_math=True)
    assert not np.array_equal(plain, fused) and np.allclose(plain, fused, rtol=1e-14, atol=1e-15)
    for start in range(8, 40):
        (one,), _ = compute(text, {"u": u}, columns=3, start=start, fast_math=True)
        assert np.array_equal(one, fused[:, start - 8:start - 5])


def test_places_conditions_and_loops():
    u = random_planes()
    at = cells_of(u)
    made = """
        total = 0
        for d in range(1, 3):
            total += w[d] * (u[0,0,d] + u[0,0,-d])
        if wide:
            total = total * 2
        edge = (x < 10 or x >= 40) and not y == 5
        u = total + step + 10*z + 100*y + 1000*x if edge else -total
    """
    (got,), _ = compute(made, {"u": u}, w=WEIGHTS, wide=True)
    total = (0.5 * (at(0, 0, 1) + at(0, 0, -1)) + 0.25 * (at(0, 0, 2) + at(0, 0, -2))) * 2
    y, x = np.meshgrid(np.arange(4, 9), np.arange(8, 45), indexing="ij")
    edge = ((x < 10) | (x >= 40)) & ~(y == 5)
    assert np.array_equal(got, np.where(edge, total + 3 + 10 * 5 + 100 * y + 1000 * x, -total))


@pytest.mark.parametrize("columns", [1, 9, 60])
def test_reductions(columns):
    u = random_planes()
    at = cells_of(u, columns=columns)
    (_,), values = compute("new = 0.5*u[0,0,1]\nresidual = sum((new - u)**2)\nhigh = max(new)\n"
                           "low = min(u[1,0,0])\nover = sum(u > 0.5)\nu = new", {"u": u},
                           columns=columns)
    new = 0.5 * at(0, 0, 1)
    want = [((new - at(0, 0, 0))**2).sum(), new.max(), at(1, 0, 0).min(),
            (at(0, 0, 0) > 0.5).sum()]
    assert values == pytest.approx(want, rel=1e-13)


def test_long_rows_are_reduced_by_pieces():
    u = np.random.default_rng(3).random((9, 16, 2000))
    (_,), (total,) = compute("s = sum(u)\nu = 2*u[0,0,1]", {"u": u}, columns=1500)
    assert total == pytest.approx(u[4, 4:9, 8:1508].sum(), rel=1e-13)


def laplacian(f, weight=1):
    return f


def lap(f):
    near = f[0, 0, -1] + f[0, 0, 1] + f[0, -1, 0] + f[0, 1, 0] + f[-1, 0, 0] + f[1, 0, 0]
    return near - 6 * f[0, 0, 0]


def test_functions_with_helpers_and_constants_around():
    here = np.float64(0.125)

    @hanare.stencil
    def gray_scott(u, v):
        """Reaction and diffusion."""
        reaction = u * v**2
        u = u + here * lap(u) - reaction + K * (1 - u)
        v = v[0, 0, 0] + 0.5 * here * lap(v) + reaction

    text = hanare.stencil("""
        reaction = u * v**2
        u = u + here * lap(u) - reaction + K * (1 - u)
        v = v[0, 0, 0] + 0.5 * here * lap(v) + reaction
        """, here=0.125, K=0.25, lap=lap)
    assert gray_scott.radius == 1 and gray_scott.fields == ("u", "v")
    assert gray_scott.c_source(["u", "v"]) == text.c_source(["u", "v"])

    settings = Settings()

    @hanare.stencil
    def with_attributes(u):
        return math.pi * u[0, 0, 1] + settings.weight * WEIGHTS[1]
    same = hanare.stencil(f"u = {math.pi!r} * u[0,0,1] + 0.125")
    assert with_attributes.c_source() == same.c_source()

    @hanare.stencil(k=3)
    def returned(p, c):
        return k * p[0, 0, 1] + c[0, 0, 0]  # noqa: F821
    assert returned.bind(fields("p", "c", c="constant")).stages[0].writes == ("p",)


def test_reads_and_radii_are_found():
    made = hanare.stencil("u = u[0,0,-3] + v[2,0,0] + c * w[0,0,0]", "w = u[0,1,0]")
    first, second = made.bind(fields("u", "v", "w", "c")).stages
    assert dict(first.reads) == {"u": 3, "v": 2, "c": 0, "w": 0} and first.writes == ("u",)
    assert dict(second.reads) == {"u": 1} and second.writes == ("w",)
    assert made.radius == 3


@pytest.mark.parametrize(("text", "said", "line", "column"), [
    ("u = u[0,0,", "syntax: '\\[' was never closed", 1, 6),
    ("u = u[0,0,0]\nu = = 1", "syntax: invalid syntax", 2, 5),
    ("u = u[0,0,0] + q", "'q' is neither a field \\(u, v, c\\) nor a constant", 1, 16),
    ("u = u[0,0,5]", "an offset of 5; at most 4", 1, 11),
    ("u = u[0,0,0.5]", "offset has to be a constant integer", 1, 11),
    ("u = u[0,0,x]", "offset has to be a constant integer", 1, 11),
    ("u = u[0,0,True]", "offset has to be a constant integer", 1, 11),
    ("u = u[0,0,0] + u[0,1]", "2 offsets", 1, 16),
    ("u = u[1]", "1 offset\\(s\\); cells are indexed \\[z, y, x\\]", 1, 5),
    ("u = u[0:2,0,0]", "cannot have a slice", 1, 7),
    ("c = u[0,0,0]", "'c' is a constant field", 1, 1),
    ("u[0,0,1] = 2", "writes the cell itself only", 1, 1),
    ("u = u[0,0,0]; v = u", "'u' has been assigned above", 1, 19),
    ("u = 1; u = 2", "'u' is assigned twice", 1, 8),
    ("u = spam(u)", "'spam' is not known as a function", 1, 5),
    ("u = sqrt(u, v)", "2 argument\\(s\\) where sqrt\\(a\\) is meant", 1, 5),
    ("u = u[0,0,0] @ v", "operators are", 1, 5),
    ("u = u[0,0,0] & v", "operators are", 1, 5),
    ("a = u[0,0,1]; u = a[0,0,1]", "a is a local name", 1, 19),
    ("a = u[0,0,1]\nu = v[0,0,0]", "'a' is assigned and not used", 1, 1),
    ("a = u[0,0,1]", "no field is written", 1, 1),
    ("u[0,0,0] + 1", "not assigned to anything", 1, 1),
    ("u = 'text'", "'text' is no number", 1, 5),
    ("u = 2 + sum(u[0,0,0])", "reduction over all cells is a line of its own", 1, 9),
    ("s = sum(u[0,0,1]); u = s", "known after the run only", 1, 24),
    ("u = 1/0", "of constants: division by zero", 1, 5),
    ("while 1:\n  u = 1", "cannot have a while loop", 1, 1),
    ("if u > 0:\n  u = 1", "if is for constants only", 1, 4),
    ("for i in u:\n  u = 1", "a loop goes over a range", 1, 10),
    ("for i in range(10**9):\n  u = 1", "more than 10000 turns", 1, 10),
    ("u = (lambda: 1)()", "this cannot be called", 1, 6),
    ("import os", "cannot have an import", 1, 1),
    ("u = u[0,0,0].real", "is no number", 1, 5),
    ("u = old(v)", "old\\(v\\), but 'v' is of kind 'state'", None, None),
    ("u = " + "u[0,0,0] + é", "'é' is neither a field", 1, 16),
])
def test_errors(text, said, line, column):
    with pytest.raises(hanare.StencilError, match=said) as caught:
        hanare.stencil(text).bind(fields("u", "v", "c", c="constant"))
    assert isinstance(caught.value, ValueError)
    if line is not None:
        assert (caught.value.line, caught.value.column) == (line, column)
        first, shown, carets = str(caught.value).splitlines()
        assert f"line {line}:" in first and shown.strip() == text.splitlines()[line - 1].strip()
        assert carets.index("^") == 4 + column - 1


def test_errors_in_functions_say_where_they_are():
    with pytest.raises(hanare.StencilError, match="offset of 7") as caught:
        @hanare.stencil
        def wrong(u):
            return u[0, 0, 7]
    with open(__file__, encoding="utf-8") as file:
        line = file.read().splitlines()[caught.value.line - 1]
    assert line[caught.value.column - 1:].startswith("7]")
    with pytest.raises(hanare.StencilError, match="'nothing' is neither"):
        hanare.stencil(lambda_free)
    with pytest.raises(hanare.StencilError, match="the parameter 'w' is no field"):
        hanare.stencil(of_w).bind(fields("u"))
    with pytest.raises(hanare.StencilError, match="without defaults"):
        hanare.stencil(laplacian)


def lambda_free(u):
    return u[0, 0, 0] + nothing  # noqa: F821


def of_w(w):
    return w[0, 0, 0]


def test_what_else_is_refused():
    with pytest.raises(ValueError, match="k: 'a' is no constant"):
        hanare.stencil("u = k*u[0,0,0]", k="a")
    with pytest.raises(ValueError, match="stages: 3 is no stage"):
        hanare.stencil(3)
    with pytest.raises(ValueError, match="the stencil is empty"):
        hanare.stencil("  ")
    with pytest.raises(ValueError, match="17 stages"):
        hanare.stencil(*["u = u[0,0,1]"] * 17)
    with pytest.raises(ValueError, match="'u' is a field of the grid and a constant"):
        hanare.stencil("v = u + v[0,0,0]", u=1).bind(fields("u", "v"))
    with pytest.raises(ValueError, match="there is no z in two dimensions"):
        hanare.stencil("u = u[0,1] + z").bind(fields("u", dimensions=2))
    with pytest.raises(ValueError, match="3 offsets, but"):
        hanare.stencil("u = u[0,0,1]").bind(fields("u", dimensions=2))
    with pytest.raises(ValueError, match="two reductions have one name"):
        hanare.stencil("u = u[0,0,1]; r = max(u[0,0,0])",
                       "u = u[0,1,0]; r = max(u[0,0,0])").bind(fields("u"))
