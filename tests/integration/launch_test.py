# SPDX-License-Identifier: Apache-2.0
"""`hanare launch` as a user runs it, and jobs that mpirun and mpiexec have started.

JOB_PROBE is a program that joins its job and prints what it found (job_probe.cpp).
"""

import contextlib
import ctypes
import fcntl
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
PROBE = os.environ["JOB_PROBE"]
SECONDS = 120

# Ends with 0 when it is told to, and says that it was.
POLITE = "trap 'echo told; exit 0' TERM INT HUP; echo ready; while :; do sleep 0.05; done"
RUNNING = "echo ready; while :; do sleep 0.05; done"
# Has to be killed.
DEAF = "trap '' TERM INT HUP; echo ready; while :; do sleep 0.05; done"


def die_with_parent(and_then=None):
    """For preexec_fn: nothing outlives this program, however it ends."""
    def set_signal():
        kill_on_parent_death = 1
        ctypes.CDLL(None).prctl(kill_on_parent_death, signal.SIGKILL)
        if and_then:
            and_then()
    return set_signal


def processes_with(text):
    found = []
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if text.encode() in (directory / "cmdline").read_bytes():
                if support.is_running(int(directory.name)):
                    found.append(int(directory.name))
    return found


class Base(support.InOwnPlace):
    def setUp(self):
        super().setUp()
        for name in list(self.environment):
            if name.startswith(("PMI", "SLURM_", "OMPI_", "PRTE_")):
                del self.environment[name]

    def marker(self):
        """An argument by which the processes of a test are found; none outlives it."""
        mark = f"hanare-launch-test-{os.getpid()}-{time.monotonic_ns()}"

        def end_all():
            for pid in processes_with(mark):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.addCleanup(end_all)
        return mark

    def launch(self, *arguments, environment=None, program=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        if "input" in options:
            del options["stdin"]
        options["preexec_fn"] = die_with_parent(options.get("preexec_fn"))
        return subprocess.run([program or HANARE, "launch", *arguments], capture_output=True,
                              text=True, check=False, timeout=SECONDS,
                              env={**self.environment, **(environment or {})}, **options)

    def assert_probes(self, result, launcher, size, host="127.0.0.1"):
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        lines = [line.split() for line in result.stdout.splitlines()]
        self.assertEqual(len(lines), size, result.stdout + result.stderr)
        self.assertEqual({int(line[1]) for line in lines}, set(range(size)))
        for line in lines:
            self.assertEqual(line[0], launcher)
            self.assertEqual(int(line[2]), size)
            if host:
                self.assertEqual(line[3], host)
            self.assertEqual(line[5:], [f"card-{rank}" for rank in range(size)])
        secrets = {line[4] for line in lines}
        self.assertEqual(len(secrets), 1)
        self.assertNotIn("none", secrets)

    @contextlib.contextmanager
    def started(self, *arguments, ready=1, **options):
        """A running launch, all tasks of which have printed a line."""
        options.setdefault("stdin", subprocess.DEVNULL)
        options["preexec_fn"] = die_with_parent(options.get("preexec_fn"))
        process = self.start("launch", *arguments, **options)
        try:
            for _ in range(ready):
                line = process.stdout.readline()
                self.assertNotEqual(line, "", "the launch ended")
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=SECONDS)


