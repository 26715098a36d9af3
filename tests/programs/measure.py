# SPDX-License-Identifier: Apache-2.0
"""Runs one program on all systems, as often as asked, and compares the results.

plain     without limits; twice at least, as results that differ by themselves prove nothing
limited   in a memory cgroup of a quarter of the plain peak and 64 MiB, without swap; should end it
hanare    the same, below `hanare run`; local memory is what the limit leaves but for a reserve
swap      the same limit, with a swap file in the work directory
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import sys

import inputs
from cgroup import MemoryCgroup, SwapFile
from interrupts import undisturbed
from report import IDENTICAL, MIB, Row
from runner import Run

LIMIT_SHARE = 0.25
LIMIT_EXTRA_BYTES = 64 * MIB
# For what Hanare does not count: kernel memory, which grows with the program.
RESERVE_BYTES = 3 * MIB
RESERVE_SHARE = 1 / 256
LOCAL_BYTES_MIN = 16 * MIB
FIRST_TIMEOUT_S = 600
TIMEOUT_S_MIN = 240
LIMITED_TIMEOUT_FACTOR = 8


@dataclasses.dataclass(frozen=True)
class Settings:
    """`has_cgroups` and `hanare` (a path, or None) say what can be done here."""

    work: pathlib.Path
    systems: tuple
    quick: bool = False
    rounds: int = 1
    hanare: str | None = None
    has_cgroups: bool = True
    patience: float = 25
    keep: bool = False
    python: str = sys.executable


def limit_bytes(peak_bytes):
    return int(peak_bytes * LIMIT_SHARE) + LIMIT_EXTRA_BYTES


def local_bytes(peak_bytes, has_cgroups):
    """The budget of `hanare run`: one rule for all programs."""
    if not has_cgroups:
        return max(int(peak_bytes * LIMIT_SHARE), LOCAL_BYTES_MIN)
    reserve_bytes = RESERVE_BYTES + int(peak_bytes * RESERVE_SHARE)
    return max(limit_bytes(peak_bytes) - reserve_bytes, LOCAL_BYTES_MIN)


def environment(program, directory):
    """What the program finds, whoever starts the harness."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(directory), "LC_ALL": "C",
            "TMPDIR": str(directory), "TZ": "UTC", "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2",
            "POLARS_MAX_THREADS": "2", "OMP_WAIT_POLICY": "passive", **program.environment}


