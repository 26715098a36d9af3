#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Checks that a test run leaves nothing behind: files and directories named *hanare* in $TMPDIR,
# /tmp, /var/tmp and /dev/shm, cgroups and mounts named so, swap files there, and processes started
# from the build directory.  Another Hanare may run on this machine: what its processes hold open,
# or what carries the id of one in its name (as all that outlives a call should), is theirs.
#
# check_leftovers.py before STATE       records what is there before the first test
# check_leftovers.py after STATE BUILD  reports what has been added, after waiting up to 10 s for
#                                       processes that are just ending
# check_leftovers.py --self-test
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import checklib

WAIT_S = 10


def named(path):
    return "hanare" in path.lower()


def lines_of(path):
    try:
        return pathlib.Path(path).read_text().splitlines()
    except OSError:
        return []


def temporary_folders():
    return sorted({os.environ.get("TMPDIR", "/tmp"), "/tmp", "/var/tmp", "/dev/shm"})


def temporary_files():
    for folder in temporary_folders():
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        yield from (os.path.join(folder, name) for name in names if named(name))


def cgroups():
    for folder, children, _ in os.walk("/sys/fs/cgroup"):
        yield from (os.path.join(folder, child) for child in children if named(child))


def processes():
    """(pid, program) of every process that may be looked at."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            yield int(pid), os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
        except OSError:
            continue


def present():
    found = {f"file {path}" for path in temporary_files()}
    found |= {f"cgroup {path}" for path in cgroups()}
    found |= {f"swap {line.split()[0]}" for line in lines_of("/proc/swaps")[1:] if named(line)}
    found |= {f"mount {line.split()[1]}" for line in lines_of("/proc/self/mounts") if named(line)}
    return found


def left_processes(build):
    return {f"process {pid} {program}" for pid, program in processes()
            if program.startswith(build + "/")}


def in_use_by_others(item, build):
    """What a process from elsewhere holds, or is named after it."""
    kind, path = item.split(" ", 1)
    numbers = re.findall(r"-(\d+)(?=[-.]|$)", os.path.basename(path))
    named_after = {int(number) for number in numbers} - {1}
    if kind != "process" and any(pid in named_after and not program.startswith(build + "/")
                                 for pid, program in processes()):
        return True
    if kind == "cgroup":
        users = {int(pid) for pid in lines_of(f"{path}/cgroup.procs")}
        return any(pid in users and not program.startswith(build + "/")
                   for pid, program in processes())
    for pid, program in processes() if kind == "file" else ():
        if program.startswith(build + "/"):
            continue
        try:
            for fd in os.scandir(f"/proc/{pid}/fd"):
                if os.readlink(fd.path).startswith(path):
                    return True
        except OSError:
            continue
    return False


def left(before, build):
    found = (present() - before) | left_processes(build)
    ours = {item for item in found if not build.startswith(item.split(" ", 1)[1] + "/")}
    return sorted(item for item in ours if not in_use_by_others(item, build))


def check(before, build, wait_s):
    """Waits for processes to end by themselves: nobody tells the parent of a grandchild."""
    build = os.path.realpath(build)
    deadline = time.monotonic() + wait_s
    while (items := left(before, build)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [f"left behind: {item}" for item in items]


def self_test():
    failures = []

    def expect(what, findings, text):
        if (text is None and findings) or (text and not any(text in line for line in findings)):
            failures.append(f"{what}: {findings}")

    with tempfile.TemporaryDirectory(prefix="check-leftovers-") as build:
        before = present()
        expect("nothing", check(before, build, 0), None)
        with tempfile.NamedTemporaryFile(prefix="hanare-left-", dir="/var/tmp") as file:
            name = file.name
            file_findings = check(before, build, 0)
            # This process holds the file open and is not from the build directory.
            expect("file in use elsewhere", [line for line in file_findings if name in line], None)
        path = pathlib.Path(name)
        try:
            path.touch()
            expect("file", check(before, build, 0), f"file {name}")
        finally:
            path.unlink()
        program = shutil.copy("/bin/sleep", build)
        for here, text in ((False, None), (True, "file ")):
            # Of a process from elsewhere, and of one from the build directory.
            owner = subprocess.Popen([program if here else "/bin/sleep", "100"])
            path = pathlib.Path(f"/var/tmp/hanare-left-{owner.pid}.swap")
            try:
                path.touch()
                findings = [line for line in check(before, build, 0) if str(path) in line]
                expect(f"named after a process, {here}", findings, text)
            finally:
                path.unlink()
                owner.kill()
                owner.wait()
        child = subprocess.Popen([program, "100"])
        try:
            # exec is done when Popen returns.
            expect("process", check(before, build, 0), f"process {child.pid} ")
        finally:
            child.kill()
            child.wait()
        expect("all gone", check(before, build, 0), None)
    return checklib.report("self-test of the leftover check", failures, "7 cases as expected")


def run(arguments):
    command, state = arguments[0], pathlib.Path(arguments[1])
    if command == "before":
        state.write_text(json.dumps(sorted(present())))
        return 0
    findings = check(set(json.loads(state.read_text())), arguments[2], WAIT_S)
    return checklib.report("leftovers", findings, "nothing left behind")


if __name__ == "__main__":
    checklib.main("leftovers", run, self_test)
