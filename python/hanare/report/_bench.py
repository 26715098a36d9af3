# SPDX-License-Identifier: Apache-2.0
"""Measurements of ``hanare bench``: the DLM paper's figures with our numbers, and tables of all."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import _paper
from ._figures import MARKERS, PAPER, RULE, colour_of, drawing
from ._section import Figure, Section, Table
from ._units import format_size, number

Record = dict[str, Any]
Line = tuple[str, list[tuple[float, float]]]  # name, points

_PAPERS = ("dlm", "dlm-test1", "dlm-pagesize")
_SYSTEMS = {"hanare": "Hanare", "run": "hanare run", "swap": "kernel swap", "zram": "zram",
            "mmap": "mapped file"}


def _param(record: Record, name: str, otherwise: Any = 0) -> Any:
    return record.get("params", {}).get(name, otherwise)


def _chosen(records: Iterable[Record], bench: str, metric: str, *programs: str) -> list[Record]:
    return [record for record in records if record["bench"] == bench
            and record["metric"] == metric
            and (not programs or record["case"].split("_")[0] in programs)]


def _block_name(size: int) -> str:
    return "default blocks" if size == 0 else f"{format_size(size)} blocks"


def _name(record: Record, with_block: bool) -> str:
    parts = [_SYSTEMS.get(record["system"], record["system"])]
    if _param(record, "store", ""):
        parts.append(_param(record, "store"))
    if with_block and record["system"] in ("hanare", "run"):
        parts.append(_block_name(_param(record, "block_bytes")))
    return ", ".join(parts)


def _draw(title: str, text: str, lines: Sequence[Line], paper: Sequence[Line], x: str, y: str,
          *, scale: Callable[[Any], None] | None = None, level: float | None = None) -> Figure:
    """Lines with a marker for each measurement; the paper's in its own colour, dashed."""
    with drawing(title, height=3.4) as made:
        axes = made.canvas.subplots()
        if level is not None:
            axes.axhline(level, color=RULE, linewidth=1)
        for index, (name, points) in enumerate(lines):
            axes.plot(*zip(*sorted(points), strict=True), color=colour_of(index),
                      marker=MARKERS[index % len(MARKERS)], label=name,
                      linestyle="-" if index < 8 else ":")
        for index, (name, points) in enumerate(paper):
            axes.plot(*zip(*sorted(points), strict=True), color=PAPER, linestyle="--",
                      marker=MARKERS[index % len(MARKERS)], markerfacecolor="none", label=name)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        if scale is not None:
            scale(axes)
        if level is None:
            axes.set_ylim(bottom=0 if axes.get_yscale() == "linear" else None)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=8)
    rows = [(name, *point) for name, points in (*lines, *paper) for point in sorted(points)]
    return Figure(title, text, made.svg, Table(f"{y}, by {x}", ("line", x, y), rows))


def _lines(records: Sequence[Record], key: Callable[[Record], str],
           x: Callable[[Record], float], y: Callable[[Record], float] | None = None) -> list[Line]:
    found: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        value = record["median"] if y is None else y(record)
        found.setdefault(key(record), []).append((x(record), value))
    return list(found.items())


def _percent(record: Record) -> float:
    return round(100 * _param(record, "local_ratio"), 6)


def _percent_scale(axes: Any) -> None:
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: number(value))
    axes.yaxis.set_minor_formatter(lambda value, _: "")
    axes.set_xlim(0, 100)


def _block_scale(axes: Any) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: format_size(round(value)))
    axes.tick_params(axis="x", labelrotation=45)


def _matv(records: Sequence[Record]) -> list[Figure]:
    times = _chosen(records, "dlm", "time", "matv")
    swap = {(record["case"], _percent(record)): record["median"] for record in times
            if record["system"] == "swap"}
    ours = [record for record in times if record["system"] in ("hanare", "run")
            and (record["case"], _percent(record)) in swap
            and record["median"] > 0 and _param(record, "local_ratio") > 0]
    if not ours:
        return []
    lines = _lines(ours, lambda record: _name(record, True),
                   lambda record: 1 / _param(record, "local_ratio"),
                   lambda record: swap[record["case"], _percent(record)] / record["median"])
    paper = []
    for name, rows, memory in (("paper, 1 GbE", _paper.MATV_1GBE, _paper.MATV_1GBE_MEMORY_GB),
                               ("paper, 10 GbE", _paper.MATV_10GBE, _paper.MATV_10GBE_MEMORY_GB)):
        paper.append((name, [(size / memory, swapped / far)
                             for size, (swapped, far) in rows.items() if swapped is not None]))
    return [_draw("Tables 3 and 4, Figs. 5 and 7: matv next to kernel swap",
                  "How many times as fast as the kernel's swap a matrix times a vector is, by how "
                  "many times the data exceed the memory. Above 1 far memory is faster.",
                  lines, paper, "data by memory", "times as fast as swap", level=1)]


