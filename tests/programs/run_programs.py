#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs unmodified programs plainly, with Hanare and with swap, and prints a table (README.md).

Exit status: 0; 1 when a result differs or a program fails; 2 for bad usage; 77 when there is no
`hanare run` and --skip-without-hanare.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import cgroup
import report
from interrupts import interruptible
from measure import Measurement, Settings
from programs import PROGRAMS

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKIPPED = 77


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the programs and stop")
    parser.add_argument("--only", metavar="A,B", type=names([p.name for p in PROGRAMS]),
                        help="these programs")
    parser.add_argument("--quick", action="store_true",
                        help="the third of the programs that needs little, with smaller inputs")
    parser.add_argument("--systems", metavar="A,B", type=names(report.SYSTEMS),
                        default=report.SYSTEMS,
                        help="of plain, limited, hanare and swap (default all); plain always runs")
    parser.add_argument("--rounds", type=int, default=1, help="medians of so many runs (default 1)")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "programs",
                        help="directory, on a disk, for all that is written (build/programs)")
    parser.add_argument("--hanare", default=str(ROOT / "build/release/cli/hanare"), metavar="PATH",
                        help="the program (default build/release/cli/hanare)")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write records")
    parser.add_argument("--patience", type=float, default=25, metavar="FACTOR",
                        help="give up after so many times the plain time (default 25)")
    parser.add_argument("--keep", action="store_true", help="keep what the programs have written")
    parser.add_argument("--install", action="store_true",
                        help="install the Python packages into WORK/venv first")
    parser.add_argument("--skip-without-hanare", action="store_true",
                        help=f"exit with status {SKIPPED} when there is no `hanare run`")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error(f"--rounds: {options.rounds} is too small; allowed is 1 or more")
    if options.json and not (options.json.parent.is_dir() and not options.json.is_dir()):
        parser.error(f"--json: cannot create {options.json}")
    return options


def names(allowed):
    """A type for argparse: a list of names out of these, in their order."""
    def parse_names(text):
        wanted = text.split(",")
        for name in wanted:
            if name not in allowed:
                raise argparse.ArgumentTypeError(
                    f"'{name}' is unknown; allowed are {', '.join(allowed)}")
        return tuple(name for name in allowed if name in wanted)
    return parse_names


def tell(text):
    print(text, file=sys.stderr, flush=True)


def install(work):
    """Python packages as in requirements.txt, into WORK/venv, unless they are there already."""
    venv, wanted = work / "venv", HERE / "requirements.txt"
    stamp = venv / "installed.txt"
    if stamp.exists() and stamp.read_text() == wanted.read_text():
        return
    tell(f"installing the Python packages of {wanted} into {venv}")
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    subprocess.run([venv / "bin/pip", "--disable-pip-version-check", "-q", "install", "-r", wanted],
                   check=True)
    shutil.copyfile(wanted, stamp)


def module_finder(work):
    """A function that tells whether a Python package is in WORK/venv."""
    def has_module(name):
        pattern = f"lib/python*/site-packages/{name.replace('-', '_')}-*.dist-info"
        return any((work / "venv").glob(pattern))
    return has_module


def has_hanare_run(path):
    if shutil.which(path) is None:
        return False
    done = subprocess.run([path, "run", "--help"], stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, timeout=60)
    # Without such a command, the help would be that of the program.
    return done.returncode == 0 and b"--stats" in done.stdout


def available_systems(options, work):
    """(systems, whether there are cgroups), less what cannot be had here, which is told."""
    systems, has_cgroups = list(options.systems), True
    try:
        parent = cgroup.parent_directory()
        cgroup.remove_stale_cgroups(parent)
        with cgroup.MemoryCgroup(parent) as group:
            group.limit(cgroup.UNLIMITED, swap=True)
    except (cgroup.Unavailable, OSError) as error:
        tell(f"left out: limited and swap, and the limit of hanare: {error}")
        has_cgroups = False
    left_out = {} if has_cgroups else dict.fromkeys(("limited", "swap"), "")
    if "swap" in systems and has_cgroups:
        try:
            with cgroup.SwapFile(work, 8 << 20):
                pass
        except (cgroup.Unavailable, OSError) as error:
            tell(f"left out: swap: {error}")
            left_out["swap"] = ""
    if "hanare" in systems and not has_hanare_run(options.hanare):
        tell(f"left out: hanare: {options.hanare} has no `run`")
        left_out["hanare"] = ""
    return tuple(name for name in systems if name not in left_out), has_cgroups


def remove_stale_folders(work):
    """Directories of runs whose harness is gone."""
    for path in work.glob("run-*"):
        if not pathlib.Path("/proc", path.name.removeprefix("run-")).exists():
            shutil.rmtree(path, ignore_errors=True)


def on_disk(path):
    """Whether files there do not occupy memory."""
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text().splitlines()]
    points = {fields[1]: fields[2] for fields in mounts}
    while str(path) not in points:
        path = path.parent
    return points[str(path)] not in ("tmpfs", "ramfs", "devtmpfs")


def choose(options):
    chosen = [program for program in PROGRAMS if not options.only or program.name in options.only]
    kept = [program for program in chosen if program.quick or not options.quick]
    if not kept:
        left = ", ".join(program.name for program in chosen)
        print(f"run_programs.py: error: --quick: has no {left}; see --list", file=sys.stderr)
        sys.exit(2)
    return kept


def run_all(options, work):
    """The rows of all programs, printed one by one."""
    systems, has_cgroups = available_systems(options, work)
    if options.skip_without_hanare and "hanare" not in systems:
        sys.exit(SKIPPED)
    has_module = module_finder(work)
    settings = Settings(work, systems, quick=options.quick, rounds=options.rounds,
                        hanare=options.hanare, has_cgroups=has_cgroups, patience=options.patience,
                        keep=options.keep, python=str(work / "venv/bin/python"))
    rows = []
    print(report.header(), flush=True)
    for program in choose(options):
        missing = program.missing(has_module)
        row = (report.Row(program.name, skipped=missing) if missing
               else Measurement(program, settings, tell).measure())
        print(report.row_line(row), flush=True)
        rows.append(row)
    return rows


def main(arguments):
    options = parse(arguments)
    if options.list:
        for program in PROGRAMS:
            print(f"{program.name:<10} {'quick' if program.quick else '':<6} {program.about}")
        return 0
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    if not on_disk(work):
        tell(f"run_programs.py: error: --work: {work} is in memory; name a directory on a disk")
        return 2
    try:
        cgroup.remove_stale_swap_files(work)
        remove_stale_folders(work)
        if options.install:
            install(work)
        rows = run_all(options, work)
    finally:
        if not options.keep:
            shutil.rmtree(work / f"run-{os.getpid()}", ignore_errors=True)
    print("\n" + "\n".join(report.summary(rows)), flush=True)
    if options.json:
        report.write_json(options.json, rows)
    return 1 if any(row.failed() for row in rows) else 0


if __name__ == "__main__":
    with interruptible():
        sys.exit(main(sys.argv[1:]))
