# SPDX-License-Identifier: Apache-2.0
"""From what is computed to C.

A kernel goes over the rows of its box, and over the cells of each row with unit stride, by vectors.
What that takes (measured: docs/stencil.md):

- Stores begin at multiples of a vector's size: with fixed boundaries rows begin one cell or more
  behind one, and then every access but a few would touch two cache lines.  What is before, and what
  is left at the end, are vectors of their own that overlap with others; where a cell may not be
  computed twice, since it is changed in place, they are single cells.
- Where rows next to each other have many loads in common, two are computed at a time.

Every cell is computed by the same operations, in the same order, wherever it is in a box.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ._nodes import Node, Stage

CHUNK = 512  # cells whose terms of reductions are kept before they are summed
_JAM_SAVES = 0.2  # of all loads, to make two rows at a time worth it
_DEPTH_MAX = 12  # of brackets

PRELUDE = """\
#include <stdint.h>
#include <math.h>
#ifndef HANARE_STENCIL_H
#define HANARE_STENCIL_H
typedef struct hanare_stencil_box {
    const void *const *in;
    void *const *out;
    int64_t row_stride, rows, columns, step, z, y, x;
    double *reduction;
    void *user;
} hanare_stencil_box;
typedef void (*hanare_stencil_kernel)(const hanare_stencil_box *box);
#endif
"""

# What a reduction begins with, and one step of it: of two numbers, and of eight pairs.  What is no
# number stays.
_REDUCTIONS = {
    "sum": ("0.0", "a + b", "a + b"),
    "max": ("-INFINITY", "(b > a || b != b) ? b : a", "chosen((b > a) | (b != b), b, a)"),
    "min": ("INFINITY", "(b < a || b != b) ? b : a", "chosen((b < a) | (b != b), b, a)"),
}

# Terms of a row are reduced to eight side by side, then these: always in this order.
_LANES = """\
typedef double lanes __attribute__((vector_size(64)));
typedef int64_t masks __attribute__((vector_size(64)));
typedef T eight __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T))));
static inline lanes chosen(masks which, lanes yes, lanes no)
{
    return (lanes)(((masks)yes & which) | ((masks)no & ~which));
}
"""

_FOLD = """\
static double fold_{kind}(double value, const T *terms, int64_t n)
{{
    lanes sides = {{{start}}};
    int64_t j = 0;
    for (; j + 8 <= n; j += 8) {{
        const lanes a = sides, b = __builtin_convertvector(*(const eight *)(terms + j), lanes);
        sides = {eight};
    }}
    double lane[8];
    for (int k = 0; k < 8; ++k) lane[k] = sides[k];
    for (int k = 0; j < n; ++j, ++k) {{
        const double a = lane[k], b = (double)terms[j];
        lane[k] = {one};
    }}
    for (int w = 4; w > 0; w /= 2)
        for (int k = 0; k < w; ++k) {{
            const double a = lane[k], b = lane[k + w];
            lane[k] = {one};
        }}
    const double a = value, b = lane[0];
    return {one};
}}
"""


@dataclasses.dataclass(frozen=True)
class Target:
    """What C is written for."""

    single: bool  # float, else double
    vector_bytes: int = 64
    fast_math: bool = False

    @property
    def vector_cells(self) -> int:
        return self.vector_bytes // (4 if self.single else 8)


def reads_of(stage: Stage, two_levels: Mapping[str, bool]) -> dict[str, int]:
    """Fields and radii that are asked for: the level before is only there beside a radius > 0."""
    reads = dict(stage.reads)
    for field in stage.before:
        reads[field] = max(reads.get(field, 0), 1)
    return reads


class Writer:
    """Writes one stage; reads and writes are in the order of its kernel's pointers."""

    def __init__(self, stage: Stage, function: str, dimensions: int, reads: Mapping[str, int],
                 target: Target) -> None:
        self.stage = stage
        self.function = function
        self.three = dimensions == 3
        self.reads = reads
        self.target = target
        self.suffix = "f" if target.single else ""
        self.uses: dict[int, int] = {}
        for node in stage.nodes:
            for part in node.parts:
                self.uses[id(part)] = self.uses.get(id(part), 0) + 1
        for node in stage.writes.values():
            self.uses[id(node)] = self.uses.get(id(node), 0) + 1
        self.inputs: dict[tuple[str, int], int] = {}
        at = 0
        for field, radius in reads.items():
            for offset in range(-radius, radius + 1):
                self.inputs[field, offset] = at
                at += 1
        self.in_place = any(reads.get(field) == 0 for field in stage.writes) or bool(stage.before)

    def text(self) -> str:
        if self.stage.reductions:
            return self._cells(1) + self._span(1) + self._reducing()
        rows = self._rows_at_a_time()
        loops = [self._loop(count, rows) for count in sorted({rows, 1}, reverse=True)]
        return ("".join(self._cells(count) + self._span(count) for count in sorted({rows, 1}))
                + f"void {self.function}(const hanare_stencil_box *box)\n{{\n"
                + "".join(loops) + "}\n")

    # Rows.

    def _loads(self, rows: int) -> int:
        found = set()
        for row in range(rows):
            for node in self.stage.nodes:
                if node.kind == "cell":
                    found.add(self._place(node, row))
        return len(found)

    def _rows_at_a_time(self) -> int:
        if not self.three:
            return 1
        one, two = self._loads(1), self._loads(2)
        return 2 if one > 0 and 1 - two / (2 * one) >= _JAM_SAVES else 1

    def _place(self, node: Node, row: int) -> tuple[int, int, int]:
        """Number of the pointer, rows and columns from there."""
        field, offsets = node.value  # type: ignore[misc]
        offsets = offsets or (0,) * (3 if self.three else 2)
        y = offsets[1] + row if self.three else 0
        return self.inputs[field, offsets[0]], y, offsets[-1]

    def _loop(self, rows: int, most: int) -> str:
        begin = "0" if rows == most else f"box->rows & -{most}"
        end = "box->rows" if rows == 1 else f"box->rows & -{rows}"
        return f"    span_{rows}_{self.function}(box, {begin}, {end}, 0, box->columns);\n"

    def _terms(self, named: bool) -> str:
        """Parameters, or arguments, for terms of reductions: `base` is the first one's column."""
        if not self.stage.reductions:
            return ""
        kinds = ("int64_t ", "T *") if named else ("", "")
        return f", {kinds[0]}base" + "".join(f", {kinds[1]}terms_{number}"
                                             for number in range(len(self.stage.reductions)))

    def _span(self, rows: int) -> str:
        """Head, body and tail of rows, or of a part of them; each for all rows, so that what is
        set up for a loop is not set up for each row."""
        width = self.target.vector_cells

        def cells(begin: str, end: str) -> str:
            return (f"cells_{rows}_{self.function}(box, i, rows, {begin}, {end}"
                    f"{self._terms(False)});\n")
        body = ("    if (i >= rows) return;\n"
                "    const T *const to = (const T *)box->out[0] + i * box->row_stride + begin;\n"
                "    const int64_t n = end - begin;\n"
                f"    int64_t h = (int64_t)(-(uintptr_t)to / sizeof(T)) & {width - 1};\n")
        if self.in_place:
            body += ("    if (h > n) h = n;\n"
                     f"    if (h > 0) {cells('begin', 'begin + h')}"
                     f"    {cells('begin + h', 'end')}")
        else:
            body += (f"    if (n < {2 * width}) {{\n        {cells('begin', 'end')}"
                     "        return;\n    }\n"
                     f"    if (h > 0) {cells('begin', f'begin + {width}')}"
                     f"    const int64_t e = begin + h + ((n - h) & -(int64_t){width});\n"
                     f"    {cells('begin + h', 'e')}"
                     f"    if (e < end) {cells(f'end - {width}', 'end')}")
        return (f"static inline __attribute__((always_inline)) void span_{rows}_{self.function}("
                "const hanare_stencil_box *box, int64_t i, int64_t rows, int64_t begin, int64_t "
                "end"
                f"{self._terms(True)})\n{{\n{body}}}\n")

    def _cells(self, rows: int) -> str:
        """Cells `from` to `to` of rows `i` to `rows`, so many rows at a time."""
        stage = self.stage
        lines = ["const int64_t s = box->row_stride;", "(void)s;"]
        used = {self._place(node, 0)[0] for node in stage.nodes if node.kind == "cell"}
        lines += [f"const T *p{number} = (const T *)box->in[{number}] + i * s;"
                  for number in sorted(used)]
        lines += [f"T *q{number} = (T *)box->out[{number}] + i * s;"
                  for number in range(len(stage.writes))]
        for node in stage.nodes:
            if node.kind == "place" and node.value in ("step", "z"):
                lines.append(f"const T {node.value} = (T)box->{node.value};")
        lines += [f"for (; i < rows; i += {rows}) {{", "#pragma omp simd",
                  "    for (int64_t j = from; j < to; ++j) {"]
        lines += ["        " + line for line in _Cells(self, rows).lines()] + ["    }"]
        lines += [f"    p{number} += {rows} * s;" for number in sorted(used)]
        lines += [f"    q{number} += {rows} * s;" for number in range(len(stage.writes))] + ["}"]
        return (f"static inline __attribute__((always_inline)) void cells_{rows}_{self.function}("
                f"const hanare_stencil_box *box, int64_t i, int64_t rows, int64_t from, int64_t to"
                f"{self._terms(True)})\n{{\n"
                + "".join(line + "\n" if line.startswith("#") else f"    {line}\n"
                          for line in lines) + "}\n")

    def _reducing(self) -> str:
        numbers = range(len(self.stage.reductions))
        lines = [f"    T terms_{number}[{CHUNK}];" for number in numbers]
        lines += ["    for (int64_t i = 0; i < box->rows; ++i) {"]
        for number, reduction in zip(numbers, self.stage.reductions):
            lines.append(f"        double a{number} = {_REDUCTIONS[reduction.kind][0]};")
        lines += [f"        for (int64_t base = 0; base < box->columns; base += {CHUNK}) {{",
                  f"            int64_t n = box->columns - base < {CHUNK} ? box->columns - base : "
                  f"{CHUNK};",
                  f"            span_1_{self.function}(box, i, i + 1, base, base + n"
                  f"{self._terms(False)});"]
        lines += [f"            a{number} = fold_{reduction.kind}(a{number}, terms_{number}, n);"
                  for number, reduction in zip(numbers, self.stage.reductions)]
        lines += ["        }"]
        for number, reduction in zip(numbers, self.stage.reductions):
            lines.append(f"        {{ const double a = box->reduction[{number}], b = a{number};"
                         f" box->reduction[{number}] = {_REDUCTIONS[reduction.kind][1]}; }}")
        return (f"void {self.function}(const hanare_stencil_box *box)\n{{\n"
                + "\n".join(lines) + "\n    }\n}\n")


