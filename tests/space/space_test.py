# SPDX-License-Identifier: Apache-2.0
"""`hanare space run`: unmodified programs as tasks of one address space.

SPACE_PROGRAMS is the directory of the programs beside this file, compiled.
"""

import ctypes
import fcntl
import json
import os
import pathlib
import pty
import pwd
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

HANARE = os.environ["HANARE_BINARY"]
PROGRAMS = pathlib.Path(os.environ["SPACE_PROGRAMS"])
SECONDS = 120


# Processes by fork and by exec, which leaves the space, and threads, in each task.
POOLS = """
import multiprocessing, os, threading
def square(number):
    return number * number
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(square, range(1000)) == [k * k for k in range(1000)], method
    sums = []
    threads = [threading.Thread(target=lambda: sums.append(sum(range(100000)))) for _ in range(4)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert sums == [sum(range(100000))] * 4
    os.write(1, b"right\\n")  # in one piece, also where nothing is buffered
"""


def run(count, *command, **options):
    return subprocess.run([HANARE, "space", "run", "-n", str(count), *map(str, command)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=SECONDS, **options)


def ignore_for_libc(number):
    """Ignores a signal that a libc keeps for itself, and refuses to others."""
    rt_sigaction = 13
    ignored = struct.pack("QQQQ", signal.SIG_IGN, 0, 0, 0)
    if ctypes.CDLL(None, use_errno=True).syscall(rt_sigaction, number, ignored, None, 8) != 0:
        raise OSError(ctypes.get_errno(), "rt_sigaction")


def ordinary_user():
    user = pwd.getpwnam("nobody")

    def change():
        os.setgroups([])
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)
    return change


class Started:
    """A space whose tasks have begun: root, and the process of each task."""

    def __init__(self, test, count, *command):
        self.root = subprocess.Popen([HANARE, "space", "run", "-n", str(count), *map(str, command)],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE, text=True)
        test.addCleanup(self.end)
        lines = [self.root.stdout.readline() for _ in range(count)]
        test.assertEqual(set(lines), {"ready\n"})
        children = pathlib.Path(f"/proc/{self.root.pid}/task/{self.root.pid}/children")
        self.tasks = [int(child) for child in children.read_text().split()]
        test.assertEqual(len(self.tasks), count)

    def end(self):
        self.root.kill()
        self.root.communicate(timeout=SECONDS)

    def mappings(self):
        return pathlib.Path(f"/proc/{self.root.pid}/maps").read_text().splitlines()


