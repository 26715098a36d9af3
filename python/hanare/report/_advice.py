# SPDX-License-Identifier: Apache-2.0
"""What the figures of a run say, in words, and what to do about it."""
from __future__ import annotations

from typing import Any

from .._errors import ArgumentError
from .._sizes import parse_size
from ._units import duration, format_size, number

_LITTLE = 0.05  # threads that wait, on average: not worth a thought
_RANDOM_BYTES = 32 << 10  # brought by a fault that reads: less than streams bring
_OFTEN = 3  # times that the memory came back


def _of_waiting(run: dict[str, Any], totals: dict[str, Any]) -> list[str]:
    waited = totals["wait_ns"] / 1e9
    threads = waited / max(run["elapsed_s"], 1e-9)
    said = [f"On average {number(threads)} threads waited for far memory, {duration(waited)} in "
            f"all, in {duration(run['elapsed_s'])}"
            + (": more local memory would hardly make it faster." if threads < _LITTLE else ".")]
    sufficient = totals.get("sufficient_local_bytes", 0)
    if sufficient > 0:
        said.append(f"With {-(-sufficient // (1 << 20))}M of local memory (--local) nothing would "
                    "have been moved.")
    return said


def _random_bytes(run: dict[str, Any]) -> float:
    """A fault that brings less than this belongs to no stream."""
    try:
        block = parse_size("block", run["options"]["block"]) or _RANDOM_BYTES * 2
    except (KeyError, ArgumentError):
        block = _RANDOM_BYTES * 2
    return min(_RANDOM_BYTES, block / 2)


def _of_access(run: dict[str, Any], totals: dict[str, Any]) -> list[str]:
    said = []
    times = totals["read_bytes"] / max(totals["far_bytes_peak"], 1)
    if times >= _OFTEN:
        said.append(f"Its memory was read {times:.0f} times over: what it uses in turn does not "
                    "fit. More local memory, or work on parts that fit, helps most.")
    reading = totals.get("hits", 0) + totals.get("misses", 0)
    if reading > 0 and totals["read_bytes"] > 0:
        by_fault = totals["read_bytes"] / reading
        if by_fault < _random_bytes(run):
            said.append(f"A fault on stored memory brought {format_size(round(by_fault))} on "
                        "average: access is mostly at random. A faster store helps (a memory "
                        "server, a local flash disk), or an order of access that goes from end to "
                        "end.")
        elif times < _OFTEN:
            said.append(f"A fault on stored memory brought {format_size(round(by_fault))} on "
                        "average: mostly streams, which far memory serves well.")
    if totals["written_bytes"] > 2 * totals["read_bytes"]:
        said.append("Far more was written than read: results that nobody reads again might go to "
                    "a file at once.")
    return said


def advice(run: dict[str, Any]) -> list[str]:
    """Sentences, the most important first."""
    totals = run["totals"]
    if run.get("signal") is not None:
        ending = [f"The program was ended by signal {run['signal']}."]
    elif run.get("exit_status") not in (0, None):
        ending = [f"The program failed (exit status {run['exit_status']})."]
    else:
        ending = []
    if totals["far_bytes_peak"] == 0:
        return [*ending, "The program never used memory that Hanare would keep for it: it needs "
                         "too little, or takes it in a way that is not caught (shared memory, "
                         "files, a static binary)."]
    if totals["read_bytes"] + totals["written_bytes"] == 0:
        return [*ending, "It was killed before it told what was moved."
                if run.get("signal") is not None else
                "Nothing was moved: all that the program used fitted into local memory."]
    said = [*ending, *_of_waiting(run, totals), *_of_access(run, totals)]
    if totals["processes"] > 1:
        said.append(f"{totals['processes']} processes had far memory; those that ran at the same "
                    "time shared the local memory, by how much each needed it.")
    if totals.get("left_sites", 0) > 0:
        said.append(f"{totals['left_sites']} system call instructions could not be rewritten, and "
                    "are caught in a slower way.")
    return said
