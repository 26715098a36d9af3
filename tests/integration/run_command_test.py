# SPDX-License-Identifier: Apache-2.0
"""`hanare run` and `hanare ps` as far as they do not need memory to be adopted.

What is preloaded is a stand-in (run_row.cpp) that at most fills a row of the shared page.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
CC = os.environ.get("HANARE_TEST_CC", "cc")
CXX = os.environ.get("HANARE_TEST_CXX", "c++")
HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20

needs_first_place = unittest.skipIf(
    support.SANITIZER, "a sanitizer insists on being the first that is preloaded into hanare")

# Tells of every signal that comes; SIGTERM ends it with status 5.  With handlers and pause() one
# that comes between the two would not be told.
LISTENER = """
import signal, sys
numbers = {signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT,
           signal.SIGWINCH, signal.SIGINT, signal.SIGQUIT}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
print("ready", flush=True)
number = None
while number != signal.SIGTERM:
    number = signal.sigwait(numbers)
    print(signal.Signals(number).name, flush=True)
sys.exit(5)
"""


class Base(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix=f"hanare-run-test-{os.getpid()}-",
                                                dir="/var/tmp")
        cls.addClassCleanup(cls.place.cleanup)
        os.chmod(cls.place.name, 0o755)
        cls.library = os.path.join(cls.place.name, "libstandin.so")
        subprocess.run([CXX, "-std=c++20", "-shared", "-fPIC", "-O1", "-I", HERE.parents[1] / "src",
                        HERE / "run_row.cpp", "-o", cls.library], check=True)
        cls.runtime = os.path.join(cls.place.name, "runtime")
        os.mkdir(cls.runtime, 0o700)

    def environment(self, **more):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("HANARE_", "SLURM_"))
                 and name not in ("TMPDIR", "XDG_CONFIG_HOME", "LD_PRELOAD")}
        return {**clean, "HOME": "/nonexistent", "HANARE_RUN_LIBRARY": self.library,
                "XDG_RUNTIME_DIR": self.runtime, **more}

    def run_hanare(self, *arguments, environment=None, program=HANARE, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        if "input" in more:
            del more["stdin"]
        return subprocess.run([program, *arguments], capture_output=True, text=True, check=False,
                              env=self.environment(**(environment or {})), timeout=60, **more)

    @contextlib.contextmanager
    def started(self, *arguments, environment=None, **more):
        """A `hanare run` with pipes, killed at the end if it is still there."""
        process = subprocess.Popen([HANARE, "run", *arguments], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment(**(environment or {})), **more)
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def assert_one_line(self, result, status, *words):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("hanare: error: "), result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def file(self, name, content=b"", mode=0o755):
        path = os.path.join(self.place.name, name)
        pathlib.Path(path).write_bytes(content)
        os.chmod(path, mode)
        self.addCleanup(os.unlink, path)
        return path


class CommandLine(Base):
    def test_what_follows_the_program_is_the_programs(self):
        for arguments in (["--local", "x"], ["--", "a"], ["--help"], ["-n", "--stats"], [""]):
            for separator in ([], ["--"]):
                result = self.run_hanare("run", *separator, "printf", "%s\n", *arguments)
                self.assertEqual(result.returncode, 0, result.stderr)
                expected = subprocess.run(["printf", "%s\n", *arguments], capture_output=True,
                                          text=True, check=True).stdout
                self.assertEqual((result.stdout, result.stderr), (expected, ""))

    def test_options_before_the_program(self):
        for options in (["--local", "64M"], ["--local=64M"], ["--local", "64M", "--block=4K"]):
            for separator in ([], ["--"]):
                result = self.run_hanare("run", *options, *separator, "sh", "-c",
                                         "echo $HANARE_LOCAL")
                self.assertEqual((result.stdout, result.stderr), (f"{64 * MIB}\n", ""))

    def test_separator_allows_names_that_look_like_options(self):
        self.file("-x", b"#!/bin/sh\necho ran\n")
        result = self.run_hanare("run", "--", "-x", environment={"PATH": self.place.name + ":/bin"})
        self.assertEqual((result.returncode, result.stdout), (0, "ran\n"))

    def test_bad_usage(self):
        cases = {
            (): ["needs a program"],
            ("--",): ["needs a program"],
            ("--local", "64M"): ["needs a program"],
            ("--blok", "1M", "true"): ["'--blok'", "did you mean '--block'?"],
            ("--unknown=x", "true"): ["'--unknown=x'"],
            ("-x", "true"): ["'-x'"],
            ("--local",): ["--local: its value is missing"],
            ("--local=", "true"): ["--local: its value is missing"],
            ("--stats", "a", "--stats", "b", "true"): ["--stats: is given more than once"],
            ("--local", "--stats", "x", "true"): ["--local: its value is missing"],
            ("--local", "64M", "--local", "64M", "true"): ["--local: is given more than once"],
            ("--progress=x", "true"): ["--progress: takes no value, not 'x'"],
            ("--local", "much", "true"): ["flag --local", "'much'", "allowed is"],
            ("--local", "1M", "true"): ["flag --local", "'1M'", "more than 1M"],
            ("--block", "3K", "true"): ["flag --block", "'3K'", "allowed is"],
            ("--store", "disk:/x", "true"): ["flag --store", "'disk:/x'", "allowed is"],
            ("--stats", "", "true"): ["--stats", "empty"],
        }
        for arguments, words in cases.items():
            with self.subTest(arguments=arguments):
                result = self.run_hanare("run", *arguments)
                self.assert_one_line(result, 2, *words)
                self.assertEqual(result.stdout, "")
        result = self.run_hanare("run", "true", environment={"HANARE_LOCAL": "much"})
        self.assert_one_line(result, 2, "HANARE_LOCAL", "'much'")

    def test_help(self):
        result = self.run_hanare("run", "--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for word in ("--local", "--stats", "--progress", "--verbose", "--quiet", "PROG [ARGS...]"):
            self.assertIn(word, result.stdout)

    def test_stores_that_cannot_be_used(self):
        marker = os.path.join(self.place.name, "ran")
        file = self.file("a-file")
        cases = {"file:/nonexistent": "No such file", f"file:{file}": "Not a directory",
                 "file:/proc": "/proc"}
        for spec, word in cases.items():
            with self.subTest(spec=spec):
                result = self.run_hanare("run", "--store", spec, "touch", marker)
                self.assert_one_line(result, 2, "flag --store", word)
        self.assert_one_line(self.run_hanare("run", "touch", marker,
                                             environment={"TMPDIR": "/nonexistent"}),
                             2, "No such file")
        result = self.run_hanare("run", "--store", "file:/var/tmp?size=4096T", "touch", marker)
        self.assert_one_line(result, 70, "4 PiB")
        self.assertFalse(os.path.exists(marker))

    def test_store_on_tmpfs(self):
        if not os.path.ismount("/dev/shm"):
            self.skipTest("/dev/shm is no mount here")
        result = self.run_hanare("run", "--store", "file:/dev/shm", "true")
        self.assert_one_line(result, 2, "/dev/shm is in memory (tmpfs)")
        result = self.run_hanare("run", "--store", "file:/dev/shm", "--allow-tmpfs", "true", "true")
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_store_that_is_full(self):
        fill = 'mount -t tmpfs -o size=1m none "$0" && head -c 900k /dev/zero >"$0/filler" && '
        with tempfile.TemporaryDirectory() as place:
            private = ["unshare", "--mount", "sh", "-c"]
            probe = subprocess.run([*private, fill + "true", place], capture_output=True,
                                   check=False)
            if probe.returncode != 0:
                self.skipTest(f"no mounts of one's own here: {probe.stderr}")
            command = f'{HANARE} run --allow-tmpfs true --store "file:$0" true'
            done = subprocess.run([*private, fill + command, place], capture_output=True,
                                  text=True, check=False, timeout=60, env=self.environment())
        self.assert_one_line(done, 70, "free in " + place)

    @support.needs_limit_of_files
    def test_limit_of_files(self):
        result = self.run_hanare("run", "true", preexec_fn=support.limit_files(0))
        self.assert_one_line(result, 70, "ulimit -f")

    def test_stats_file_that_cannot_be_written(self):
        marker = os.path.join(self.place.name, "ran")
        for path in ("/nonexistent/x", self.place.name):
            result = self.run_hanare("run", "--stats", path, "touch", marker)
            self.assert_one_line(result, 2, "--stats: cannot write " + path)
        self.assertFalse(os.path.exists(marker))

    def test_stats_file_is_gone_when_nothing_ran(self):
        path = os.path.join(self.place.name, "stats.json")
        self.assertEqual(self.run_hanare("run", "--stats", path, "nosuch").returncode, 127)
        self.assertFalse(os.path.exists(path))

    def test_library_that_cannot_be_used(self):
        for library in ("/nonexistent.so", self.file("with blank.so")):
            result = self.run_hanare("run", "true", environment={"HANARE_RUN_LIBRARY": library})
            self.assert_one_line(result, 70, library)


class Execution(Base):
    """As env(1) does it."""

    def assert_as_env(self, *command, **more):
        """The same status and output; the error lines are our own."""
        expected = subprocess.run(["env", *command], capture_output=True, text=True, check=False,
                                  env=self.environment(), timeout=60, **more)
        result = self.run_hanare("run", *command, **more)
        self.assertEqual((result.returncode, result.stdout), (expected.returncode, expected.stdout),
                         result.stderr)
        return result

    def test_exit_status(self):
        for status in (0, 1, 2, 70, 126, 127, 255):
            result = self.assert_as_env("sh", "-c", f"exit {status}")
            self.assertEqual(result.stderr, "")

    @unittest.skipIf(support.SANITIZER, "a sanitizer needs descriptors of its own")
    def test_what_we_lack_is_our_failure(self):
        result = self.run_hanare("run", "true", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_NOFILE, (4, 4)))
        self.assert_one_line(result, 70, "Too many open files")

    def test_not_found(self):
        self.assert_one_line(self.assert_as_env("nosuch-program"), 127, "'nosuch-program'")
        self.assert_one_line(self.assert_as_env("/nonexistent/x"), 127, "/nonexistent/x")
        self.assert_one_line(self.run_hanare("run", ""), 127, "''")
        orphan = self.file("orphan", b"#!/nonexistent/interpreter\n")
        self.assert_one_line(self.assert_as_env(orphan), 127, orphan, "/nonexistent/interpreter")

    def test_not_executable(self):
        closed = self.file("closed", b"#!/bin/sh\n", 0o644)
        self.assert_one_line(self.assert_as_env(closed), 126, closed, "Permission denied")
        self.assert_one_line(self.assert_as_env(self.place.name), 126, "is a directory")
        self.assert_one_line(self.assert_as_env(closed + "/x"), 126, "Not a directory")
        result = self.run_hanare("run", "closed", environment={"PATH": self.place.name})
        self.assert_one_line(result, 126, closed)
        binary = self.file("binary", b"\x01\x00\x02")
        self.assert_one_line(self.run_hanare("run", binary), 126, "Exec format error")

    def test_scripts(self):
        script = self.file("script", b"#!/bin/sh\necho \"$0\" \"$@\"\nexit 3\n")
        self.assertEqual(self.assert_as_env(script, "a", "b c").returncode, 3)
        bare = self.file("bare", b"echo \"$0\" \"$@\"\nexit 4\n")
        self.assertEqual(self.assert_as_env(bare, "a", "b c").returncode, 4)
        self.assertEqual(self.assert_as_env(self.file("empty")).returncode, 0)
        environment = {"PATH": self.place.name + ":" + os.environ["PATH"]}
        for name in ("script", "bare"):
            result = self.run_hanare("run", name, environment=environment)
            self.assertEqual(result.stdout, os.path.join(self.place.name, name) + "\n")

    def test_standard_streams(self):
        text = "a line\n" * 10000
        result = self.run_hanare("run", "cat", input=text)
        self.assertEqual((result.stdout, result.stderr), (text, ""))
        result = self.run_hanare("run", "sh", "-c", "echo out; echo err >&2")
        self.assertEqual((result.stdout, result.stderr), ("out\n", "err\n"))

    def test_other_descriptors(self):
        with tempfile.TemporaryFile() as file:
            file.write(b"inherited")
            file.flush()
            file.seek(0)
            number = fcntl.fcntl(file, fcntl.F_DUPFD, 50)
            try:
                listing = "import os; print(sorted(os.listdir('/proc/self/fd')))"
                result = self.assert_as_env(sys.executable, "-c", listing, pass_fds=[number])
                self.assertIn(f"'{number}'", result.stdout)
                reading = f"import os; print(os.read({number}, 100))"
                result = self.run_hanare("run", sys.executable, "-c", reading, pass_fds=[number])
                self.assertEqual(result.stdout, "b'inherited'\n")
            finally:
                os.close(number)

    def test_closed_standard_streams_stay_closed(self):
        path = self.file("descriptors")
        program = (f"import os; open({path!r}, 'w').write(' '.join("
                   "n for n in '012' if os.path.exists('/proc/self/fd/' + n)))")
        with open(path, "rb+"):
            done = self.run_hanare("run", sys.executable, "-S", "-c", program,
                                   preexec_fn=support.close_standard_streams)
        self.assertEqual(done.returncode, 0)
        # The file that the program opens gets the first number.
        self.assertEqual(pathlib.Path(path).read_text("ascii"), "0")

    def test_environment(self):
        result = self.run_hanare("run", "--store", "file:.", "--block", "64K", "env",
                                 environment={"HANARE_LOCAL": "64M", "OTHER": "kept"},
                                 cwd="/var/tmp")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        got = dict(line.split("=", 1) for line in result.stdout.splitlines())
        self.assertEqual(got["LD_PRELOAD"], self.library)
        self.assertEqual(got["HANARE_LOCAL"], str(64 * MIB))
        self.assertEqual(got["HANARE_BLOCK"], str(64 << 10))
        self.assertEqual(got["HANARE_STORE"], "file:/var/tmp")
        self.assertEqual(got["HANARE_CONFIG"], "")
        self.assertEqual(got["OTHER"], "kept")
        self.assertRegex(got["HANARE_RUN_PAGE"], r"^/proc/\d+/fd/\d+$")
        self.assertNotIn("HANARE_RUN_VERBOSE", got)
        del got["LD_PRELOAD"]
        self.assertEqual(self.run_hanare("info", environment=got).stderr, "")

    def test_verbose(self):
        result = self.run_hanare("run", "--verbose", "sh", "-c", "echo $HANARE_RUN_VERBOSE")
        self.assertEqual((result.returncode, result.stdout), (0, "1\n"))
        self.assertIn("hanare: local ", result.stderr)
        self.assertIn("hanare: no far memory was used\n", result.stderr)

    def test_quiet(self):
        row = {"HANARE_TEST_ROW": f"{MIB} {MIB} 0 0 0"}
        for flags in ((), ("--verbose",)):
            with self.subTest(flags=flags):
                loud = self.run_hanare("run", *flags, "true", environment=row)
                quiet = self.run_hanare("run", "--quiet", *flags, "true", environment=row)
                self.assertRegex(loud.stderr, r"hanare: peak far memory 1 MiB.*\n$")
                self.assertNotIn("peak far memory", quiet.stderr)
                self.assertEqual((quiet.returncode, quiet.stderr == ""), (0, flags == ()))

    @needs_first_place
    def test_other_preloaded_libraries_are_kept(self):
        other = shutil.copy(self.library, self.file("libother.so"))
        result = self.run_hanare("run", "sh", "-c", "echo $LD_PRELOAD",
                                 environment={"LD_PRELOAD": other})
        self.assertEqual((result.stdout, result.stderr), (f"{self.library}:{other}\n", ""))

    @needs_first_place
    def test_below_another(self):
        result = self.run_hanare("run", "--local", "64M", HANARE, "run", "sh", "-c",
                                 "echo $LD_PRELOAD $HANARE_LOCAL")
        self.assertEqual((result.stdout, result.stderr), (f"{self.library} {64 * MIB}\n", ""))


class PlainMemory(Base):
    """What the library cannot get into runs without it."""

    def assert_noted(self, result, path, words):
        self.assertEqual(result.stderr.splitlines()[0],
                         f"hanare: note: {path} {words} and runs in plain memory")

    def test_static(self):
        source = self.file("static.c", b"#include <stdio.h>\nint main(void) { puts(\"ran\"); }\n")
        path = os.path.join(self.place.name, "static")
        made = subprocess.run([CC, "-static", source, "-o", path], capture_output=True,
                              check=False)
        if made.returncode != 0:
            self.skipTest(f"no static programs can be made here: {made.stderr}")
        self.addCleanup(os.unlink, path)
        result = self.run_hanare("run", path)
        self.assertEqual((result.returncode, result.stdout), (0, "ran\n"))
        self.assert_noted(result, path, "is statically linked")
        script = self.file("by-static", f"#!{path}\n".encode())
        result = self.run_hanare("run", script)
        self.assertEqual((result.returncode, result.stdout), (0, "ran\n"))
        self.assert_noted(result, f"{path}, which runs {script},", "is statically linked")

    def elf(self, name, bits, machine):
        elf_class = 1 if bits == 32 else 2
        head = b"\x7fELF" + bytes([elf_class, 1, 1]) + bytes(9) + struct.pack("<HHI", 2, machine, 1)
        return self.file(name, head + bytes(200))

    def test_32_bit(self):
        path = self.elf("old", 32, 3)
        result = self.run_hanare("run", path)
        self.assert_noted(result, path, "is a 32-bit program")
        self.assertEqual(result.returncode, 126)
        self.assertIn(f"hanare: error: cannot run {path}: Exec format error", result.stderr)

    def test_other_machine(self):
        if os.path.exists("/proc/sys/fs/binfmt_misc/qemu-aarch64"):
            self.skipTest("this machine emulates the other one")
        path = self.elf("other", 64, 183)
        self.assert_one_line(self.run_hanare("run", path), 126, path, "it is made for AArch64")

    def privileged_copy(self, owner, mode):
        path = os.path.join(self.place.name, "privileged")
        shutil.copy(shutil.which("env"), path)
        self.addCleanup(os.unlink, path)
        os.chown(path, *owner)
        os.chmod(path, mode)
        return path

    def test_setuid_and_setgid(self):
        if os.geteuid() != 0:
            self.skipTest("files of other users can be made by root only")
        if os.statvfs(self.place.name).f_flag & os.ST_NOSUID:
            self.skipTest("mounted nosuid")
        for owner, mode, words in (((support.NOBODY, 0), 0o4755, "is setuid"),
                                   ((0, support.NOBODY), 0o2755, "is setgid")):
            path = self.privileged_copy(owner, mode)
            result = self.run_hanare("run", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assert_noted(result, path, words)
            self.assertNotIn("LD_PRELOAD", result.stdout)
            self.doCleanups()
        path = self.privileged_copy((0, 0), 0o4755)  # no privileges that we have not
        self.assertEqual(self.run_hanare("run", path).stderr, "")

    def test_capabilities(self):
        if os.geteuid() != 0 or not shutil.which("setcap"):
            self.skipTest("needs root and setcap")
        with support.reachable_copy(HANARE) as (program, library):
            path = os.path.join(library, "capable")
            shutil.copy(shutil.which("env"), path)
            subprocess.run(["setcap", "cap_net_raw+ep", path], check=True)
            result = self.run_hanare("run", path, program=program, **support.AS_NOBODY,
                                     environment={"LD_LIBRARY_PATH": library})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assert_noted(result, path, "has file capabilities")

    def test_ordinary_user(self):
        if os.geteuid() != 0:
            self.skipTest("the other tests run as an ordinary user already")
        with support.reachable_copy(HANARE) as (program, library):
            row = {"LD_LIBRARY_PATH": library, "HANARE_TEST_ROW": f"{MIB} {MIB} 0 0 0"}
            result = self.run_hanare("run", "true", program=program, environment=row,
                                     **support.AS_NOBODY)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("hanare: peak far memory 1 MiB", result.stderr)


class Signals(Base):
    def test_death_by_signal(self):
        for number in (signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM, signal.SIGINT,
                       signal.SIGPIPE, signal.SIGABRT):
            result = self.run_hanare("run", sys.executable, "-c",
                                     f"import os, signal; signal.signal({number}, 0) "
                                     f"if {number} != 9 else 0; os.kill(os.getpid(), {number})",
                                     cwd=self.place.name)
            self.assertEqual(result.returncode, -number, result.stderr)
            self.assertEqual(result.stderr, "")
            self.assertEqual([name for name in os.listdir(self.place.name) if "core" in name], [])

    def test_signals_are_passed_on(self):
        with self.started(sys.executable, "-c", LISTENER) as process:
            self.assertEqual(process.stdout.readline(), "ready\n")
            for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGCONT,
                           signal.SIGWINCH, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
                process.send_signal(number)
                self.assertEqual(process.stdout.readline(), number.name + "\n")
            self.assertEqual(process.wait(60), 5)

    def test_timers_outlive_exec(self):
        begin = ("import os, signal, sys; signal.setitimer(signal.ITIMER_REAL, 0.2); "
                 "os.execv(sys.argv[1], sys.argv[1:])")
        result = self.run_hanare("-c", begin, HANARE, "run", "sleep", "60", program=sys.executable)
        self.assertEqual(result.returncode, -signal.SIGALRM, result.stderr)

    def test_kill_ends_the_program(self):
        with self.started("sh", "-c", "echo $$; exec cat") as process:
            program = int(process.stdout.readline())
            process.kill()
            process.wait(60)
            self.assertTrue(support.eventually(lambda: not support.is_running(program)))

    def test_masks_and_dispositions(self):
        def prepare(ignored, blocked):
            def prepared():
                for number in ignored:
                    signal.signal(number, signal.SIG_IGN)
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            return prepared
        several = {signal.SIGCHLD, signal.SIGXFSZ, signal.SIGPIPE, signal.SIGHUP, signal.SIGINT}
        cases = [(set(), set()), (several, set()),
                 (set(), {signal.SIGUSR1, signal.SIGTERM, signal.SIGCHLD})]
        for ignored, blocked in cases:
            command = ["grep", "^Sig[BI]", "/proc/self/status"]
            direct = subprocess.run(command, capture_output=True, text=True, check=True,
                                    preexec_fn=prepare(ignored, blocked))
            result = self.run_hanare("run", *command, preexec_fn=prepare(ignored, blocked))
            self.assertEqual((result.returncode, result.stdout, result.stderr),
                             (0, direct.stdout, ""))

    def test_broken_standard_error_does_not_cost_the_status(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run([HANARE, "run", "sh", "-c", "exit 6"], stderr=writer, check=False,
                              env=self.environment(HANARE_TEST_ROW=f"{MIB} {MIB} 0 0 0"),
                              timeout=60)
        os.close(writer)
        self.assertEqual(done.returncode, 6)

    @contextlib.contextmanager
    def on_terminal(self, *arguments, environment=None):
        """A `hanare run` that leads a session with a terminal; gives it and our end of that."""
        ours, theirs = pty.openpty()

        def take_terminal():
            os.setsid()
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
        process = subprocess.Popen([HANARE, "run", *arguments], stdin=theirs, stdout=theirs,
                                   stderr=theirs, preexec_fn=take_terminal,
                                   env=self.environment(**(environment or {})))
        os.close(theirs)
        try:
            with open(ours, "rb+", buffering=0) as terminal:
                yield process, terminal
        finally:
            process.kill()
            process.wait()

    def read_until(self, terminal, word):
        text = b""
        while word not in text:
            text += terminal.read(4096)
        return text

    def test_terminal_keys_reach_the_program_once(self):
        with self.on_terminal(sys.executable, "-c", LISTENER) as (process, terminal):
            self.read_until(terminal, b"ready")
            terminal.write(b"\x03")
            self.read_until(terminal, b"SIGINT\r\n")
            terminal.write(b"\x1c")
            text = self.read_until(terminal, b"SIGQUIT\r\n")
            process.send_signal(signal.SIGTERM)
            text += self.read_until(terminal, b"SIGTERM\r\n")
            self.assertEqual(process.wait(60), 5)
            self.assertEqual((text.count(b"SIGINT"), text.count(b"SIGQUIT")), (0, 1))

    def test_hangup_reaches_the_program(self):
        program = "import signal, sys; print('ready', flush=True); signal.pause()"
        with self.on_terminal(sys.executable, "-c", program) as (process, terminal):
            self.read_until(terminal, b"ready")
            terminal.close()
            self.assertEqual(process.wait(60), -signal.SIGHUP)

    def test_progress_on_a_terminal(self):
        row = {"HANARE_TEST_ROW": f"{3 * MIB} {MIB} {2 * MIB} {MIB} 1500000000"}
        with self.on_terminal("--local", "64M", "--progress", "cat",
                              environment=row) as (process, terminal):
            text = self.read_until(terminal, b"waited 1.5 s")
            self.assertRegex(text, rb"\r\x1b\[K\x1b\[\?7l[0-9.]+ s: far 3 MiB, local 1 MiB of 64 MiB, "
                                   rb"in 2 MiB, out 1 MiB, waited 1.5 s")
            terminal.write(b"\x04")
            self.assertIn(b"\r\x1b[Khanare: peak far memory 3 MiB",
                          self.read_until(terminal, b"moved"))
            self.assertEqual(process.wait(60), 0)


class Figures(Base):
    ROW = f"{300 * MIB} {60 * MIB} {800 * MIB} {600 * MIB} 12400000000"

    def test_last_line(self):
        result = self.run_hanare("run", "--local", "64M", "true",
                                 environment={"HANARE_TEST_ROW": self.ROW})
        self.assertRegex(result.stderr, r"^hanare: peak far memory 300 MiB, local 64 MiB; waited "
                         r"12\.4 s for 800 MiB in and 600 MiB out; with --local 3\d\dM nothing "
                         r"would have been moved\n$")
        large = f"{3 << 30} {60 * MIB} 1 0 0"
        result = self.run_hanare("run", "true", environment={"HANARE_TEST_ROW": large})
        self.assertRegex(result.stderr, r"; with --local 3\.[1-9]G nothing would have been moved")
        result = self.run_hanare("run", "--local", "64M", "false",
                                 environment={"HANARE_TEST_ROW": f"{MIB} {MIB} 0 0 0"})
        self.assertEqual((result.returncode, result.stderr),
                         (1, "hanare: peak far memory 1 MiB, local 64 MiB; nothing had to be "
                             "moved\n"))

    def stats_of(self, *command, environment=None):
        path = os.path.join(self.place.name, "stats.json")
        result = self.run_hanare("run", "--local", "64M", "--stats", path, *command,
                                 environment=environment)
        with open(path, encoding="utf-8") as file:
            return result, json.load(file)

    def test_stats(self):
        result, stats = self.stats_of("sh", "-c", "exit 9",
                                      environment={"HANARE_TEST_ROW": self.ROW})
        self.assertEqual(result.returncode, 9)
        self.assertEqual(stats["command"], ["sh", "-c", "exit 9"])
        self.assertEqual((stats["exit_status"], stats["signal"]), (9, None))
        self.assertEqual(stats["options"]["local"], "64M")
        (process,) = stats["processes"]
        self.assertEqual((process["command"], process["has_ended"]), ("stand-in", True))
        self.assertEqual(process["process_id"], stats["program_id"])
        figures = re.findall(r"XX\((\w+),", (HERE.parents[1] / "src/telemetry/run_page.hpp")
                             .read_text("utf-8"))
        self.assertIn("left_sites", figures)
        for name in figures:
            if name != "name":
                self.assertIn(name, process)
                self.assertIn(name, stats["totals"])
        totals = stats["totals"]
        self.assertEqual(totals["processes"], 1)
        self.assertEqual(totals["budget_bytes"], 64 * MIB)
        self.assertEqual((totals["far_bytes"], totals["far_bytes_peak"]), (0, 300 * MIB))
        self.assertEqual((totals["read_bytes"], totals["written_bytes"], totals["wait_ns"]),
                         (800 * MIB, 600 * MIB, 12400000000))
        self.assertGreater(totals["sufficient_local_bytes"], 300 * MIB)
        self.assertEqual(set(stats["samples"][-1]), {"elapsed_s", "far_bytes", "local_bytes",
                                                     "read_bytes", "written_bytes", "wait_ns",
                                                     "faults"})
        self.assertEqual(stats["samples"][-1]["read_bytes"], 800 * MIB)

    def test_stats_of_death_by_signal(self):
        result, stats = self.stats_of("sh", "-c", "kill -KILL $$")
        self.assertEqual(result.returncode, -signal.SIGKILL)
        self.assertEqual((stats["exit_status"], stats["signal"]), (None, signal.SIGKILL))
        self.assertEqual((stats["processes"], stats["totals"]["processes"]), ([], 0))

    def test_stats_with_names_that_are_not_text(self):
        result, stats = self.stats_of("true", b"\xff\xfe")
        self.assertEqual((result.returncode, len(stats["command"])), (0, 2))

    def test_stats_that_cannot_be_written_in_the_end(self):
        result = self.run_hanare("run", "--stats", "/dev/full", "sh", "-c", "exit 3")
        self.assertEqual(result.returncode, 3)
        self.assertEqual(result.stderr,
                         "hanare: error: --stats: writing /dev/full: No space left on device\n")

    def test_several_processes(self):
        # The shell and each program that it starts have a row; those that end give it up.
        program = "cat /dev/null; cat /dev/null; exit 0"
        result, stats = self.stats_of("sh", "-c", program,
                                      environment={"HANARE_TEST_ROW": self.ROW})
        self.assertEqual(len(stats["processes"]), 3)
        self.assertEqual(stats["totals"]["read_bytes"], 3 * 800 * MIB)
        self.assertIn(", 3 processes; waited 37.2 s for ", result.stderr)

    def test_many_processes(self):
        program = "for i in $(seq 298); do cat /dev/null; done; exit 0"  # seq is one, and the shell
        _, stats = self.stats_of("sh", "-c", program, environment={"HANARE_TEST_ROW": self.ROW})
        self.assertGreaterEqual(len(stats["processes"]), 300)
        self.assertEqual(stats["totals"]["read_bytes"], len(stats["processes"]) * 800 * MIB)


class Control(Base):
    def ps(self, **environment):
        result = self.run_hanare("ps", "--json", environment=environment)
        self.assert_quiet(result)
        return {run["run_id"]: run for run in json.loads(result.stdout)["runs"]}

    def assert_quiet(self, result):
        """Others' processes, at nameless addresses, may be busy and not answer."""
        of_ours = [line for line in result.stderr.splitlines() if not line.startswith("hanare: @")]
        self.assertEqual((result.returncode, of_ours), (0, []))

    def address(self, process):
        return os.path.join(self.runtime, "hanare", f"run-{process.pid}.sock")

    def wait_for(self, process):
        self.assertTrue(support.eventually(lambda: os.path.exists(self.address(process))))

    def ask(self, process, request):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(60)
            client.connect(self.address(process))
            client.sendall(request)
            answer = b""
            while part := client.recv(4096):
                answer += part
        return answer

    def test_nothing_runs(self):
        result = self.run_hanare("ps")
        self.assert_quiet(result)
        self.assertEqual(result.stdout.splitlines()[0].split(),
                         ["pid", "program", "far", "local/budget", "in", "out", "waiting"])

    def test_what_runs(self):
        row = {"HANARE_TEST_ROW": f"{300 * MIB} {60 * MIB} {800 * MIB} {600 * MIB} 12400000000"}
        with self.started("--local", "64M", "cat", environment=row) as process:
            self.wait_for(process)
            directory = os.path.dirname(self.address(process))
            self.assertEqual(stat.S_IMODE(os.stat(directory).st_mode), 0o700)
            run = self.ps()[process.pid]
            self.assertEqual(run["command"], ["cat"])
            self.assertEqual(run["totals"]["far_bytes"], 300 * MIB)
            self.assertEqual(run["exit_status"], None)
            self.assertNotIn("samples", run)
            # The stand-in does not answer: it is told of.
            (line,) = [line for line in self.run_hanare("ps").stdout.splitlines()
                       if line.split()[0] == str(run["program_id"])]
            for word in ("stand-in", "300 MiB", "60 MiB/64 MiB", "800 MiB", "600 MiB", "12.4 s"):
                self.assertIn(word, line)
            process.stdin.close()
            self.assertEqual(process.wait(60), 0)
            self.assertFalse(os.path.exists(self.address(process)))
        self.assertNotIn(process.pid, self.ps())

    def test_who_ends_gives_up_its_part(self):
        row = {"HANARE_TEST_ROW": f"{MIB} {MIB} 0 0 0"}
        with self.started("sh", "-c", "cat; echo done; read line", environment=row) as process:
            self.wait_for(process)
            self.assertTrue(support.eventually(
                lambda: self.ps()[process.pid]["totals"]["sharers"] == 2))
            (child,) = [row["process_id"] for row in self.ps()[process.pid]["processes"]
                        if row["process_id"] != self.ps()[process.pid]["program_id"]]
            os.kill(child, signal.SIGKILL)
            self.assertEqual(process.stdout.readline(), "done\n")
            self.assertTrue(support.eventually(
                lambda: self.ps()[process.pid]["totals"]["sharers"] == 1))
            totals = self.ps()[process.pid]["totals"]
            self.assertEqual((totals["processes"], totals["far_bytes"]), (2, MIB))

    def test_without_runtime_directory(self):
        environment = {"XDG_RUNTIME_DIR": ""}
        with self.started("cat", environment=environment) as process:
            self.assertTrue(support.eventually(lambda: process.pid in self.ps(**environment)))
            self.assertFalse(os.path.exists(self.address(process)))

    def test_directory_of_others_is_not_used(self):
        opened = os.path.join(self.place.name, "open")
        os.mkdir(opened, 0o755)
        self.addCleanup(os.rmdir, opened)
        with self.started("cat", environment={"XDG_RUNTIME_DIR": opened}) as process:
            self.assertTrue(support.eventually(lambda: process.pid in self.ps()))
            self.assertEqual(os.listdir(opened), [])

    def test_socket_is_removed_after_signals(self):
        with self.started("cat") as process:
            self.wait_for(process)
            process.terminate()
            self.assertEqual(process.wait(60), -signal.SIGTERM)
            self.assertFalse(os.path.exists(self.address(process)))

    def test_left_over_socket_is_removed(self):
        with self.started("cat") as process:
            self.wait_for(process)
            process.kill()
            process.wait(60)
            self.assertTrue(os.path.exists(self.address(process)))
            self.assertNotIn(process.pid, self.ps())
            self.assertFalse(os.path.exists(self.address(process)))

    def test_requests(self):
        with self.started("cat") as process:
            self.wait_for(process)
            answer = self.ask(process, b"hanare/1 statistics\n")
            self.assertEqual(json.loads(answer.split(b"\n", 1)[1])["command"], ["cat"])
            for request in (b"hanare/1 stat\n", b"hanare/1 \n", b"hanare/1 statistics more\n",
                            b"hanare/1 \xff\0\n"):
                answer = self.ask(process, request)
                self.assertTrue(answer.startswith(b"hanare/1 error "), answer)
                self.assertIn(b"unknown request ", answer)

    def test_clients_that_stall(self):
        with self.started("cat") as process, contextlib.ExitStack() as clients:
            self.wait_for(process)
            first = None
            for _ in range(12):  # more than are served at a time
                client = clients.enter_context(socket.socket(socket.AF_UNIX))
                client.settimeout(60)
                client.connect(self.address(process))
                first = client if first is None else first
            process.stdin.write("through\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), "through\n")
            first.settimeout(60)
            self.assertEqual(first.recv(1), b"")  # dropped for the sake of others
            self.assertIn(process.pid, self.ps())
            process.stdin.close()
            self.assertEqual(process.wait(60), 0)

    def test_other_users_are_refused(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to be another user")
        environment = {"XDG_RUNTIME_DIR": ""}
        ask = ("import socket, sys; c = socket.socket(socket.AF_UNIX); c.connect(sys.argv[1]);\n"
               "try:\n c.sendall(b'hanare/1 statistics\\n'); print(c.recv(100))\n"
               "except OSError: print(b'')")
        with self.started("cat", environment=environment) as process:
            self.assertTrue(support.eventually(lambda: process.pid in self.ps(**environment)))
            address = f"\0hanare/{os.geteuid()}/run-{process.pid}"
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(address)  # this user may
            done = subprocess.run([shutil.which("python3", path="/usr/bin:/bin") or sys.executable,
                                   "-c", ask.replace("sys.argv[1]", repr(address))],
                                  capture_output=True, text=True, check=False, timeout=60,
                                  **support.AS_NOBODY)
            if "denied" in done.stderr:
                self.skipTest(f"no python for other users: {done.stderr}")
            self.assertEqual(done.stdout, "b''\n", done.stderr)


if __name__ == "__main__":
    unittest.main()