def file_digest(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            digest.update(data)
    return digest.hexdigest()


def results_of(program, directory):
    """By name, a text that equals that of another run when the results do."""
    found = {}
    for number in range(len(program.steps) if program.output else 0):
        name = f"stdout.{number}"
        found[name] = file_digest(directory / name)
    for pattern in program.files:
        paths = sorted(directory.glob(pattern))
        found.update({str(path.relative_to(directory)): file_digest(path) for path in paths})
        if not paths:
            found[pattern] = "missing"
    for name, digest in program.digests.items():
        try:
            found[name] = digest(directory)
        except (OSError, ValueError) as error:
            found[name] = f"missing: {error}"
    return found


def compare(expected, found):
    """IDENTICAL, or what differs."""
    differing = sorted(name for name in expected.keys() | found.keys()
                       if expected.get(name) != found.get(name))
    missing = sorted(name for name in expected if expected[name].startswith("missing"))
    if missing:
        return f"failed: there is no {', '.join(missing)}"
    return f"DIFFERENT: {', '.join(differing)}" if differing else IDENTICAL


def far_bytes_peak(path):
    """From what `hanare run --stats` wrote: of all processes together; None when it tells nothing.
    """
    try:
        levels = [json.loads(path.read_text())]
    except (OSError, ValueError):
        return None
    while levels:
        level = levels.pop(0)
        if isinstance(level, dict):
            if isinstance(level.get("far_bytes_peak"), int):
                return level["far_bytes_peak"]
            levels += level.values()
    return None


@contextlib.contextmanager
def folder(path, keep=False):
    """An empty directory, removed afterwards."""
    try:
        with undisturbed():
            inputs.discard(path)
            path.mkdir(parents=True)
        yield path
    finally:
        with undisturbed():
            if not keep:
                shutil.rmtree(path, ignore_errors=True)


class Measurement:
    """One program: its inputs, its runs on all systems, and the row of the table."""

    def __init__(self, program, settings, tell):
        self.program = program
        self.settings = settings
        self.tell = tell
        self.sizes = program.quick if settings.quick else program.full
        self.row = Row(program.name, sizes=self.sizes, remark=program.remark)
        self.values = {}
        self.expected = None

    def measure(self):
        self._prepare()
        for round_number in range(self.settings.rounds):
            self._plain(runs=2 if self.settings.rounds == 1 else 1)
            if self.row.failed():
                break
            for system in ("limited", "hanare", "swap"):
                if system in self.settings.systems and (round_number == 0 or system != "limited"):
                    getattr(self, f"_{system}")()
        return self.row

    def _prepare(self):
        directory = self.settings.work / "inputs"
        self.tell(f"{self.program.name}: inputs")
        made = {name: inputs.provide(make, self.sizes, directory)
                for name, make in self.program.makers.items()}
        for path in made.values():
            inputs.warm(path)
        self.values = {**self.sizes, **made, "python": self.settings.python,
                       "python3": sys.executable, "workloads": inputs.WORKLOADS}

    def _plain(self, runs):
        for _ in range(runs):
            outcome, found = self._run("plain", FIRST_TIMEOUT_S)
            self.row.peak_bytes = max(self.row.peak_bytes, outcome.peak_bytes)
            if self.expected is None:
                self.expected = found
            self._take("plain", outcome, found)
            if self.row.failed():
                return
        self.row.limit_bytes = limit_bytes(self.row.peak_bytes) if self.settings.has_cgroups else 0

    def _limited(self):
        timeout_s = max(TIMEOUT_S_MIN, LIMITED_TIMEOUT_FACTOR * self.row.time_s("plain"))
        outcome, _ = self._run("limited", timeout_s, limited=True)
        self.row.results["limited"] = f"killed: {outcome.failure}" if outcome.failure else "fits"
        self.tell(f"{self.program.name}: limited {self.row.results['limited']}")

    def _hanare(self):
        self.row.local_bytes = local_bytes(self.row.peak_bytes, self.settings.has_cgroups)
        with folder(self._directory("store")) as store:
            outcome, found = self._run("hanare", self._timeout_s(),
                                       limited=self.settings.has_cgroups,
                                       wrap=lambda number: self._hanare_run(store, number))
            peaks = [far_bytes_peak(store / f"stats.{number}")
                     for number in range(len(self.program.steps))]
        known = [peak for peak in peaks if peak is not None]
        self.row.far_bytes_peak = max(known) if known else None
        self._take("hanare", outcome, found)

    def _hanare_run(self, store, number):
        return (self.settings.hanare, "run", "--local", f"{self.row.local_bytes // MIB}M",
                "--store", f"file:{store}", "--stats", str(store / f"stats.{number}"), "--")

    def _swap(self):
        with SwapFile(self.settings.work, 2 * self.row.peak_bytes + 256 * MIB):
            outcome, found = self._run("swap", self._timeout_s(), limited=True, swap=True)
        if outcome.failure.startswith("not done"):
            self.row.times["swap"] = [outcome.time_s]
            self.row.at_least.add("swap")
        self._take("swap", outcome, found)

    def _timeout_s(self):
        patience = self.settings.patience * self.program.patience
        return max(TIMEOUT_S_MIN, patience * self.row.time_s("plain"))

    def _directory(self, what):
        return self.settings.work / f"run-{os.getpid()}" / f"{self.program.name}-{what}"

    def _run(self, system, timeout_s, limited=False, swap=False, wrap=lambda _: ()):
        """(outcome, results); the results are empty when it has failed."""
        with contextlib.ExitStack() as stack:
            directory = stack.enter_context(folder(self._directory(system), self.settings.keep))
            group = None
            if self.settings.has_cgroups:
                group = stack.enter_context(MemoryCgroup())
            if limited:
                group.limit(self.row.limit_bytes, swap)
            os.sync()
            run = Run(self.program.made_steps(self.values), directory,
                      environment(self.program, directory), timeout_s, group, wrap)
            outcome = run.run()
            found = {} if outcome.failure else results_of(self.program, directory)
        return outcome, found

    def _take(self, system, outcome, found):
        """Into the row: the first bad result of a system stays."""
        text = f"failed: {outcome.failure}" if outcome.failure else compare(self.expected, found)
        if self.row.results.get(system, IDENTICAL) == IDENTICAL:
            self.row.results[system] = text
        if not outcome.failure:
            self.row.times.setdefault(system, []).append(outcome.time_s)
        self.tell(f"{self.program.name}: {system} {outcome.time_s:.2f} s, "
                  f"{outcome.peak_bytes / MIB:.0f} MiB, {text}")
