# SPDX-License-Identifier: Apache-2.0
"""What the figures of a run say, in words, and what to do about it."""
from __future__ import annotations

from typing import Any

from ._units import duration, format_size, rate

_LITTLE = 0.05  # of the time: not worth a thought
_RANDOM_BYTES = 32 << 10  # brought by a fault: less than streams bring
_OFTEN = 3  # times that the memory came back


def _of_waiting(run: dict[str, Any], totals: dict[str, Any]) -> list[str]:
    moved = totals["read_bytes"] + totals["written_bytes"]
    waited = totals["wait_ns"] / 1e9
    part = waited / max(run["elapsed_s"], 1e-9)
    if moved == 0:
        return ["Nothing was moved: all that the program used fitted into local memory."]
    said = []
    if part < _LITTLE:
        said.append(f"Threads waited {duration(waited)} in all, little of "
                    f"{duration(run['elapsed_s'])}: more local memory would hardly make it faster.")
    else:
        said.append(f"Threads waited {duration(waited)} in {duration(run['elapsed_s'])} for far "
                    f"memory; {rate(totals['read_bytes'] / waited)} came in meanwhile.")
    sufficient = totals.get("sufficient_local_bytes", 0)
    if sufficient > 0:
        said.append(f"With --local {-(-sufficient // (1 << 20))}M nothing would have been moved.")
    return said


def _of_access(totals: dict[str, Any]) -> list[str]:
    if totals["faults"] == 0 or totals["read_bytes"] == 0:
        return []
    said = []
    times = totals["read_bytes"] / max(totals["far_bytes_peak"], 1)
    by_fault = totals["read_bytes"] / totals["faults"]
    if times >= _OFTEN:
        said.append(f"Its memory was read {times:.0f} times over: what it uses in turn does not "
                    "fit. More local memory, or work on parts that fit, helps most.")
    if by_fault < _RANDOM_BYTES:
        said.append(f"A fault brought {format_size(round(by_fault))} on average: access is mostly "
                    "at random. A faster store helps (a memory server, a local flash disk), or an "
                    "order of access that goes from end to end.")
    elif times < _OFTEN:
        said.append(f"A fault brought {format_size(round(by_fault))} on average: mostly streams, "
                    "which far memory serves well.")
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
    said = [*ending, *_of_waiting(run, totals), *_of_access(totals)]
    if totals["processes"] > 1:
        said.append(f"{totals['processes']} processes shared the local memory, by how much each "
                    "needed it.")
    if totals.get("left_sites", 0) > 0:
        said.append(f"{totals['left_sites']} system call instructions could not be rewritten, and "
                    "are caught in a slower way.")
    return said
