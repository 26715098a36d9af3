#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Checks block.pml, coherence.pml, reading.pml, region.pml, sparse.pml and waits.pml with Spin: no error
# in the protocol, an error in every mutant.
# Works in a temporary directory, which goes away with it.  Exit status 77: a tool is missing.
#
# run.py [--list] [--all] [NAME...]     NAME: only these cases; without --all not those that take minutes
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SKIP = 77
MEMORY_MIB = 1000  # of each search
DEPTH = 100_000
HASH_BITS = 22
WORKERS = 2
CASE_S = 400  # a case that takes longer has grown out of its size

EVICT = "THIRD=EVICTOR"
FLUSH = "THIRD=FLUSHER"
PIN = "THIRD=PINNER"
# Task 2 learns of a write, fetches the block for another word, and reads what was written.
STEADY = "STEADY NO_BARRIER ONLY0=0 ONLY2=ops OPS1=0 OPS2=3"
UNDO = "OPS0=2 WRITES0=2 UNDOES0=1"

# name: (model, definitions)
PROTOCOL = {
    "one-frame": ("block", "NF=1 OPS0=2"),
    "one-frame-keeper": ("block", "NF=1 KEEPER_ACTS=1"),
    "two-frames-keeper": ("block", "NF=2 KEEPER_ACTS=1"),
    "two-frames-evictor": ("block", f"NF=2 {EVICT}"),
    "evictor": ("block", f"NF=1 {EVICT}"),
    "flush": ("block", f"NF=1 OPS1=0 {FLUSH}"),
    "flush-two-frames": ("block", f"NF=2 OPS0=2 OPS1=0 {FLUSH}"),
    "flush-while-installing": ("block", f"ONE_PAGE NF=1 {FLUSH}"),
    "pin": ("block", f"NF=1 {PIN}"),
    "store-fails": ("block", "NF=1 OPS0=2 STORE_FAILS=2"),
    "store-fails-keeper": ("block", "NF=1 OPS0=2 OPS1=0 KEEPER_ACTS=2 STORE_FAILS=1"),
    "move-fails": ("block", "NF=1 OPS0=2 MOVE_FAILS=1"),
    "region-end": ("region", ""),
    "reading": ("reading", ""),
    "sparse": ("sparse", "OPS=2 ACTS=2"),
    "sparse-store-fails": ("sparse", "OPS=1 ACTS=2 STORE_FAILS=1"),
    "coherence-two-tasks": ("coherence", "OPS2=0"),
    "coherence-other-tasks": ("coherence", "OPS0=0"),
    "coherence-nested": ("coherence", "NESTED=1 ONE_BLOCK"),
    "coherence-moves": ("coherence", "MOVES=1 OPS2=0 ONE_BLOCK"),
    "coherence-moves-twice": ("coherence", "MOVES=2 ONE_LOCK ONE_BLOCK"),
    "coherence-steady": ("coherence", "STEADY OPS0=2 OPS2=0 ONE_BLOCK"),
    "coherence-steady-undone": ("coherence", f"{STEADY} {UNDO}"),
    "coherence-steady-moves": ("coherence", "STEADY MOVES=1 OPS0=2 OPS2=0 ONE_BLOCK ONE_LOCK"),
    "coherence-protected": ("coherence", "PROTECT ONE_LOCK ONE_BLOCK"),
    "coherence-protected-two": ("coherence", "PROTECT OPS0=2 OPS1=2 OPS2=0 ONE_BLOCK ONE_LOCK"),
    "coherence-protected-steady": ("coherence", "PROTECT STEADY OPS0=2 OPS2=0 ONE_BLOCK ONE_LOCK"),
    "coherence-protected-moves": ("coherence", "PROTECT MOVES=1 OPS0=2 OPS2=0 ONE_BLOCK ONE_LOCK"),
    "coherence-one-word": ("coherence", "ONE_LOCK ONE_BLOCK OPS2=2"),
    "waits-signal": ("waits", "CONDITION"),
    "waits-broadcast": ("waits", "CONDITION BROADCAST"),
    "waits-semaphores": ("waits", ""),
    "waits-chain": ("waits", "CHAIN"),
}
MUTANTS = {
    "no-compare": ("block", "BUG_NO_COMPARE NF=1 OPS0=2"),
    "clean-drop": ("block", "BUG_CLEAN_DROP NF=1"),
    "lost-wake": ("block", "BUG_LOST_WAKE NF=1"),
    "no-waiters-bit": ("block", "BUG_NO_WAITERS_BIT NF=1"),
    "no-futex-compare": ("block", "BUG_NO_FUTEX_COMPARE NF=1"),
    "silent-upgrade": ("block", "BUG_SILENT_UPGRADE NF=1 OPS0=2"),
    "unpin-while-upgrading": ("block", f"BUG_UNPIN_WHILE_UPGRADING NF=1 {PIN}"),
    "failed-install-clean": ("block", "BUG_FAILED_INSTALL_CLEAN NF=1 OPS0=2 MOVE_FAILS=1"),
    "map-while-filling": ("block", f"BUG_MAP_WHILE_FILLING ONE_PAGE NF=1 {FLUSH}"),
    "watch-late": ("block", "BUG_WATCH_LATE NF=1 OPS0=2 KEEPER_ACTS=1"),
    "lost-kick": ("block", f"BUG_LOST_KICK NF=1 OPS1=0 {FLUSH}"),
    "sleep-unchecked": ("block", f"BUG_SLEEP_UNCHECKED NF=1 OPS1=0 {FLUSH}"),
    "reading-no-wake": ("reading", "BUG_NO_WAKE"),
    "reading-wait-for-nothing": ("reading", "BUG_WAIT_FOR_NOTHING"),
    "reading-follow-nobody": ("reading", "BUG_FOLLOW_NOBODY"),
    "reading-closed-unseen": ("reading", "BUG_CLOSED_UNSEEN"),
    "sparse-part-unguarded": ("sparse", "BUG_PART_UNGUARDED"),
    "sparse-no-overlay": ("sparse", "BUG_NO_OVERLAY"),
    "sparse-copy-unguarded": ("sparse", "BUG_COPY_UNGUARDED"),
    "sparse-write-unguarded": ("sparse", "BUG_WRITE_UNGUARDED"),
    "sparse-nobody-completes": ("sparse", "BUG_NOBODY_COMPLETES"),
    "coherence-not-served": ("coherence", "BUG_NOT_SERVED"),
    "coherence-noted-late": ("coherence", "BUG_NOTED_LATE"),
    "coherence-protected-unshared": ("coherence", "BUG_PROTECTED_UNSHARED PROTECT OPS2=0 ONE_BLOCK"),
    "coherence-protected-unserved": ("coherence", "BUG_PROTECTED_UNSERVED PROTECT OPS2=0 ONE_BLOCK"),
    "coherence-whole-block": ("coherence", "BUG_WHOLE_BLOCK"),
    "coherence-notice-first": ("coherence", "BUG_NOTICE_FIRST"),
    "coherence-no-early-notice": ("coherence", "BUG_NO_EARLY_NOTICE NESTED=1 ONE_BLOCK OPS2=2"),
    "coherence-drop-dirty": ("coherence", "BUG_DROP_DIRTY NESTED=1 ONE_BLOCK"),
    "coherence-holder-only": ("coherence",
                              "BUG_HOLDER_S_NOTICES_ONLY ONE_LOCK ONE_BLOCK OPS2=2"),
    "coherence-handed-while-held": ("coherence", "BUG_HANDED_WHILE_HELD"),
    "coherence-moved-unshared": ("coherence", "BUG_MOVED_UNSHARED MOVES=1 ONE_BLOCK OPS2=2"),
    "waits-unlock-first": ("waits", "BUG_UNLOCK_FIRST CONDITION"),
    "waits-signal-cleared-late": ("waits", "BUG_CAME_CLEARED_LATE CONDITION"),
    "waits-look-once": ("waits", "BUG_LOOK_ONCE CONDITION"),
    "waits-post-cleared-late": ("waits", "BUG_CAME_CLEARED_LATE"),
    "waits-own-position": ("waits", "BUG_OWN_POSITION CHAIN"),
    "waits-last-post": ("waits", "BUG_LAST_POST"),
    "coherence-not-owed": ("coherence",
                           "BUG_NOT_OWED MOVES=1 ONE_BLOCK ONLY0=0 ONLY1=1 ONLY2=ops OPS2=2 NO_BARRIER"),
    "coherence-steady-served": ("coherence", f"BUG_STEADY_SERVED {STEADY} {UNDO}"),
    "coherence-steady-live": ("coherence", f"BUG_STEADY_LIVE {STEADY} {UNDO}"),
    "coherence-steady-diff": ("coherence", "BUG_STEADY_DIFF STEADY OPS0=2 OPS1=2 OPS2=0 ONE_BLOCK"),
    "coherence-steady-unprotected": ("coherence",
                                     f"BUG_STEADY_UNPROTECTED {STEADY} OPS0=3 WRITES0=5 UNDOES0=0"),
    "coherence-moved-over": ("coherence", "BUG_MOVED_OVER MOVES=1 OPS0=2 OPS2=0 ONE_BLOCK"),
    "coherence-moved-mapped": ("coherence", "BUG_MOVED_MAPPED MOVES=1 OPS2=0 ONE_BLOCK"),
    "coherence-moved-early": ("coherence", "BUG_MOVED_EARLY MOVES=1 OPS0=2 OPS2=0 ONE_BLOCK ONLY0=0 ONLY1=1"),
    "closing-before-enter": ("region", "BUG_CLOSING_BEFORE_ENTER"),
    "closing-after-leave": ("region", "BUG_CLOSING_AFTER_LEAVE"),
}
# Together some minutes.
LONG = {"coherence-other-tasks", "coherence-nested", "coherence-one-word", "coherence-noted-late",
        "coherence-notice-first", "coherence-no-early-notice", "coherence-holder-only",
        "coherence-moves-twice", "coherence-moved-unshared", "coherence-steady"}