def _test1(records: Sequence[Record]) -> list[Figure]:
    speeds = [record for record in _chosen(records, "dlm-test1", "relative_speed")
              if record["case"] == "first write"]
    if not speeds:
        return []
    lines = _lines(speeds, lambda record: _block_name(_param(record, "block_bytes")),
                   lambda record: 100 * (1 - _param(record, "local_ratio")))
    paper = [(f"paper, {format_size(size)}", [(100 * part, speed) for part, speed in points])
             for size, points in _paper.TEST1.items()]
    return [_draw("Figs. 11 and 12: the first sequential write of Test 1",
                  "Speed by that of plain memory, by the part of the array that does not fit. The "
                  "paper's points are those that its text names.", lines, paper,
                  "remote part of the accesses, %", "speed by plain memory")]


def _page_size(records: Sequence[Record]) -> list[Figure]:
    times = _chosen(records, "dlm-pagesize", "time")
    names = {"hanare": "Hanare, the paper's scheme", "hanare_sealed": "Hanare, sealed",
             "raw_tcp": "sockets by hand"}
    ours = [record for record in times if record["system"] in names]
    if not ours:
        return []
    lines = _lines(ours, lambda record: names[record["system"]],
                   lambda record: _param(record, "block_bytes"))
    paper = [("paper, 1 GbE", [(size, pair[0]) for size, pair in _paper.SWAP_US.items()]),
             ("paper, 10 GbE", [(size, pair[1]) for size, pair in _paper.SWAP_US.items()])]

    def scale(axes: Any) -> None:
        _block_scale(axes)
        axes.set_yscale("log")
    return [_draw("Fig. 13: a write with one swap", "Microseconds for a write that brings one "
                  "block and sends one away, by the size of a block.", lines, paper, "block",
                  "microseconds", scale=scale)]


def _bandwidth(records: Sequence[Record]) -> list[Figure]:
    rates = [record for record in _chosen(records, "resident", "rate")
             if record["case"] in _paper.STREAM_LOCAL]
    if not rates:
        return []
    kernels = list(_paper.STREAM_LOCAL)
    systems = list(dict.fromkeys(record["system"] for record in rates))
    bars = {system: [next((record["median"] / 1e6 for record in rates
                           if record["system"] == system and record["case"] == kernel), 0.0)
                     for kernel in kernels] for system in systems}
    bars["paper, local memory"] = [float(value) for value in _paper.STREAM_LOCAL.values()]
    return [_bars("Table 6 and Fig. 14: STREAM in local memory",
                  "Bandwidth with everything in local memory; the paper's at 2.4 GB.", kernels,
                  bars, "MB/s")]


def _bars(title: str, text: str, groups: Sequence[str], bars: dict[str, list[float]], y: str,
          level: float | None = None) -> Figure:
    with drawing(title, height=3.2) as made:
        axes = made.canvas.subplots()
        width = 0.8 / len(bars)
        for index, (name, values) in enumerate(bars.items()):
            places = [group + (index + 0.5) * width - 0.4 for group in range(len(groups))]
            colour = PAPER if name.startswith("paper") else colour_of(index)
            axes.bar(places, values, width * 0.92, color=colour, label=name)
        if level is not None:
            axes.axhline(level, color=RULE, linewidth=1)
        axes.set_xticks(range(len(groups)), groups)
        axes.grid(False, axis="x")
        axes.set_ylabel(y)
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=8)
    rows = [(group, *(values[place] for values in bars.values()))
            for place, group in enumerate(groups)]
    return Figure(title, text, made.svg, Table(y, ("", *bars), rows))


def _stream(records: Sequence[Record]) -> list[Figure]:
    times = [record for record in _chosen(records, "dlm", "time_of_plain", "stream", "stream2")
             if record["median"] > 0]
    figures = []
    lowest = min((_percent(record) for record in times if record["system"] == "hanare"),
                 default=None)
    sized = [record for record in times if record["system"] == "hanare"
             and _percent(record) == lowest and _param(record, "block_bytes") > 0]
    if len({_param(record, "block_bytes") for record in sized}) > 1:
        paper = [("paper, Triad, 8 % (Table 7)",
                  [(size, _paper.STREAM_LOCAL["triad"] / values["triad"])
                   for size, values in _paper.STREAM_REMOTE.items()])]
        figures.append(_draw(
            f"Table 7 and Fig. 15: STREAM with {lowest:g} % local, by block size",
            "Times that it takes longer than in plain memory, by the size of a block.",
            _lines(sized, lambda record: f"{record['case']}, {_name(record, False)}",
                   lambda record: _param(record, "block_bytes")),
            paper, "block", "times plain memory's", scale=_block_scale))
    for program, kernel in (("stream", "triad"), ("stream2", "daxpy")):
        own = [record for record in times if record["case"].split("_")[0] == program]
        if not own:
            continue
        paper = [(f"paper, {kernel}, 1 MiB pages",
                  [(_paper.STREAM_TIMES_LOCAL_PERCENT, _paper.STREAM_TIMES[kernel])])]
        figures.append(_by_local(f"Fig. 16: {program.upper()}", own, paper))
    return figures