class Programs(unittest.TestCase):
    def assert_right(self, done, count, expected="right"):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.split("\n"), [expected] * count + [""], done.stderr)
        self.assertEqual(done.stderr, "")

    def test_a_program_of_the_system(self):
        self.assert_right(run(3, "echo", "a b", "c"), 3, "a b c")

    def test_each_task_knows_which_it_is(self):
        done = run(4, "/bin/sh", "-c", "echo $HANARE_SPACE_TASK of $HANARE_SPACE_TASKS")
        self.assertEqual(sorted(done.stdout.splitlines()), [f"{k} of 4" for k in range(4)])

    def test_processes_of_their_own(self):
        done = run(3, "/bin/sh", "-c", "cd /tmp; echo $$ $PPID; exec 9>&1")
        pairs = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual(len({own for own, _ in pairs}), 3)
        self.assertEqual(len({parent for _, parent in pairs}), 1)

    def test_memory_exceptions_and_threads(self):
        self.assert_right(run(8, PROGRAMS / "churn", 3000), 8)

    def test_static_programs_that_can_lie_anywhere(self):
        self.assert_right(run(4, PROGRAMS / "churn_static", 1000), 4)

    def test_mappings(self):
        self.assert_right(run(3, PROGRAMS / "mappings"), 3)

    def test_signals(self):
        self.assert_right(run(3, PROGRAMS / "own_signals"), 3)

    def test_children(self):
        self.assert_right(run(3, PROGRAMS / "forked"), 3)

    def test_libraries_and_the_name_of_the_program(self):
        path = PROGRAMS / "libraries"
        self.assert_right(run(3, path), 3, str(path.resolve()))

    def test_tasks_walk_each_others_trees(self):
        done = run(4, os.environ["SPACE_EXAMPLE"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(sorted(done.stdout.splitlines()),
                         [f"task {task}: 2000 words, each found by 4 tasks" for task in range(4)])

    def test_communication_is_loads_and_stores(self):
        for end in ("end", "close"):
            done = subprocess.run([HANARE, "launch", "-n", "3", HANARE, "space", "exec", "--verbose",
                                   PROGRAMS / "comm_task", end], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "right\nright\n", ""))

    def test_loads_and_stores_in_another_tasks_heap(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assert_right(run(5, PROGRAMS / "neighbour", directory), 5)

    def test_shared_memory_is_mapped_once(self):
        on_disk = "tmpfs" not in subprocess.run(["stat", "-f", "-c", "%T", "/var/tmp"],
                                                capture_output=True, text=True).stdout
        for place, is_once in (("/dev/shm", True), ("/var/tmp", not on_disk)):
            with (tempfile.TemporaryDirectory() as directory,
                  tempfile.NamedTemporaryFile(dir=place, prefix="hanare-space-") as file):
                file.truncate(1 << 20)
                done = run(4, PROGRAMS / "shared", directory, file.name)
                self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
                places = set(done.stdout.split())
                self.assertEqual(len(places), 1 if is_once else 4, done.stdout)

    def test_segments_of_system_v_are_attached_once(self):
        libc = ctypes.CDLL(None, use_errno=True)
        ipc_private, ipc_rmid = 0, 0
        segment = libc.shmget(ipc_private, 1 << 20, 0o600)
        self.assertGreaterEqual(segment, 0, os.strerror(ctypes.get_errno()))
        try:
            with tempfile.TemporaryDirectory() as directory:
                done = run(4, PROGRAMS / "segments", directory, segment)
            self.assertEqual((done.returncode, done.stderr), (-signal.SIGKILL, ""),
                             done.stdout)
            self.assertEqual(len(done.stdout.split()), 4, done.stdout)
            self.assertEqual(len(set(done.stdout.split())), 1, done.stdout)
        finally:
            libc.shmctl(segment, ipc_rmid, None)
        # Nobody has it any more.
        self.assertEqual(libc.shmat(segment, None, 0), -1)

    def test_name_of_the_program_behind_a_link(self):
        with tempfile.TemporaryDirectory() as directory:
            link = pathlib.Path(directory, "link")
            link.symlink_to(PROGRAMS / "libraries")
            self.assert_right(run(2, link), 2, str((PROGRAMS / "libraries").resolve()))

    def test_copies_between_tasks(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assert_right(run(4, PROGRAMS / "copies", directory), 4)

    def test_borders_between_tasks(self):
        with (tempfile.TemporaryDirectory() as directory,
              tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="hanare-space-") as file):
            file.truncate(1 << 20)
            done = run(2, PROGRAMS / "borders", directory, file.name)
            self.assertEqual((done.stdout, done.stderr), ("right\n", ""))
            self.assertEqual(done.returncode, -signal.SIGTERM)

    def test_shell_with_pipes_and_children(self):
        script = "for i in 1 2 3 4 5; do seq 1000 | sort -rn | head -n $i | tail -n 1; done | paste -sd+"
        self.assert_right(run(3, "/bin/bash", "-c", script), 3, "1000+999+998+997+996")

    def run_script(self, count, text):
        with tempfile.TemporaryDirectory() as directory:
            script = pathlib.Path(directory, "script")
            script.write_text(text)
            script.chmod(0o755)
            return script, run(count, script, "word")

    def test_script(self):
        script, done = self.run_script(2, '#! /bin/bash  -e \necho "$0 $1"; false; echo unreached\n')
        self.assertEqual(done.stdout, f"{script} word\n" * 2, done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_script_by_env_stays_in_the_space(self):
        _, done = self.run_script(1, "#!/usr/bin/env bash\nreadlink /proc/$$/exe; echo $1\n")
        self.assertRegex(done.stdout, r"hanare-space-root\nword\n$", done.stderr)

    def test_perl(self):
        script = ("my %h; $h{$_ % 1000} .= $_ for 1 .. 200000; my $sum = 0;"
                  "pipe(my $r, my $w); unless (fork) { print $w length(join '', values %h); exit }"
                  "close $w; wait; print <$r> == length(join '', 1 .. 200000) ? \"right\\n\" : \"wrong\\n\"")
        self.assert_right(run(3, "/usr/bin/perl", "-e", script), 3)

    @unittest.skipUnless((PROGRAMS / "parallel").exists(), "built without OpenMP")
    def test_openmp(self):
        self.assert_right(run(3, PROGRAMS / "parallel"), 3)

    def test_fortran(self):
        if not (PROGRAMS / "common").exists():
            self.skipTest("gfortran is not installed")
        self.assert_right(run(4, PROGRAMS / "common"), 4)

    def test_python_with_processes(self):
        if not (PROGRAMS / "python").exists():
            self.skipTest("libpython3.11 is not installed")
        with tempfile.TemporaryDirectory() as directory:
            script = pathlib.Path(directory, "pool.py")
            script.write_text(POOLS)
            self.assert_right(run(3, PROGRAMS / "python", script,
                                  env=os.environ | {"PYTHONHOME": "/usr"}), 3)

    def test_a_filter_of_system_calls_is_its_tasks(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assert_right(run(3, PROGRAMS / "filtered", directory), 3)

    def test_ordinary_user(self):
        done = run(3, "/bin/echo", "right", preexec_fn=ordinary_user())
        self.assert_right(done, 3)


class Ends(unittest.TestCase):
    def test_status_of_the_one_that_fails(self):
        done = run(4, "/bin/sh", "-c", "test $HANARE_SPACE_TASK != 2 || exit 7")
        self.assertEqual(done.returncode, 7, done.stderr)

    def test_killed_task_leaves_the_others(self):
        done = run(4, "/bin/sh", "-c",
                   "test $HANARE_SPACE_TASK != 2 || kill -SEGV $$; sleep 0.1; echo lives")
        self.assertEqual(done.stdout, "lives\n" * 3)
        self.assertEqual(done.returncode, -signal.SIGSEGV, done.stderr)

    def test_memory_comes_back(self):
        space = Started(self, 6, "/bin/sh", "-c", "echo ready; read forever < /dev/zero")
        before = len(space.mappings())
        self.assertGreater(before, 6 * 10)
        for task in space.tasks[:5]:
            os.kill(task, signal.SIGKILL)
        end = time.monotonic() + SECONDS
        while len(space.mappings()) > before / 4:
            self.assertLess(time.monotonic(), end, "\n".join(space.mappings()))
            time.sleep(0.01)

    def test_tasks_share_one_memory(self):
        space = Started(self, 4, "/bin/sh", "-c", "echo ready; read forever < /dev/zero")
        maps = {pathlib.Path(f"/proc/{task}/maps").read_text() for task in space.tasks}
        self.assertEqual(len(maps), 1)
        libc = [line for line in space.mappings() if re.search(r"r-xp .*/libc[.-]", line)]
        self.assertEqual(len(libc), 4, "each has a libc")
        begins = sorted(int(line.split("-")[0], 16) >> 35 for line in libc)
        self.assertEqual([begin - begins[0] for begin in begins], [0, 1, 2, 3])

    def test_shown_by_ps(self):
        space = Started(self, 3, "/bin/sh", "-c", "echo ready; read forever < /dev/zero")
        shown = json.loads(subprocess.run([HANARE, "space", "ps", "--json"], capture_output=True,
                                          text=True, timeout=SECONDS, check=True).stdout)["spaces"]
        own = [each for each in shown if each["root"] == space.root.pid]
        self.assertEqual(len(own), 1, shown)
        self.assertEqual({task["process_id"] for task in own[0]["tasks"]}, set(space.tasks))
        self.assertEqual({task["program"] for task in own[0]["tasks"]}, {"sh"})
        self.assertGreater(own[0]["resident_bytes"], 0)
        self.assertFalse(set(space.tasks) & {each["root"] for each in shown})
        text = subprocess.run([HANARE, "space", "ps"], capture_output=True, text=True,
                              timeout=SECONDS, check=True).stdout
        self.assertIn(str(space.root.pid), text)

    @unittest.skipUnless(shutil.which("gdb"), "gdb is not installed")
    def test_gdb_has_the_symbols_of_a_task(self):
        space = Started(self, 2, PROGRAMS / "api_task", "ready")
        for task in space.tasks:
            done = subprocess.run([HANARE, "space", "gdb", str(task), "-batch", "-ex", "backtrace"],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=SECONDS)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, "(?s)in wait_to_be_killed .* in main ")
        for process, text in ((os.getpid(), "is no task"), ("none", "PID")):
            done = subprocess.run([HANARE, "space", "gdb", str(process)], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=SECONDS)
            self.assertNotEqual(done.returncode, 0)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(text, done.stderr)

    def test_bases_differ(self):
        bases = set()
        for _ in range(4):
            space = Started(self, 1, "/bin/sh", "-c", "echo ready; read forever < /dev/zero")
            bases |= {line.split("-")[0] for line in space.mappings() if "/libc" in line}
            space.end()
        self.assertGreater(len(bases), 10)

    def test_signals_are_passed_on(self):
        space = Started(self, 3, "/bin/sh", "-c",
                        "trap 'echo told; exit 5' TERM; echo ready; while :; do sleep 0.02; done")
        space.root.terminate()
        output, _ = space.root.communicate(timeout=SECONDS)
        self.assertEqual(output, "told\n" * 3)
        self.assertEqual(space.root.returncode, 5)

    def test_nothing_outlives_the_root(self):
        space = Started(self, 3, "/bin/sh", "-c", "echo ready; read forever < /dev/zero")
        space.root.kill()
        space.root.wait(timeout=SECONDS)
        end = time.monotonic() + SECONDS
        while any(pathlib.Path(f"/proc/{task}").exists() and
                  " Z " not in pathlib.Path(f"/proc/{task}/stat").read_text()
                  for task in space.tasks):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_many_tasks(self):
        done = run(200, "/bin/true")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Jobs(unittest.TestCase):
    """Tasks by proxies, as launchers start them; MPI's are in mpi_test.py."""

    def test_what_is_the_proxys_is_the_tasks(self):
        with tempfile.TemporaryDirectory() as directory:
            script = ("cat; pwd; umask; ulimit -n; ulimit -s; echo to-error >&2; read line <&7;"
                      "echo $line; grep -E 'SigIgn|SigBlk|Cpus_allowed:' /proc/self/status;"
                      "cut -d' ' -f5 /proc/$$/stat; exit 9")
            def prepare():
                os.umask(0o27)
                resource.setrlimit(resource.RLIMIT_NOFILE, (500, 600))
                resource.setrlimit(resource.RLIMIT_STACK, (16 << 20, resource.RLIM_INFINITY))
                signal.signal(signal.SIGUSR2, signal.SIG_IGN)
                ignore_for_libc(33)
                signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
                os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
                os.setpgid(0, 0)
                pathlib.Path(directory, "status").write_text(
                    pathlib.Path("/proc/self/status").read_text())
                pathlib.Path(directory, "group").write_text(str(os.getpgrp()))

            read, write = os.pipe()
            os.write(write, b"from seven\n")
            os.close(write)
            done = subprocess.run(
                [HANARE, "space", "exec", "--verbose", "/bin/bash", "-c", f"exec 7<&{read}; " + script],
                input="from input\n", capture_output=True, text=True, timeout=SECONDS,
                cwd=directory, pass_fds=[read],
                preexec_fn=prepare)
            os.close(read)
            status = pathlib.Path(directory, "status").read_text()
            expected = [line for line in status.splitlines()
                        if re.match("SigIgn|SigBlk|Cpus_allowed:", line)]
            group = pathlib.Path(directory, "group").read_text()
            self.assertEqual(done.stdout.splitlines(),
                             ["from input", directory, "0027", "500", "16384", "from seven",
                              *expected, group], done.stderr)
            self.assertNotIn("0000000000000000", "".join(expected[:2]), "something is different")
            self.assertEqual(done.stderr, "to-error\n")
            self.assertEqual(done.returncode, 9)

    def test_ends_as_the_task_does(self):
        for script, status in (("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", -signal.SIGKILL)):
            done = subprocess.run([HANARE, "space", "exec", "/bin/sh", "-c", script],
                                  stdin=subprocess.DEVNULL, timeout=SECONDS)
            self.assertEqual(done.returncode, status)

    def started(self, script, space, **options):
        started = subprocess.Popen([HANARE, "space", "exec", "--space", space, "/bin/sh", "-c", script],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                   **options)
        self.addCleanup(started.stdout.close)
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        return started

    def test_one_space_for_a_job_and_signals(self):
        space = f"test-{os.getpid()}"
        script = "trap 'exit 4' TERM; echo $PPID $$; while :; do sleep 0.02; done"
        proxies = [self.started(script, space) for _ in range(3)]
        lines = [proxy.stdout.readline().split() for proxy in proxies]
        self.assertEqual(len({root for root, _ in lines}), 1, "one root for all")
        proxies[0].terminate()
        self.assertEqual(proxies[0].wait(timeout=SECONDS), 4)
        # The task of a proxy that is killed ends too.
        proxies[1].kill()
        end = time.monotonic() + SECONDS
        while pathlib.Path(f"/proc/{lines[1][1]}").exists():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)
        # And all with the root.
        os.kill(int(lines[2][0]), signal.SIGKILL)
        self.assertEqual(proxies[2].wait(timeout=SECONDS), 70)

    def test_root_ends_when_there_is_nothing_to_do(self):
        space = f"test-idle-{os.getpid()}"
        proxy = self.started("echo $PPID", space)
        root = proxy.stdout.readline().strip()
        proxy.wait(timeout=SECONDS)
        end = time.monotonic() + SECONDS
        while pathlib.Path(f"/proc/{root}").exists():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_mappings_do_not_grow_with_tasks_that_come_and_go(self):
        space = f"test-cycles-{os.getpid()}"
        keeper = self.started("echo $PPID; read forever < /dev/zero", space)
        root = int(keeper.stdout.readline())

        def mappings():
            return len(pathlib.Path(f"/proc/{root}/maps").read_text().splitlines())

        def descriptors():
            return len(os.listdir(f"/proc/{root}/fd"))

        def run_some(count):
            for _ in range(count):
                subprocess.run([HANARE, "space", "exec", "--space", space, "/bin/sh", "-c",
                                "kill -9 $$ & wait"], stdin=subprocess.DEVNULL, timeout=SECONDS,
                               stderr=subprocess.DEVNULL)
                subprocess.run([HANARE, "space", "exec", "--space", space, "/bin/true"],
                               stdin=subprocess.DEVNULL, timeout=SECONDS, check=True)

        run_some(5)
        before = mappings(), descriptors()
        run_some(100)
        self.assertEqual((mappings(), descriptors()), before)

    def test_more_descriptors_than_the_first_had(self):
        space = f"test-files-{os.getpid()}"
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, 2000))
        first = self.started("echo ready; read forever < /dev/zero", space, preexec_fn=few)
        first.stdout.readline()
        program = ("import os, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (2000, 2000));"
                   "os.dup2(1, 1500); os.execv({0!r}, [{0!r}, 'space', 'exec', '--verbose', '--space', {1!r},"
                   "'/bin/bash', '-c', 'echo through >&1500'])").format(HANARE, space)
        done = subprocess.run([sys.executable, "-c", program], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "through\n", ""))

    def test_a_task_that_is_stopped_keeps_nobody_waiting(self):
        space = f"test-stopped-{os.getpid()}"
        with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="hanare-space-") as file:
            file.truncate(1 << 20)
            stopped = subprocess.Popen(
                [HANARE, "space", "exec", "--space", space, PROGRAMS / "stopping", "map", file.name],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
            self.addCleanup(stopped.stdout.close)
            self.addCleanup(stopped.wait)
            self.addCleanup(stopped.kill)
            self.assertEqual(stopped.stdout.readline(), "ready\n")
            task = self.task_called("stopping")
            for _ in range(8):
                os.kill(task, signal.SIGSTOP)
                subprocess.run([HANARE, "space", "exec", "--space", space, "/bin/true"],
                               stdin=subprocess.DEVNULL, timeout=10, check=True)
                os.kill(task, signal.SIGCONT)
            self.assertIsNone(stopped.poll())

    def test_a_task_that_is_stopped_while_it_forks(self):
        space = f"test-stopped-fork-{os.getpid()}"
        stopped = subprocess.Popen(
            [HANARE, "space", "exec", "--space", space, PROGRAMS / "stopping", "fork"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.addCleanup(stopped.stdout.close)
        self.addCleanup(stopped.wait)
        self.addCleanup(stopped.kill)
        self.assertEqual(stopped.stdout.readline(), "ready\n")
        task = self.task_called("stopping")

        def fork_beside():
            return subprocess.run([HANARE, "space", "exec", "--space", space, "/bin/sh", "-c",
                                   "true | true && echo right"], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=30)

        for _ in range(3):
            os.kill(task, signal.SIGSTOP)
            done = fork_beside()
            os.kill(task, signal.SIGCONT)
            if done.stdout != "right\n":
                self.assertIn("fork", done.stderr)
            self.assertEqual(fork_beside().stdout, "right\n")

    def task_called(self, name):
        shown = subprocess.run([HANARE, "space", "ps", "--json"], capture_output=True, text=True,
                               check=True, timeout=SECONDS).stdout
        found = [task["process_id"] for space in json.loads(shown)["spaces"] for task in space["tasks"]
                 if task["program"] == name]
        self.assertEqual(len(found), 1, shown)
        return found[0]

    def test_signals_of_a_terminal_that_the_root_does_not_have(self):
        space = f"test-terminal-{os.getpid()}"
        keeper = self.started("echo ready; read forever < /dev/zero", space,
                              start_new_session=True)
        keeper.stdout.readline()
        ours, theirs = pty.openpty()
        self.addCleanup(os.close, ours)

        def prepare():
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

        command = [HANARE, "space", "exec", "--space", space, "/bin/sh", "-c",
                   "echo begun; exec sleep 100"]
        proxy = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs,
                                 preexec_fn=prepare)
        os.close(theirs)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.kill)
        self.assertIn(b"begun", os.read(ours, 100))
        os.write(ours, b"\x03")
        self.assertEqual(proxy.wait(timeout=SECONDS), -signal.SIGINT)

    def test_more_than_the_root_may_give_runs_as_itself(self):
        space = f"test-limits-{os.getpid()}"
        user = ordinary_user() if os.geteuid() == 0 else lambda: None

        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
            user()

        first = self.started("echo ready; read forever < /dev/zero", space, preexec_fn=few)
        first.stdout.readline()
        done = subprocess.run([HANARE, "space", "exec", "--verbose", "--space", space, "/bin/sh",
                               "-c", "ulimit -Hn"], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=SECONDS, preexec_fn=user)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        self.assertEqual((done.returncode, done.stdout), (0, f"{limit}\n"), done.stderr)
        self.assertIn("runs on its own", done.stderr)

    def test_too_few_mappings_for_any_task(self):
        for number in ("100", "many"):
            space = f"test-mappings-{os.getpid()}-{number}"
            done = subprocess.run([HANARE, "space", "exec", "--verbose", "--space", space,
                                   "/bin/echo", "right"],
                                  env=os.environ | {"HANARE_SPACE_MAPPINGS": number},
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=SECONDS)
            self.assertEqual((done.returncode, done.stdout), (0, "right\n"), done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn("no task at all", done.stderr)

    def test_who_says_nothing_keeps_nobody_waiting(self):
        space = f"test-silent-{os.getpid()}"
        keeper = self.started("echo $PPID; read forever < /dev/zero", space)
        root = keeper.stdout.readline().strip()
        # What it has received is closed by and by.
        files = [link for entry in os.scandir(f"/proc/{root}/fd")
                 if (link := self.link_of(entry.path))]
        address = next(words[7] for line in pathlib.Path("/proc/net/unix").read_text().splitlines()
                       if len(words := line.split()) > 7 and f"socket:[{words[6]}]" in files)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
            silent.connect("\0" + address[1:])
            begun = time.monotonic()
            subprocess.run([HANARE, "space", "exec", "--space", space, "/bin/true"],
                           stdin=subprocess.DEVNULL, timeout=SECONDS, check=True)
            self.assertLess(time.monotonic() - begun, 4.5)

    @staticmethod
    def link_of(path):
        try:
            return os.readlink(path)
        except FileNotFoundError:
            return ""

    def test_programs_with_a_sanitizer_run_as_themselves(self):
        compiler = shutil.which("cc")
        with tempfile.TemporaryDirectory() as directory:
            program = pathlib.Path(directory, "checked")
            built = compiler and subprocess.run(
                [compiler, "-fsanitize=address", "-o", program, "-x", "c", "-"],
                input="int main(void) { return 0; }\n", capture_output=True, text=True)
            if not built or built.returncode != 0:
                self.skipTest("no compiler with AddressSanitizer")
            done = subprocess.run([HANARE, "space", "exec", "--verbose", program],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=SECONDS)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("has a sanitizer", done.stderr)

    def test_names_of_any_length(self):
        done = subprocess.run([HANARE, "space", "exec", "--space", "x" * 300, "/bin/sh", "-c",
                               "readlink /proc/$PPID/exe"], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS)
        self.assertIn("hanare-space-root", done.stdout)

    def test_what_can_be_no_task_runs_as_itself(self):
        done = subprocess.run([HANARE, "space", "exec", "--verbose", PROGRAMS / "fixed"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SECONDS)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("runs on its own", done.stderr)
        self.assertIn("is not position-independent", done.stderr)


class Mistakes(unittest.TestCase):
    def assert_refused(self, done, text):
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(text, done.stderr)

    def test_files_that_are_cut_off(self):
        whole = (PROGRAMS / "libraries").read_bytes()
        with tempfile.TemporaryDirectory() as directory:
            program = pathlib.Path(directory, "program")
            for share in (0.001, 0.1, 0.3, 0.5):
                program.write_bytes(whole[:int(len(whole) * share)])
                program.chmod(0o755)
                done = run(2, program)
                # What is cut off behind what is loaded is none of the kernel's business either.
                if share < 0.3 or done.returncode != 0:
                    self.assert_refused(done, str(program))

    def test_each_in_a_line(self):
        self.assert_refused(run(0, "true"), "--tasks")
        self.assert_refused(run(2), "needs a program")
        self.assert_refused(run(2, "/no/such/program"), "/no/such/program")
        self.assert_refused(run(2, "/etc/passwd"), "/etc/passwd")
        self.assert_refused(run(2, PROGRAMS / "fixed"), "is not position-independent")


if __name__ == "__main__":
    unittest.main(argv=sys.argv)