# Searches of these take longer than compiling them with optimisation.
OPTIMISED = {"coherence"}


running = set()  # what stop() ends
stopped = False


def run(command, folder):
    if stopped:
        raise InterruptedError
    with subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as child:
        running.add(child)
        try:
            text, _ = child.communicate(timeout=CASE_S)
        except subprocess.TimeoutExpired:
            child.kill()
            raise
        finally:
            running.discard(child)
    if stopped:
        raise InterruptedError
    return child.returncode, text


def stop(*_):
    global stopped
    stopped = True
    for child in list(running):
        child.kill()


def number(pattern, text):
    found = re.search(pattern, text)
    return float(found.group(1)) if found else 0.0


class Outcome:
    def __init__(self, text):
        self.errors = int(number(r"errors: (\d+)", text))
        self.states = int(number(r"(\d+) states, stored", text))
        self.depth = int(number(r"depth reached (\d+)", text))
        self.mib = number(r"([\d.]+)\s+total actual memory", text)
        self.complete = ("errors:" in text and "Search not completed" not in text
                         and "search depth too small" not in text
                         and "out of memory" not in text)
        found = re.search(r"pan:1: (.*)", text)
        self.finding = found.group(1) if found else ""


def check(folder, model, definitions):
    """The outcome of one search, or the text of what went wrong."""
    options = [f"-D{word}" for word in definitions.split()]
    code, text = run(["spin", *options, "-a", str(HERE / f"{model}.pml")], folder)
    if code != 0 or "Error" in text:
        return None, text
    code, text = run(["gcc", "-O1" if model in OPTIMISED else "-O0", "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={MEMORY_MIB}",
                      "-o", "pan", "pan.c"], folder)
    if code != 0:
        return None, text
    _, text = run(["./pan", f"-m{DEPTH}", f"-w{HASH_BITS}"], folder)
    return Outcome(text), text