def _by_local(title: str, records: Sequence[Record], paper: Sequence[Line]) -> Figure:
    cases = {record["case"] for record in records}
    return _draw(title, "Times that it takes longer than in plain memory, by the part of the "
                 "arrays that is in local memory.",
                 _lines(records, lambda record: (f"{record['case']}, " if len(cases) > 1 else "")
                        + _name(record, True), _percent),
                 paper, "local part, %", "times plain memory's", scale=_percent_scale, level=1)


def _npb(records: Sequence[Record]) -> list[Figure]:
    figures = []
    for program in ("ft", "is", "cg"):
        own = _chosen(records, "dlm", "time_of_plain", program)
        if own:
            figures.append(_by_local(f"Fig. 17: NPB {program.upper()}", own, []))
    return figures


def _himeno(records: Sequence[Record]) -> list[Figure]:
    own = _chosen(records, "dlm", "time_of_plain", "himeno")
    if not own:
        return []
    paper = [(f"paper, {format_size(size)} pages",
              [(float(percent), value) for percent, value in points.items()])
             for size, points in _paper.HIMENO.items()]
    return [_by_local("Table 8 and Fig. 18: Himeno", own, paper)]


def _numpy(records: Sequence[Record]) -> list[Figure]:
    own = _chosen(records, "numpy", "time_of_memmap")
    if not own:
        plain = [record for record in _chosen(records, "numpy", "time_of_plain")
                 if record["system"] == "hanare"]
        return [] if not plain else [_bars(
            "NumPy on arrays larger than local memory", "Time in far memory by that in plain "
            "memory; numpy.memmap was not measured.", [record["case"] for record in plain],
            {"Hanare by plain": [record["median"] for record in plain]}, "times plain memory's",
            level=1)]
    cases = [record["case"] for record in own]
    return [_bars("NumPy on arrays larger than local memory",
                  "Time in far memory by that with numpy.memmap under the same limit: below 1 far "
                  "memory is faster.", cases,
                  {"Hanare by memmap": [record["median"] for record in own]}, "times memmap's",
                  level=1)]


def _params_text(record: Record) -> str:
    shown = []
    for name, value in record.get("params", {}).items():
        if name.endswith("_bytes") and isinstance(value, int):
            value = format_size(value) if value > 0 else "auto"
        elif isinstance(value, float):
            value = f"{value:g}"
        shown.append(f"{name.removesuffix('_bytes')} {value}")
    return ", ".join(shown)


def _table(records: Sequence[Record], bench: str) -> Table:
    rows = [(record["case"], record["system"], record["metric"], float(record["median"]),
             float(record.get("min", record["median"])), float(record.get("max", record["median"])),
             record.get("unit", ""), record.get("runs", 1), _params_text(record))
            for record in records if record["bench"] == bench]
    return Table(f"hanare bench {bench}: all numbers",
                 ("case", "system", "metric", "median", "least", "most", "unit", "runs", "with"),
                 rows)


def sections(records: Sequence[Record], remark: str = "") -> list[Section]:
    """One for the DLM paper's figures, and one for each other bench; ``remark`` ends titles."""
    found = []
    benches = list(dict.fromkeys(record["bench"] for record in records))
    papers = [bench for bench in benches if bench in _PAPERS]
    figures = [*_matv(records), *_test1(records), *_page_size(records),
               *(_bandwidth(records) if papers else []), *_stream(records), *_npb(records),
               *_himeno(records)]
    if papers:
        tables = [_table(records, bench) for bench in papers]
        found.append(Section(
            f"The DLM paper's figures, drawn again{remark}",
            "Our measurements next to what the paper printed (2009; a cluster of its time, with "
            "1 and 10 Gbit/s Ethernet). Where it only drew, nothing of it is here.",
            parts=[*figures, *tables]))
    for bench in benches:
        if bench in papers:
            continue
        own = [*_numpy(records)] if bench == "numpy" else []
        if bench == "resident":
            own = _bandwidth(records)
        found.append(Section(f"hanare bench {bench}{remark}", parts=[*own, _table(records, bench)]))
    return found