class Launch(Base):
    def test_tasks_find_each_other(self):
        for size in (1, 2, 5):
            self.assert_probes(self.launch("-n", str(size), PROBE), "hanare", size)

    def test_many_tasks(self):
        self.assert_probes(self.launch("-n", "40", "--", PROBE), "hanare", 40)

    def test_ordinary_user(self):
        if os.geteuid() != 0:
            self.skipTest("becoming another user needs root")
        with support.reachable_copy(HANARE) as (program, place):
            probe = shutil.copy(PROBE, place)
            result = self.launch("-n", "3", probe, program=program,
                                 environment={"LD_LIBRARY_PATH": place}, **support.AS_NOBODY)
            self.assert_probes(result, "hanare", 3)

    def test_environment_of_a_task(self):
        result = self.launch("-n", "2", "sh", "-c",
                             "echo $HANARE_RANK $HANARE_SIZE $HANARE_HOST $HANARE_RENDEZVOUS "
                             "${HANARE_SECRET_FILE-none}",
                             environment={"HANARE_RANK": "77", "HANARE_SECRET_FILE": "/x"})
        self.assertEqual(result.returncode, 0, result.stderr)
        for rank, line in enumerate(sorted(result.stdout.splitlines())):
            self.assertRegex(line, rf"^{rank} 2 127\.0\.0\.1 127\.0\.0\.1:\d+ none$")
        self.assertEqual(result.stderr, "")

    def test_secret_is_in_no_argument_and_no_variable(self):
        script = ("s=$(od -An -v -tx1 <&$HANARE_SECRET_FD | tr -d ' \\n'); "
                  "echo $s; grep -c $s /proc/self/environ /proc/$PPID/environ "
                  "/proc/$PPID/cmdline; :")
        result = self.launch("-n", "2", "sh", "-c", script)
        secrets = re.findall(r"^[0-9a-f]{64}$", result.stdout, re.M)
        self.assertEqual(len(secrets), 2, result.stdout + result.stderr)
        self.assertEqual(len(set(secrets)), 1)
        self.assertEqual(re.findall(r":(\d+)$", result.stdout, re.M), ["0"] * 6)

    def test_programs_of_a_task_one_after_the_other(self):
        result = self.launch("-n", "2", "sh", "-c", '"$0" && exec "$0"', PROBE)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [line.split() for line in result.stdout.splitlines()]
        self.assertEqual(sorted(int(line[1]) for line in lines), [0, 0, 1, 1], result.stdout)
        secrets = {line[4] for line in lines}
        self.assertEqual(len(secrets), 1)
        self.assertNotIn("none", secrets)

    def test_arguments_of_the_program_are_its_own(self):
        result = self.launch("-n", "1", "printf", "%s,", "-n", "2", "--hosts", "--", "a b")
        self.assertEqual(result.stdout, "-n,2,--hosts,--,a b,")

    def test_standard_input_is_for_rank_0(self):
        result = self.launch("-n", "3", "sh", "-c", "echo $HANARE_RANK: $(cat)", input="text")
        self.assertEqual(sorted(result.stdout.splitlines()), ["0: text", "1:", "2:"])

    def test_status_of_the_task_that_fails(self):
        start = time.monotonic()
        result = self.launch("-n", "3", "sh", "-c",
                             "test $HANARE_RANK = 1 && exit 7; exec sleep 100")
        self.assertEqual(result.returncode, 7)
        self.assertEqual(result.stderr, "hanare: error: rank 1: exit status 7\n")
        self.assertLess(time.monotonic() - start, 60)

    def test_task_that_fails_while_the_others_wait_for_it(self):
        result = self.launch("-n", "3", PROBE, "fail", "2", "9")
        self.assertEqual(result.returncode, 9, result.stderr)
        self.assertIn("hanare: error: rank 2: exit status 9\n", result.stderr)

    def test_task_that_never_publishes(self):
        result = self.launch("-n", "2", PROBE, "lost", "1")
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("task 1 has ended", result.stderr)

    def test_task_that_is_killed(self):
        mark = self.marker()
        result = self.launch("-n", "3", "sh", "-c",
                             "test $HANARE_RANK = 2 && kill -9 $$; exec sleep 100", mark)
        self.assertEqual(result.returncode, 128 + 9)
        self.assertEqual(result.stderr, "hanare: error: rank 2: killed by signal 9 (Killed)\n")
        self.assertTrue(support.eventually(lambda: not processes_with(mark)))

    def test_others_that_do_not_end_are_killed(self):
        mark = self.marker()
        result = self.launch("-n", "2", "sh", "-c",
                             f"test $HANARE_RANK = 1 && exit 4; {DEAF}", mark)
        self.assertEqual(result.returncode, 4)
        self.assertEqual(result.stderr, "hanare: error: rank 1: exit status 4\n")
        self.assertTrue(support.eventually(lambda: not processes_with(mark)))

    def test_signals_go_to_all_tasks(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.started("-n", "3", "sh", "-c", POLITE, ready=3) as process:
                process.send_signal(number)
                out, error = process.communicate(timeout=SECONDS)
            self.assertEqual((process.returncode, out, error), (0, "told\n" * 3, ""))

    def test_status_of_tasks_that_end_by_the_signal(self):
        with self.started("-n", "2", "sh", "-c", "echo ready; exec sleep 100", ready=2) as process:
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, error), (128 + signal.SIGTERM, ""))

    def test_tasks_that_do_not_listen_are_killed(self):
        mark = self.marker()
        with self.started("-n", "2", "sh", "-c", DEAF, mark, ready=2) as process:
            process.send_signal(signal.SIGINT)
            _, error = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        self.assertRegex(error, r"^hanare: error: rank \d: did not end in time and was killed\n$")
        self.assertTrue(support.eventually(lambda: not processes_with(mark)))

    def test_interrupt_of_a_terminal_comes_once(self):
        script = ("trap 'echo told; left=10' INT; echo ready; "
                  "while [ \"$left\" != 0 ]; do sleep 0.05; left=${left:+$((left - 1))}; done")
        ours, theirs = pty.openpty()

        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        with os.fdopen(ours, "wb", buffering=0) as terminal:
            with self.started("-n", "2", "sh", "-c", script, ready=2, stdin=theirs,
                              preexec_fn=own_terminal) as process:
                os.close(theirs)
                terminal.write(b"\x03")
                out, error = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, out, error), (0, "told\n" * 2, ""))

    def test_ignored_signals_stay_ignored(self):
        def ignore_hangups():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with self.started("-n", "1", "sh", "-c", "echo ready; read x; exit 5",
                          stdin=subprocess.PIPE, preexec_fn=ignore_hangups) as process:
            process.send_signal(signal.SIGHUP)
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(timeout=1)
            out, error = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, out), (5, ""), error)

    def test_nothing_outlives_a_killed_launcher(self):
        mark = self.marker()
        with self.started("-n", "4", "sh", "-c", RUNNING, mark, ready=4) as process:
            # Four tasks, and hanare, at least: a shell also looks so just before it runs a command.
            self.assertGreaterEqual(len(processes_with(mark)), 5)
            process.kill()
            process.wait(timeout=SECONDS)
            self.assertTrue(support.eventually(lambda: not processes_with(mark)))

    def test_programs_that_cannot_start(self):
        result = self.launch("-n", "2", "/nowhere/at/all")
        self.assertEqual(result.returncode, 127)
        self.assertRegex(result.stderr, r"^hanare: error: .*/nowhere/at/all.*\n$")
        result = self.launch("-n", "2", "/etc/passwd")
        self.assertEqual(result.returncode, 126)
        self.assertEqual(result.stderr.count("\n"), 1)

    def assert_bad_usage(self, arguments, *texts):
        result = self.launch(*arguments)
        self.assertEqual(result.returncode, 2, (arguments, result.stdout, result.stderr))
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for text in texts:
            self.assertIn(text, result.stderr)

    def test_bad_usage(self):
        self.assert_bad_usage([], "needs a program")
        self.assert_bad_usage(["true"], "-n N")
        self.assert_bad_usage(["-n", "2"], "needs a program")
        for count in ("0", "-1", "x", "65537", "1.5"):
            self.assert_bad_usage(["-n", count, "true"], "-n")
        self.assert_bad_usage(["-n", "2", "--ssh", "x", "true"], "--ssh needs --hosts")
        self.assert_bad_usage(["-n", "2", "--hosts", "/nowhere", "true"], "--hosts", "/nowhere")
        self.assert_bad_usage(["--tsks", "2", "true"], "did you mean '--tasks'?")

    def test_help(self):
        result = self.launch("--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("Rank 0 has our standard input", result.stdout)
        everything = subprocess.run([HANARE, "--help"], capture_output=True, text=True, check=True)
        self.assertIn("launch", everything.stdout)
        self.assertNotIn("launch-task", everything.stdout)


class Hosts(Base):
    """Other machines are this one; what stands in for ssh runs the command in a shell here."""

    def setUp(self):
        super().setUp()
        self.files = tempfile.mkdtemp(prefix=f"hanare-hosts-{os.getpid()}-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.files)
        os.chmod(self.files, 0o755)
        self.calls = os.path.join(self.files, "calls")
        self.ssh = self.write("ssh", "#!/bin/sh\n"
                              f'printf "%s\\n" "$*" >>{self.calls}\n'
                              'test "$1" = down && { echo "ssh: no route" >&2; exit 255; }\n'
                              'shift\ncd /\nexec sh -c "$*"\n', executable=True)

    def write(self, name, text, executable=False):
        path = os.path.join(self.files, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755 if executable else 0o644)
        return path

    def on_hosts(self, hosts, *arguments, listen="127.0.0.1", **options):
        file = self.write("hosts", hosts)
        flags = ["--hosts", file, "--ssh", self.ssh]
        if listen:
            flags += ["--listen", listen]
        return self.launch(*flags, *arguments, **options)

    def test_tasks_find_each_other(self):
        self.assert_probes(self.on_hosts("a 2\nb\n# c\nd 3\n", PROBE), "hanare", 6)
        with open(self.calls, encoding="utf-8") as file:
            calls = file.read().splitlines()
        self.assertEqual(sorted(call.split()[0] for call in calls), ["a", "b", "d"])
        # Nothing that is as long as a secret.
        for call in calls:
            self.assertIsNone(re.search(r"[0-9a-f]{64}", call))

    def test_sealed_off_loopback(self):
        result = self.on_hosts("a 2\nb 2\n", PROBE, listen=None)
        if "no network leads out of this machine" in result.stderr:
            self.skipTest(result.stderr)
        self.assert_probes(result, "hanare", 4, host=None)
        self.assertNotIn(" 127.", result.stdout)

    def test_fewer_tasks_than_slots(self):
        self.assert_probes(self.on_hosts("a 2\nb 2\n", "-n", "3", PROBE), "hanare", 3)
        result = self.on_hosts("a 2\nb 2\n", "-n", "5", PROBE)
        self.assertEqual(result.returncode, 2)
        self.assertIn("4 slots", result.stderr)

    def test_words_directory_and_options_arrive(self):
        odd = "it's \"$HOME\"; `true` \\ *"
        result = self.on_hosts("a\n", "sh", "-c", 'echo "$1"; pwd; echo $HANARE_LOG_LEVEL', "x", odd,
                               environment={"HANARE_LOG_LEVEL": "info"}, cwd=self.files)
        self.assertEqual(result.stdout.splitlines(), [odd, self.files, "info"], result.stderr)

    def test_standard_input_is_for_rank_0(self):
        text = "line\n" * 100_000
        result = self.on_hosts("a\nb\n", "sh", "-c", "echo $HANARE_RANK $(wc -c)", input=text)
        self.assertEqual(sorted(result.stdout.splitlines()), [f"0 {len(text)}", "1 0"],
                         result.stderr)

    def test_addresses_that_nobody_can_reach(self):
        for address in ("0.0.0.0", "::"):
            result = self.on_hosts("a\n", "true", listen=address)
            self.assertEqual(result.returncode, 2, result.stderr)
            self.assertRegex(result.stderr, rf"^hanare: error: --listen: '{address}' .*\n$")

    def test_standard_input_waits_for_all_hosts(self):
        """Until then it may be a password that another host's ssh asks for."""
        self.write("ssh", "#!/bin/sh\n"
                   'if test "$1" = b; then\n'
                   f'  while ! test -e {self.files}/go; do sleep 0.02; done\n'
                   'fi\nshift\nexec sh -c "$*"\n', executable=True)
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)
        os.write(theirs, b"password\n")
        with self.started_on_hosts("a\nb\n", "sh", "-c", "echo ready; cat",
                                   stdin=ours) as process:  # one line: host b is not there yet
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(timeout=1)
            self.assertEqual(os.read(ours, 100), b"password\n")
            os.write(theirs, b"text\n")
            os.close(theirs)
            self.write("go", "")
            out, error = process.communicate(timeout=SECONDS)
        os.close(ours)
        self.assertEqual((process.returncode, sorted(out.split())), (0, ["ready", "text"]), error)

    def test_background_of_a_terminal(self):
        """Reading there would stop the launcher."""
        helper = ("import subprocess, sys\n"
                  "process = subprocess.Popen(sys.argv[1:], process_group=0)\n"
                  "try:\n"
                  f"    sys.exit(process.wait(timeout={SECONDS // 2}))\n"
                  "finally:\n"
                  "    process.kill()\n")
        file = self.write("hosts", "a\n")

        def own_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        ours, theirs = pty.openpty()
        with os.fdopen(ours, "wb", buffering=0) as terminal:
            terminal.write(b"a line for somebody else\n")
            process = self.start("-c", helper, HANARE, "launch", "--hosts", file, "--ssh", self.ssh,
                                 "--listen", "127.0.0.1", "sh", "-c", "sleep 1; echo over",
                                 program=sys.executable, stdin=theirs,
                                 preexec_fn=die_with_parent(own_terminal))
            os.close(theirs)
            out, error = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, out), (0, "over\n"), error)

    def test_ssh_that_ends_before_its_agent(self):
        """The tasks behind it are told to end all the same."""
        self.write("ssh", "#!/bin/sh\n"
                   f'exec 3<&0; shift; sh -c "$*" <&3 & echo $$ >>{self.files}/pids; exec 3<&-\n'
                   "wait\n", executable=True)
        mark = self.marker()
        with self.started_on_hosts("a\n", "sh", "-c", POLITE, mark) as process:
            with open(os.path.join(self.files, "pids"), encoding="utf-8") as file:
                os.kill(int(file.read()), signal.SIGKILL)
            out, error = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, out), (128 + signal.SIGKILL, "told\n"), error)
        self.assertRegex(error, r"^hanare: error: host a: .*\n$")
        self.assertTrue(support.eventually(lambda: not processes_with(mark)))

    def test_status_of_the_task_that_fails(self):
        result = self.on_hosts("a\nb 2\n", "sh", "-c",
                               "test $HANARE_RANK = 2 && exit 7; exec sleep 100")
        self.assertEqual(result.returncode, 7)
        self.assertEqual(result.stderr, "hanare: error: rank 2 on host b: exit status 7\n")

    def test_task_that_is_killed(self):
        result = self.on_hosts("a\nb\n", "sh", "-c",
                               "test $HANARE_RANK = 1 && kill -9 $$; exec sleep 100")
        self.assertEqual(result.returncode, 128 + 9)
        self.assertEqual(result.stderr,
                         "hanare: error: rank 1 on host b: killed by signal 9 (Killed)\n")

    def test_host_that_cannot_be_reached(self):
        result = self.on_hosts("a\ndown\n", "sleep", "100")
        self.assertEqual(result.returncode, 255)
        self.assertIn("ssh: no route\n", result.stderr)
        self.assertIn("hanare: error: host down: ", result.stderr)
        self.assertIn("exit status 255, before any task began", result.stderr)

    def test_programs_that_cannot_start(self):
        result = self.on_hosts("a\nb\n", "/nowhere/at/all")
        self.assertEqual(result.returncode, 127, result.stderr)
        self.assertIn("/nowhere/at/all", result.stderr)

    def test_mistakes_in_the_file(self):
        result = self.on_hosts("a\nb x\n", "true")
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"^hanare: error: \S+hosts:2, slots: 'x' .*\n$")
        result = self.on_hosts("", "true")
        self.assertEqual(result.returncode, 2)

    def started_on_hosts(self, hosts, *arguments, **options):
        file = self.write("hosts", hosts)
        return self.started("--hosts", file, "--ssh", self.ssh, "--listen", "127.0.0.1", *arguments,
                            **options)

    def test_signals_go_to_all_tasks(self):
        with self.started_on_hosts("a 2\nb\n", "sh", "-c", POLITE, ready=3) as process:
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=SECONDS)
        self.assertEqual((process.returncode, out, error), (0, "told\n" * 3, ""))

    def test_tasks_that_do_not_listen_are_killed(self):
        mark = self.marker()
        with self.started_on_hosts("a\nb\n", "sh", "-c", DEAF, mark, ready=2) as process:
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL, error)
        self.assertIn("did not end in time and was killed", error)
        self.assertTrue(support.eventually(lambda: not processes_with(mark)))

    def test_nothing_outlives_a_killed_launcher(self):
        mark = self.marker()
        with self.started_on_hosts("a 2\nb\n", "sh", "-c",
                                   RUNNING, mark, ready=3) as process:
            process.kill()
            process.wait(timeout=SECONDS)
            self.assertTrue(support.eventually(lambda: not processes_with(mark)))

    def test_agent_that_is_killed(self):
        mark = self.marker()
        with self.started_on_hosts("a\nb\n", "sh", "-c",
                                   RUNNING, mark, ready=2) as process:
            agents = [pid for pid, line in support.children_of(process.pid)]
            self.assertEqual(len(agents), 2)
            os.kill(agents[1], signal.SIGKILL)
            _, error = process.communicate(timeout=SECONDS)
        self.assertNotEqual(process.returncode, 0)
        self.assertRegex(error, r"^hanare: error: host b: .*\n$")
        self.assertTrue(support.eventually(lambda: not processes_with(mark)))