def judge(outcome, text, is_mutant):
    if outcome is None:
        return "the model does not build:\n" + text
    if is_mutant:
        # The first error must be the mutant's, not the bound of the search.
        if outcome.errors == 0 or "search depth" in outcome.finding:
            return "no error found in a model that has one:\n" + text
        return ""
    if outcome.errors != 0:
        return f"{outcome.finding}\n{text}"
    return "" if outcome.complete else "the search did not finish:\n" + text


def check_one(name, case, is_mutant):
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix=f"hanare-model-{os.getpid()}-") as folder:
        try:
            outcome, text = check(folder, *case)
        except subprocess.TimeoutExpired:
            outcome, text = Outcome(""), f"no result after {CASE_S} s"
        failure = judge(outcome, text, is_mutant)
        if failure and (trail := pathlib.Path(folder) / f"{case[0]}.pml.trail").exists():
            options = [f"-D{word}" for word in case[1].split()]
            _, steps = run(["spin", *options, "-t", "-k", trail.name, "-p", "-g",
                            str(HERE / f"{case[0]}.pml")], folder)
            failure += "\n" + steps[-20_000:]
    verdict = "FAILED" if failure else "found" if is_mutant else "holds"
    finding = outcome.finding if outcome and is_mutant else ""
    states, depth, mib = (outcome.states, outcome.depth, outcome.mib) if outcome else (0, 0, 0)
    print(f"{name:24} {verdict:7} {states:>10} states  depth {depth:>6}  {mib:>6.0f} MiB "
          f"{time.monotonic() - begin:>6.1f} s  {finding}", flush=True)
    if failure:
        print(failure, flush=True)
    return not failure


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    cases = [(name, case, False) for name, case in PROTOCOL.items()]
    cases += [(name, case, True) for name, case in MUTANTS.items()]
    if unknown := set(arguments.names) - {name for name, _, _ in cases}:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    if arguments.list:
        print("\n".join(f"{name:24} {case[0]}.pml {case[1]}" for name, case, _ in cases))
        return 0
    for tool, package in (("spin", "spin"), ("gcc", "gcc")):
        if shutil.which(tool) is None:
            print(f"skipped: {tool} is not installed (Debian package {package})")
            return SKIP
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    begin = time.monotonic()
    chosen = [case for case in cases
              if case[0] in arguments.names
              or not arguments.names and (arguments.all or case[0] not in LONG)]
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        try:
            passed = list(pool.map(lambda case: check_one(*case), chosen))
        except InterruptedError:
            print("interrupted")
            return 130
    failed = [case[0] for case, good in zip(chosen, passed) if not good]
    print(f"{len(chosen) - len(failed)} of {len(chosen)} cases as expected, "
          f"{time.monotonic() - begin:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
