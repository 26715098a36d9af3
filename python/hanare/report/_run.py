# SPDX-License-Identifier: Apache-2.0
"""A run of ``hanare run``: what ``--stats`` has written of it, drawn."""
from __future__ import annotations

import shlex
import signal
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._advice import advice
from ._figures import INK, RULE, SERIES, drawing
from ._section import Figure, Section, Table, Tile
from ._units import count, duration, format_size, rate

MIB = 1 << 20
_TELLS_S = 0.25  # between two samples whose difference is worth a rate
_STEPS_MAX = 500
_MAP_COLUMNS = 240
_AREAS = {"heap": "heap (brk)", "static": "arrays of the program (.bss)",
          "mappings": "memory it mapped (mmap, large malloc)"}
# Of a heat map: what is in local memory, and what is elsewhere.
_NEAR = (0.04, 0.42, 0.72)
_FAR = (0.50, 0.54, 0.60)


def _end(run: dict[str, Any]) -> str:
    if run.get("signal") is not None:
        try:
            name = signal.Signals(run["signal"]).name
        except ValueError:
            name = f"signal {run['signal']}"
        return f"ended by {name}"
    if run.get("exit_status") is None:
        return "still running"
    return f"exit status {run['exit_status']}"


def _tiles(run: dict[str, Any]) -> list[Tile]:
    totals = run["totals"]
    seconds = run["elapsed_s"]
    waited = totals["wait_ns"] / 1e9
    return [
        Tile("ran for", duration(seconds), _end(run)),
        Tile("memory used", format_size(totals["far_bytes_peak"]), "at most, wherever it was"),
        Tile("of it local", format_size(totals["local_bytes_peak"]),
             f"at most, of {run['options'].get('local', '?')}"),
        Tile("waited", duration(waited), "threads together"),
        Tile("read", format_size(totals["read_bytes"]),
             rate(totals["read_bytes"] / seconds) if seconds > 0 else ""),
        Tile("written", format_size(totals["written_bytes"]),
             rate(totals["written_bytes"] / seconds) if seconds > 0 else ""),
        Tile("faults", count(totals["faults"])),
        Tile("processes", count(totals["processes"]), "that had far memory"),
    ]