class _Cells:
    """The statements for one cell, of one row or of several next to each other."""

    def __init__(self, writer: Writer, rows: int) -> None:
        self.writer = writer
        self.rows = rows
        self.out: list[str] = []
        self.loads: dict[tuple[int, int, int], str] = {}
        self.count = 0

    def lines(self) -> list[str]:
        stage = self.writer.stage
        results = [self._row(row) for row in range(self.rows)]
        for row, texts in enumerate(results):
            for number, node in enumerate(stage.writes.values()):
                self.out.append(f"q{number}[j{_rows_down(row)}] = {texts[id(node)]};")
            for number, reduction in enumerate(stage.reductions):
                self.out.append(f"terms_{number}[j - base] = {texts[id(reduction.term)]};")
        return self.out

    def _temporary(self, text: str, kind: str = "T") -> str:
        name = f"t{self.count}"
        self.count += 1
        self.out.append(f"const {kind} {name} = {text};")
        return name

    def _row(self, row: int) -> dict[int, str]:
        texts: dict[int, str] = {}
        depths: dict[int, int] = {}
        roots = {id(node) for node in self.writer.stage.writes.values()}
        roots |= {id(reduction.term) for reduction in self.writer.stage.reductions}
        for node in self.writer.stage.nodes:
            text, depth = self._text(node, row, texts), 0
            if node.parts:
                depth = 1 + max(depths[id(part)] for part in node.parts)
                if (self.writer.uses.get(id(node), 0) > 1 or depth > _DEPTH_MAX
                        or id(node) in roots or node.kind in ("where", "call")):
                    text = self._temporary(text, "int" if node.is_condition else "T")
                    depth = 0
            texts[id(node)], depths[id(node)] = text, depth
        return texts

    def _text(self, node: Node, row: int, texts: Mapping[int, str]) -> str:
        parts = [texts[id(part)] for part in node.parts]
        if node.kind == "number":
            return _number(node.value)  # type: ignore[arg-type]
        if node.kind == "cell":
            return self._load(self.writer._place(node, row))
        if node.kind == "before":
            at = list(self.writer.stage.writes).index(node.value)  # type: ignore[arg-type]
            return self._load_before(at, row)
        if node.kind == "place":
            return {"x": "(T)(box->x + j)", "y": f"(T)(box->y + i + {row})"}.get(
                node.value, str(node.value))  # type: ignore[arg-type]
        if node.kind == "negate":
            return f"(-{parts[0]})"
        if node.kind == "binary":
            return self._binary(node, parts, texts)
        if node.kind == "compare":
            return f"({parts[0]} {node.value} {parts[1]})"
        if node.kind == "logic":
            if node.value == "not":
                return f"(!{parts[0]})"
            return f"({parts[0]} {'&' if node.value == 'and' else '|'} {parts[1]})"
        if node.kind == "where":
            # Both are computed, whatever the condition: no branches within vectors.
            yes, no = (part if part.isidentifier() or part.startswith("((T)") else
                       self._temporary(part) for part in parts[1:])
            return f"({parts[0]} ? {yes} : {no})"
        return f"__builtin_{node.value}{self.writer.suffix}({', '.join(parts)})"

    def _binary(self, node: Node, parts: list[str], texts: Mapping[int, str]) -> str:
        left, right = parts
        if self.writer.target.fast_math:
            for product, other, at in ((node.parts[1], left, 1), (node.parts[0], right, 0)):
                if (node.value in ("+", "-") and product.kind == "binary" and product.value == "*"
                        and self.writer.uses.get(id(product), 0) == 1
                        and texts[id(product)].startswith("(")):
                    a, b = (texts[id(part)] for part in product.parts)
                    if node.value == "-" and at == 1:
                        a = f"(-{a})"
                    elif node.value == "-":
                        other = f"(-{other})"
                    return f"__builtin_fma{self.writer.suffix}({a}, {b}, {other})"
            divisor = node.parts[1]
            if node.value == "/" and divisor.kind == "number" and divisor.value != 0:
                return f"({left} * ((T)1 / {right}))"
        return f"({left} {node.value} {right})"

    def _load(self, place: tuple[int, int, int]) -> str:
        if place not in self.loads:
            pointer, y, x = place
            column = f"j + ({x})" if x else "j"
            self.loads[place] = self._temporary(f"p{pointer}[{column}{_rows_down(y)}]")
        return self.loads[place]

    def _load_before(self, at: int, row: int) -> str:
        place = (-1 - at, row, 0)
        if place not in self.loads:
            self.loads[place] = self._temporary(f"q{at}[j{_rows_down(row)}]")
        return self.loads[place]


def _rows_down(rows: int) -> str:
    return f" + ({rows}) * s" if rows else ""


def _number(value: float) -> str:
    if value != value:
        return "((T)NAN)"
    if value in (float("inf"), float("-inf")):
        return "((T)INFINITY)" if value > 0 else "((T)-INFINITY)"
    return f"((T){value.hex()})"


def program(stages: list[Writer], target: Target) -> str:
    """A whole source file."""
    kinds = sorted({reduction.kind for writer in stages for reduction in writer.stage.reductions})
    folds = _LANES if kinds else ""
    for kind in kinds:
        start, one, eight = _REDUCTIONS[kind]
        folds += _FOLD.format(kind=kind, start=", ".join([start] * 8), one=one, eight=eight)
    return (PRELUDE + f"typedef {'float' if target.single else 'double'} T;\n" + folds
            + "".join(writer.text() for writer in stages))
