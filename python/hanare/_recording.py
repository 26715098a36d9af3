# SPDX-License-Identifier: Apache-2.0
"""What a pool does over time, written in the form of `hanare run --stats`."""
from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from ._native import version

_EVERY_S = 0.1
_SAMPLES_MAX = 2000  # then every second one goes, and as many come from then on
_TABLES_SHARE = 0.03  # of local memory, beside what the arrays take
_TABLES_BYTES = 4 << 20


class Recording:
    """Looks at a pool's statistics, which ``stats`` returns, in a thread of its own until `end`."""

    def __init__(self, stats: Callable[[], Mapping[str, int]]) -> None:
        self._stats = stats
        self._began = time.monotonic()
        self._first = stats()
        self._samples: list[dict[str, float]] = []
        self._peak = {"far_bytes": 0, "local_bytes": 0}
        self._ends = threading.Event()
        self._look()
        self._thread = threading.Thread(target=self._run, name="hanare-recording", daemon=True)
        self._thread.start()

    def _look(self) -> None:
        counters = self._stats()
        since = {name: counters[name] - first for name, first in self._first.items()}
        sample = {"elapsed_s": time.monotonic() - self._began,
                  "far_bytes": counters["virtual_bytes"],
                  "local_bytes": counters["resident_bytes"],
                  "read_bytes": since["read_bytes"], "written_bytes": since["written_bytes"],
                  "wait_ns": since["wait_ns"],
                  "hits": since["staged_hits"],
                  "misses": since["demand_reads"] + since["part_reads"] + since["wait_faults"],
                  "faults": since["read_faults"] + since["write_faults"]
                  + since["upgrade_faults"]}
        self._samples.append(sample)
        for name, value in self._peak.items():
            self._peak[name] = max(value, int(sample[name]))

    def _run(self) -> None:
        every = _EVERY_S
        while not self._ends.wait(every):
            self._look()
            if len(self._samples) >= _SAMPLES_MAX:
                del self._samples[1::2]
                every *= 2

    def end(self, failed: bool, options: Mapping[str, Any]) -> dict[str, Any]:
        """The recording; ``failed``: what was recorded has ended in an exception."""
        self._ends.set()
        self._thread.join()
        self._look()
        last = self._samples[-1]
        totals = {name: last[name] for name in (
            "read_bytes", "written_bytes", "wait_ns", "faults", "hits", "misses")}
        far = self._peak["far_bytes"]
        return {"version": version(), "command": list(sys.argv), "run_id": os.getpid(),
                "program_id": os.getpid(), "elapsed_s": last["elapsed_s"],
                "exit_status": int(failed), "signal": None, "options": dict(options),
                "totals": {"processes": 1, "far_bytes_peak": far,
                           "local_bytes_peak": self._peak["local_bytes"],
                           "sufficient_local_bytes":
                           int(far * (1 + _TABLES_SHARE)) + _TABLES_BYTES, **totals},
                "processes": [], "samples": self._samples, "maps": []}


def write(file: str | os.PathLike[str], recording: Mapping[str, Any]) -> None:
    with open(file, "w", encoding="utf-8") as opened:
        json.dump(recording, opened)
        opened.write("\n")