def _apart(samples: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those far enough from each other for rates: a process tells ten times a second what it did,
    and the last sample may come right after the one before."""
    seconds = samples[-1]["elapsed_s"] - samples[0]["elapsed_s"]
    least_s = max(min(_TELLS_S, seconds / 8), (samples[-1]["elapsed_s"] - samples[0]["elapsed_s"]) / _STEPS_MAX)
    kept = [samples[0]]
    for sample in samples[1:]:
        if sample["elapsed_s"] - kept[-1]["elapsed_s"] >= least_s:
            kept.append(sample)
    if kept[-1] is not samples[-1]:
        kept[-1 if len(kept) > 1 else len(kept):] = [samples[-1]]
    return kept


def _steps(samples: Sequence[dict[str, Any]], name: str) -> np.ndarray:
    """Growth by the second between samples.  Who ends takes nothing back."""
    values = np.array([sample.get(name, 0) for sample in samples], dtype=float)
    times = np.array([sample["elapsed_s"] for sample in samples])
    return np.maximum(np.diff(values), 0) / np.maximum(np.diff(times), 1e-9)


def _time_line(run: dict[str, Any]) -> Figure | None:
    samples = run.get("samples", [])
    if len(samples) < 3:
        return None
    samples = _apart(samples)
    times = np.array([sample["elapsed_s"] for sample in samples])
    far = np.array([sample["far_bytes"] for sample in samples]) / MIB
    local = np.array([sample["local_bytes"] for sample in samples]) / MIB
    reading, writing = (_steps(samples, name) / 1e6 for name in ("read_bytes", "written_bytes"))
    faults, waiting = _steps(samples, "faults"), _steps(samples, "wait_ns") / 1e9
    text = ("From top to bottom: memory that the program uses and how much of it is local; what "
            "moves between local memory and the store; faults; how many threads wait for far "
            "memory, on average.")
    with drawing("Time line of memory, transfers, faults and waiting", height=6.2) as made:
        memory, moved, fault_axes, wait_axes = made.canvas.subplots(4, 1, sharex=True)
        memory.plot(times, far, color=INK, label="used")
        memory.fill_between(times, local, color=SERIES[0], alpha=0.35, linewidth=0)
        memory.plot(times, local, color=SERIES[0], label="local")
        memory.set_ylabel("MiB")
        memory.legend(loc="upper left", bbox_to_anchor=(1, 1))
        moved.stairs(reading, times, color=SERIES[0], label="read", baseline=None)
        moved.stairs(writing, times, color=SERIES[1], linestyle="--", label="written",
                     baseline=None)
        moved.set_ylabel("MB/s")
        moved.legend(loc="upper left", bbox_to_anchor=(1, 1))
        fault_axes.stairs(faults, times, color=SERIES[2], baseline=None)
        fault_axes.set_ylabel("faults/s")
        wait_axes.stairs(waiting, times, color=SERIES[3], fill=True, alpha=0.35, linewidth=0)
        wait_axes.stairs(waiting, times, color=SERIES[3], baseline=None)
        wait_axes.set_ylabel("waiting")
        wait_axes.set_xlabel("seconds since the start")
        for axes in (memory, moved, fault_axes, wait_axes):
            axes.set_ylim(bottom=0)
            axes.set_xlim(times[0], times[-1])
    picked = np.unique(np.linspace(0, len(samples) - 2, 24).astype(int))
    rows = [(float(times[i + 1]), float(far[i + 1]), float(local[i + 1]), float(reading[i]),
             float(writing[i]), float(faults[i]), float(waiting[i])) for i in picked]
    return Figure("Time line", text, made.svg, Table(
        f"{len(rows)} of {len(samples)} steps",
        ("seconds", "used, MiB", "local, MiB", "read, MB/s", "written, MB/s", "faults/s",
         "threads waiting"), rows))


def _bytes_of(text: str) -> np.ndarray:
    return np.frombuffer(bytes.fromhex(text), np.uint8)


def _image(maps: Sequence[dict[str, Any]], begin: int, end: int, times: np.ndarray,
           rows: int = 128) -> np.ndarray:
    """Addresses upwards, time to the right; opaque where memory is local, pale where elsewhere.

    A moment is as it was told last, if that is not long ago.
    """
    image = np.zeros((rows, len(times), 4))
    places = begin + (np.arange(rows) + 0.5) * (end - begin) / rows
    told = np.array([shot["elapsed_s"] for shot in maps])
    stale = 3 * max(float(np.median(np.diff(told))), times[1] - times[0]) if len(told) > 1 else 1.0
    for column, time in enumerate(times):
        last = int(np.searchsorted(told, time, side="right")) - 1
        if last < 0 or time - told[last] > stale:
            continue
        shot = maps[last]
        local, kept = _bytes_of(shot["local"]), _bytes_of(shot["kept"])
        part = ((places - shot["begin"]) * len(local) / max(shot["bytes"], 1)).astype(int)
        inside = (part >= 0) & (part < len(local))
        near = np.where(inside, local[np.clip(part, 0, len(local) - 1)], 0) / 255
        there = np.where(inside, kept[np.clip(part, 0, len(kept) - 1)], 0) / 255
        near = np.minimum(near, there)
        weight = np.where(there > 0, near / np.maximum(there, 1e-9), 0)[:, None]
        image[:, column, :3] = weight * _NEAR + (1 - weight) * np.array(_FAR)
        image[:, column, 3] = np.minimum(1, 0.25 * there + 0.75 * near)
    return image


def _heat_map(run: dict[str, Any]) -> list[Figure]:
    figures = []
    maps = run.get("maps", [])
    for process in dict.fromkeys(shot["process_id"] for shot in maps):
        of_process = [shot for shot in maps if shot["process_id"] == process]
        times = np.unique([shot["elapsed_s"] for shot in of_process])
        kinds = [kind for kind in _AREAS
                 if any(shot["area"] == kind and shot["bytes"] > 0 for shot in of_process)]
        if len(times) < 3 or not kinds:
            continue
        times = np.linspace(times[0], times[-1], min(_MAP_COLUMNS, 4 * len(times)))
        with drawing("Which addresses are in local memory over time",
                     height=0.8 + 1.7 * len(kinds)) as made:
            rows = []
            all_axes = made.canvas.subplots(len(kinds), 1, sharex=True, squeeze=False)[:, 0]
            for axes, kind in zip(all_axes, reversed(kinds), strict=True):
                shots = [shot for shot in of_process if shot["area"] == kind]
                begin = min(shot["begin"] for shot in shots)
                end = max(shot["begin"] + shot["bytes"] for shot in shots)
                axes.imshow(_image(shots, begin, end, times), origin="lower", aspect="auto",
                            interpolation="nearest",
                            extent=(times[0], times[-1], 0, (end - begin) / MIB))
                axes.set_title(_AREAS[kind])
                axes.set_ylabel("MiB from its begin")
                axes.grid(False)
                last = shots[-1]
                rows.append((_AREAS[kind], f"{begin:#x}", (end - begin) / MIB,
                             float(_bytes_of(last["local"]).mean() / 2.55)))
            all_axes[-1].set_xlabel("seconds since the start")
        figures.append(Figure(
            f"Address space of process {process}",
            "Blue is in local memory, grey is kept elsewhere, blank was never used. Diagonals are "
            "passes through arrays; what stays blue is what the program uses again and again.",
            made.svg, Table("areas", ("area", "begins at", "MiB", "local at the end, %"), rows)))
    return figures


def _caught(run: dict[str, Any]) -> Figure | None:
    processes = [process for process in run.get("processes", []) if process["far_bytes_peak"] > 0]
    processes = sorted(processes, key=lambda process: -process["far_bytes_peak"])[:12]
    if not processes:
        return None
    names = [f"{process['command']} ({process['process_id']})" for process in processes]
    parts = {"mappings": "mapping_bytes_peak", "heap": "heap_bytes_peak",
             "static": "static_bytes_peak"}
    with drawing("Where far memory came from, by process",
                 height=1.2 + 0.35 * len(processes)) as made:
        axes = made.canvas.subplots()
        before = np.zeros(len(processes))
        for index, (kind, name) in enumerate(parts.items()):
            size = np.array([process[name] for process in processes]) / MIB
            axes.barh(names, size, left=before, color=SERIES[index], label=_AREAS[kind],
                      height=0.6, edgecolor=RULE, linewidth=0.5)
            before += size
        axes.invert_yaxis()
        axes.set_xlabel("MiB at most")
        axes.grid(False, axis="y")
        made.canvas.legend(loc="outside lower center", ncols=3)
    rows = [(name, *(process[part] / MIB for part in parts.values()),
             process["protected_calls"], process["rewritten_sites"], process["left_sites"],
             process["forks"])
            for name, process in zip(names, processes, strict=True)]
    return Figure("What caught which memory",
                  "Memory of each process that Hanare keeps, by the means through which it was "
                  "asked for; each at its own peak.", made.svg,
                  Table("by process, MiB and numbers",
                        ("process", "mapped", "heap", "static", "system calls that hold far memory",
                         "their sites rewritten", "left", "forks"), rows))


def _options(run: dict[str, Any]) -> Table:
    return Table("options of the run", ("option", "value"),
                 [(name, str(value)) for name, value in run.get("options", {}).items()])


def section(run: dict[str, Any], name: str) -> Section:
    """Of the content of one file; ``name`` is the file's."""
    command = shlex.join(run["command"])
    time_line = _time_line(run)
    remark = "" if time_line is not None else " It was too short for a time line."
    parts = [time_line, *_heat_map(run), _caught(run), _options(run)]
    return Section(title=f"{command}" if len(command) < 80 else f"{command[:77]}...",
                   text=f"{name}, Hanare {run['version']}: {_end(run)} after "
                        f"{duration(run['elapsed_s'])}.{remark}",
                   tiles=_tiles(run), advice=advice(run),
                   parts=[part for part in parts if part is not None])