class OtherLaunchers(Base):
    def setUp(self):
        super().setUp()
        # What libpmix leaves behind is not ours.
        options = self.environment.get("ASAN_OPTIONS", "")
        self.environment["ASAN_OPTIONS"] = options + ":detect_leaks=0"

    def run_under(self, launcher, *arguments, **options):
        return subprocess.run([launcher, *arguments], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=SECONDS,
                              preexec_fn=die_with_parent(),
                              env={**self.environment, **options.pop("environment", {})}, **options)

    def users(self):
        """How to run something as this user, and as an ordinary one; and with which probe."""
        yield PROBE, {}
        if os.geteuid() == 0:
            with support.reachable_copy(HANARE) as (_, place):
                yield shutil.copy(PROBE, place), support.AS_NOBODY

    def test_mpirun_of_open_mpi(self):
        mpirun = shutil.which("mpirun.openmpi")
        if not mpirun:
            self.skipTest("Open MPI's mpirun.openmpi is not installed")
        for probe, user in self.users():
            flags = ["--oversubscribe", "-n", "3", "--mca", "plm", "isolated"]
            if os.geteuid() == 0 and not user:
                flags.append("--allow-run-as-root")
            self.assert_probes(self.run_under(mpirun, *flags, probe, **user), "pmix", 3)

    def test_mpiexec_of_mpich(self):
        mpiexec = shutil.which("mpiexec.mpich")
        if not mpiexec:
            self.skipTest("MPICH's mpiexec.mpich is not installed")
        for probe, user in self.users():
            self.assert_probes(self.run_under(mpiexec, "-n", "3", probe, **user), "pmi1", 3)

    def test_secret_of_the_environment_comes_first(self):
        mpiexec = shutil.which("mpiexec.mpich")
        if not mpiexec:
            self.skipTest("MPICH's mpiexec.mpich is not installed")
        place = tempfile.mkdtemp(prefix=f"hanare-secret-{os.getpid()}-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, place)
        path = os.path.join(place, "secret")
        with open(path, "wb") as file:
            file.write(bytes(range(32)))
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
        result = self.run_under(mpiexec, "-n", "2", PROBE, environment={"HANARE_SECRET_FILE": path})
        self.assert_probes(result, "pmi1", 2)
        # CRC-32C of the bytes from 0 to 31 (RFC 3720, appendix B.4).
        self.assertEqual(result.stdout.split()[4], str(0x46dd794e))


SLURM_CONFIGURATION = """
ClusterName=hanare
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmdSpoolDir={place}/spool
StateSaveLocation={place}/state
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
SelectType=select/linear
NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@unittest.skipUnless(all(map(shutil.which, ("srun", "slurmctld", "slurmd"))),
                     "Slurm (slurmctld, slurmd, slurm-client) is not installed")
@unittest.skipUnless(os.geteuid() == 0, "Slurm's daemons need root")
class Slurm(Base):
    """A cluster of one node, this one, for as long as a test takes."""

    def setUp(self):
        super().setUp()
        self.place = tempfile.mkdtemp(prefix=f"hanare-slurm-{os.getpid()}-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.place)
        for name in ("spool", "state"):
            os.mkdir(os.path.join(self.place, name))
        host = socket.gethostname().split(".")[0]
        configuration = os.path.join(self.place, "slurm.conf")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(SLURM_CONFIGURATION.format(host=host, place=self.place,
                                                  ports=free_ports(2)))
        self.environment["SLURM_CONF"] = configuration
        self.secret = os.path.join(self.place, "secret")
        with open(self.secret, "wb") as file:
            file.write(os.urandom(32))
        os.chmod(self.secret, 0o600)
        self.start_daemon("slurmctld", "-D")
        self.start_daemon("slurmd", "-D", "-N", host)
        if not support.eventually(self.is_ready, 30):
            with open(os.path.join(self.place, "slurmctld.log"), encoding="utf-8") as log:
                self.fail("Slurm does not get ready: " + log.read()[-500:])

    def start_daemon(self, *command):
        daemon = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  preexec_fn=die_with_parent())

        def end():
            daemon.terminate()
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        self.addCleanup(end)

    def is_ready(self):
        return "idle" in subprocess.run(["sinfo", "-h"], env=self.environment, capture_output=True,
                                        text=True, check=False, timeout=SECONDS).stdout

    def srun(self, *arguments, **environment):
        return subprocess.run(["srun", "--overcommit", *arguments], capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, timeout=SECONDS, cwd="/",
                              env={**self.environment, **environment})

    def test_rendezvous_of_the_first_task(self):
        result = self.srun("-n", "3", PROBE, HANARE_SECRET_FILE=self.secret)
        self.assert_probes(result, "slurm", 3)

    def test_pmi1_of_the_plug_in(self):
        result = self.srun("--mpi=pmi2", "-n", "3", PROBE)
        self.assert_probes(result, "pmi1", 3)

    def test_without_a_secret(self):
        result = self.srun("-n", "2", PROBE)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("HANARE_SECRET_FILE has to name a file", result.stderr)


if __name__ == "__main__":
    unittest.main()
