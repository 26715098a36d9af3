# SPDX-License-Identifier: Apache-2.0
#
# The harness with tiny programs and a stand-in for `hanare`: that it finds what differs, fails or
# hangs, computes what it prints, and leaves nothing behind.
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import cgroup  # noqa: E402
import inputs  # noqa: E402
import measure  # noqa: E402
import programs  # noqa: E402
import report  # noqa: E402
import runner  # noqa: E402

MIB = 1 << 20
ENVIRONMENT = {"PATH": os.environ["PATH"]}

# A stand-in for `hanare run`: writes statistics, then runs the program.
GOOD_HANARE = """#!/bin/sh
[ "$1 $2" = "run --help" ] && { echo "--stats FILE"; exit 0; }
while [ "$1" != -- ]; do
    [ "$1" = --stats ] && echo '{"run": {"far_bytes_peak": 1048576}}' >"$2"
    shift
done
shift
"""


def has_cgroups():
    try:
        with cgroup.MemoryCgroup() as group:
            group.limit(64 * MIB, swap=False)
        return True
    except (cgroup.Unavailable, OSError):
        return False


needs_cgroups = unittest.skipUnless(has_cgroups(), "no memory cgroups for this user")


def own_cgroups():
    return [path for path in pathlib.Path(cgroup.parent_directory()[1]).glob(cgroup.PREFIX + "*")
            if path.name.startswith(f"{cgroup.PREFIX}{os.getpid()}-")]


def is_running(pid):
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except FileNotFoundError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] not in "ZX"


def eventually(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def tiny(*commands, **more):
    """A program of the table, with one size."""
    more.setdefault("full", {"number": 7})
    return programs.Program("tiny", "", tuple(programs.step(command) for command in commands),
                            **more)


class WithDirectory(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(
            prefix=f"hanare-programs-test-{os.getpid()}-", dir="/var/tmp"))
        self.addCleanup(inputs.discard, self.directory)

    def write_program(self, name, text):
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o755)
        return str(path)


class Runs(WithDirectory):
    def run_steps(self, *steps, timeout_s=60, group=None):
        steps = [runner.Step(tuple(step)) for step in steps]
        return runner.Run(steps, self.directory, ENVIRONMENT, timeout_s, group).run()

    def groups(self):
        """Contexts: with a cgroup where there are some, and without."""
        return [cgroup.MemoryCgroup, contextlib.nullcontext] if has_cgroups() else [
            contextlib.nullcontext]

    def test_output_and_peak(self):
        code = "x = bytearray(b'1') * (96 << 20); print(len(x)); import time; time.sleep(0.2)"
        for context in self.groups():
            with self.subTest(context=context), context() as group:
                outcome = self.run_steps([sys.executable, "-c", code], ["echo", "two"], group=group)
                self.assertEqual(outcome.failure, "")
                self.assertGreater(outcome.peak_bytes, 96 * MIB)
                self.assertLess(outcome.peak_bytes, 130 * MIB)
                self.assertEqual((self.directory / "stdout.0").read_text(), f"{96 << 20}\n")
                self.assertEqual((self.directory / "stdout.1").read_text(), "two\n")

    def test_failures_say_why(self):
        for step, failure in ((["sh", "-c", "echo because >&2; exit 3"],
                               "sh: exit status 3, because"),
                              (["sh", "-c", "kill -SEGV $$"], "sh: killed by SIGSEGV"),
                              (["/nonexistent"], "cannot be started: [Errno 2] No such file or "
                                                 "directory: '/nonexistent'")):
            (self.directory / "stderr").unlink(missing_ok=True)
            self.assertEqual(self.run_steps(step, ["touch", "later"]).failure, failure)
            self.assertFalse((self.directory / "later").exists())

    def test_who_takes_too_long_is_ended_with_all_his_children(self):
        for context in self.groups():
            with self.subTest(context=context), context() as group:
                script = "echo $$; sleep 1000 & echo $!; wait"
                outcome = self.run_steps(["sh", "-c", script], timeout_s=0.5, group=group)
                self.assertEqual(outcome.failure, "not done after 0 s")
                for pid in (self.directory / "stdout.0").read_text().split():
                    self.assertTrue(eventually(lambda pid=pid: not is_running(pid)), pid)

    def test_server_and_client(self):
        server = ("sh", "-c", "while [ ! -e end ]; do sleep 0.01; done")
        for client, failure in (("echo result; touch end", ""),
                                ("exit 1", "client: exit status 1")):
            (self.directory / "end").unlink(missing_ok=True)
            step = runner.Step(server, client=("sh", "-c", client))
            outcome = runner.Run([step], self.directory, ENVIRONMENT, 60).run()
            self.assertEqual(outcome.failure, failure)
        step = runner.Step(("sh", "-c", "exit 4"), client=("sleep", "1000"))
        outcome = runner.Run([step], self.directory, ENVIRONMENT, 60).run()
        self.assertEqual(outcome.failure, "server: exit status 4")

    @needs_cgroups
    def test_want_of_memory(self):
        hungry = f"{sys.executable} -c \"x = bytearray(b'1') * (300 << 20)\""
        # The second waits for something that does not come after its child was killed.
        for script in (f"exec {hungry}", f"{hungry}; sleep 1000"):
            with self.subTest(script=script), cgroup.MemoryCgroup() as group:
                group.limit(64 * MIB, swap=False)
                outcome = self.run_steps(["sh", "-c", script], group=group)
                self.assertIn("killed for want of memory", outcome.failure)
                self.assertGreater(outcome.oom_kills, 0)


class Undoing(WithDirectory):
    def test_places_of_cgroups(self):
        first = ("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
                 "35 31 0:32 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n"
                 "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n")
        self.assertEqual(cgroup.memory_place(first, "4:memory:/a/b\n1:cpu:/\n0::/"),
                         (1, "/sys/fs/cgroup/memory/a/b"))
        second = "31 23 0:28 /x /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
        self.assertEqual(cgroup.memory_place(second, "0::/x/y\n"), (2, "/sys/fs/cgroup/y"))
        self.assertEqual(cgroup.memory_place(second, "0::/x\n"), (2, "/sys/fs/cgroup"))
        self.assertIsNone(cgroup.memory_place("", "0::/x\n"))

    @needs_cgroups
    def test_cgroup_and_its_processes_end_after_an_exception(self):
        with self.assertRaises(KeyError):
            with cgroup.MemoryCgroup() as group:
                process = subprocess.Popen(["sleep", "1000"], preexec_fn=group.enter)
                self.assertEqual(group.processes(), [process.pid])
                raise KeyError
        self.assertEqual(process.wait(), -signal.SIGKILL)
        self.assertEqual(own_cgroups(), [])

    @needs_cgroups
    def test_what_a_killed_harness_has_left_is_removed(self):
        code = (f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
                "import cgroup, os, subprocess\n"
                "with cgroup.MemoryCgroup() as group:\n"
                "    child = subprocess.Popen(['sleep', '1000'], preexec_fn=group.enter,\n"
                "        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
                "    print(group.path, child.pid, flush=True)\n"
                "    os.kill(os.getpid(), 9)\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              timeout=60)
        path, pid = done.stdout.split()
        self.assertTrue(is_running(pid))
        self.assertGreaterEqual(cgroup.remove_stale_cgroups(cgroup.parent_directory()), 1)
        self.assertFalse(os.path.exists(path))
        self.assertTrue(eventually(lambda: not is_running(pid)))

    def test_a_swap_file_that_cannot_be_turned_on_is_removed(self):
        with self.assertRaises(cgroup.Unavailable):
            with cgroup.SwapFile(self.directory, 4096):  # nothing but the header
                self.fail("one page is no swap space")
        self.assertEqual(os.listdir(self.directory), [])

    def with_swap(self):
        """A process with a cgroup, a program in it and a swap file that is on; None without swap.
        """
        code = (f"import sys; sys.path.insert(0, {str(HERE)!r})\n"
                "import cgroup, interrupts, runner\n"
                "with interrupts.interruptible(), cgroup.MemoryCgroup() as group, \\\n"
                f"        cgroup.SwapFile({str(self.directory)!r}, 16 << 20):\n"
                "    print(group.path, flush=True)\n"
                "    steps = [runner.Step(('sh', '-c', 'echo $$; exec sleep 1000'))]\n"
                f"    runner.Run(steps, {str(self.directory)!r}, {{}}, 1000, group).run()\n")
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        group = process.stdout.readline().strip()
        output = self.directory / "stdout.0"
        if not group or not eventually(lambda: output.exists() and output.read_text()):
            process.kill()
            self.skipTest(f"no swap here: {process.communicate()[1]}")
        return process, group, output.read_text().strip()

    def swap_lines(self):
        lines = pathlib.Path("/proc/swaps").read_text(errors="replace").splitlines()
        return [line for line in lines if str(self.directory) in line]

    @needs_cgroups
    def test_signals_undo_everything(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(signal=number.name):
                process, group, pid = self.with_swap()
                self.assertEqual(len(self.swap_lines()), 1)
                process.send_signal(number)
                process.communicate(timeout=60)
                self.assertEqual(process.returncode, -number)
                self.assertFalse(os.path.exists(group))
                self.assertFalse(is_running(pid))
                self.assertEqual(self.swap_lines(), [])
                self.assertEqual(list(self.directory.glob("*.swap")), [])
                (self.directory / "stdout.0").unlink()

    @needs_cgroups
    def test_swap_of_a_killed_harness_is_turned_off(self):
        process, _, pid = self.with_swap()
        process.kill()
        process.communicate()
        self.assertEqual(len(self.swap_lines()), 1)
        self.assertEqual(cgroup.remove_stale_swap_files(self.directory), 1)
        self.assertEqual(self.swap_lines(), [])
        cgroup.remove_stale_cgroups(cgroup.parent_directory())
        self.assertTrue(eventually(lambda: not is_running(pid)))


class Measurements(WithDirectory):
    def measure(self, program, systems=("plain", "hanare"), hanare="", **more):
        path = self.write_program("hanare", GOOD_HANARE + (hanare or 'exec "$@"\n'))
        settings = measure.Settings(self.directory / "work", systems, hanare=path,
                                    has_cgroups=has_cgroups(), python=sys.executable, **more)
        row = measure.Measurement(program, settings, lambda _: None).measure()
        self.assertEqual([str(path) for path in (self.directory / "work").rglob("run-*/*")], [])
        if has_cgroups():
            self.assertEqual(own_cgroups(), [])
        return row

    def test_identical(self):
        row = self.measure(tiny("sh -c 'echo {number} >out.a; echo done'", files=("out.*",)))
        self.assertEqual(row.result(), "identical")
        self.assertFalse(row.failed())
        self.assertEqual(row.far_bytes_peak, MIB)
        self.assertEqual(len(row.times["plain"]), 2)
        self.assertEqual(len(row.times["hanare"]), 1)

    def test_what_differs_is_found(self):
        for hanare, result in (
                ("echo more; exec \"$@\"\n", "hanare DIFFERENT: stdout.0"),
                ("\"$@\"; echo more >>out.a\n", "hanare DIFFERENT: out.a"),
                ("\"$@\"; touch out.b\n", "hanare DIFFERENT: out.b"),
                ("\"$@\"; rm out.a\n", "hanare DIFFERENT: out.*, out.a"),
                ("echo reason >&2; exit 9\n", "hanare failed: hanare: exit status 9, reason")):
            with self.subTest(hanare=hanare):
                row = self.measure(tiny("sh -c 'echo 1 >out.a'", files=("out.*",)), hanare=hanare)
                self.assertEqual(row.result(), result)
                self.assertTrue(row.failed())

    def test_a_program_that_differs_by_itself(self):
        row = self.measure(tiny("sh -c 'echo $$'"))
        self.assertEqual(row.result(), "plain DIFFERENT: stdout.0")
        self.assertNotIn("hanare", row.results)
        row = self.measure(tiny("sh -c 'echo $$; echo 1 >out'", output=False, files=("out",)))
        self.assertEqual(row.result(), "identical")

    def test_results_that_are_missing_are_not_identical(self):
        def digest(directory):
            return str((directory / "digest").stat().st_size)

        self.assertIn("there is no x.*", self.measure(tiny("true", files=("x.*",))).result())
        self.assertIn("there is no d", self.measure(tiny("true", digests={"d": digest})).result())
        row = self.measure(tiny("sh -c 'echo $$ | head -c 1 >digest'", digests={"d": digest}))
        self.assertEqual(row.result(), "identical")

    @needs_cgroups
    def test_limited(self):
        code = "x = bytearray(b'1') * (200 << 20); import time; time.sleep(0.1)"
        for size, expected in ((200, "killed: killed for want of memory"), (20, "fits")):
            program = tiny(f"{sys.executable} -c \"{code.replace('200', str(size))}\"")
            row = self.measure(program, systems=("plain", "limited"))
            self.assertEqual(row.results["limited"], expected)
            self.assertFalse(row.failed())
            self.assertEqual(row.limit_bytes, row.peak_bytes // 4 + 64 * MIB)

    def test_rounds(self):
        row = self.measure(tiny("true"), rounds=3)
        self.assertEqual([len(row.times[system]) for system in ("plain", "hanare")], [3, 3])

    def test_statistics_of_any_shape(self):
        path = self.directory / "stats"
        for text, expected in (('{"far_bytes_peak": 5, "rows": [{"far_bytes_peak": 3}]}', 5),
                               ('{"totals": {"far_bytes_peak": 6}, "rows": [{"far_bytes_peak": '
                                '2}]}', 6), ("{}", None), ("", None)):
            path.write_text(text)
            self.assertEqual(measure.far_bytes_peak(path), expected)


class Inputs(WithDirectory):
    def test_made_once_and_the_same_each_time(self):
        first = inputs.provide(inputs.text, {"text_bytes": 5000}, self.directory)
        again = inputs.provide(inputs.text, {"text_bytes": 5000}, self.directory)
        other = inputs.provide(inputs.text, {"text_bytes": 5001}, self.directory)
        elsewhere = inputs.provide(inputs.text, {"text_bytes": 5000}, self.directory / "b")
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        self.assertEqual(first.read_bytes(), elsewhere.read_bytes())
        self.assertEqual(other.stat().st_size, 5001)

    def test_one_that_fails_leaves_nothing(self):
        def broken(path):
            path.write_text("half")
            raise ValueError

        with self.assertRaises(ValueError):
            inputs.provide(broken, {}, self.directory)
        self.assertEqual(os.listdir(self.directory), [])

    def test_every_program_names_what_it_uses(self):
        for program in programs.PROGRAMS:
            for sizes in filter(None, (program.full, program.quick)):
                self.assertEqual(sizes.keys(), program.full.keys(), program.name)
                names = dict.fromkeys((*sizes, *program.makers, "python", "python3", "workloads"))
                self.assertTrue(program.made_steps(dict.fromkeys(names, "x")), program.name)


class Reports(unittest.TestCase):
    def row(self, name="a", **times):
        row = report.Row(name, peak_bytes=100 * MIB, limit_bytes=89 * MIB, far_bytes_peak=50 * MIB)
        row.times = times
        row.results = dict.fromkeys(times, report.IDENTICAL)
        return row

    def test_judgement(self):
        for ratios, judged in (([2, 2], "met"), ([4, 1], "met"), ([9, 0.79], "floor"),
                               ([1, 1], "floor"), ([0.9, 1.1], "missed"), ([], "not measured")):
            self.assertEqual(report.judge(ratios), judged, ratios)
        self.assertAlmostEqual(report.geometric_mean([1, 4]), 2)

    def test_ratios_are_of_medians(self):
        row = self.row(plain=[1, 2, 9], hanare=[4, 4, 100], swap=[12])
        self.assertEqual(row.ratio("hanare", "plain"), 2)
        self.assertEqual(row.ratio("swap", "hanare"), 3)
        self.assertEqual(row.far_share(), 0.5)
        self.assertIsNone(self.row(plain=[1]).ratio("swap", "plain"))

    def test_swap_that_was_given_up_is_a_bound_and_no_fault(self):
        row = self.row(plain=[1], hanare=[2], swap=[25])
        row.at_least.add("swap")
        row.results["swap"] = "failed: not done after 25 s"
        self.assertFalse(row.failed())
        self.assertEqual(row.result(), "identical")
        self.assertIn(">12.50", report.row_line(row))
        row.results["hanare"] = "failed: not done after 25 s"
        self.assertTrue(row.failed())

    def test_summary_counts(self):
        bad = self.row("b", plain=[1], hanare=[1], swap=[1])
        bad.results["hanare"] = "DIFFERENT: x"
        rows = [self.row(plain=[1], hanare=[1], swap=[4]), bad, report.Row("c", skipped="no c")]
        lines = report.summary(rows)
        self.assertIn("1 identical, 1 not identical, 1 skipped", lines)
        self.assertTrue(any("geometric mean 2.00 of 2 programs, least 1.00" in text and
                            text.endswith(": met)") for text in lines), lines)

    def test_records(self):
        row = self.row(plain=[1, 3], hanare=[4])
        row.results["limited"] = "fits"
        records = {(r["system"], r["metric"]): r for r in report.records([row])}
        self.assertEqual(records["plain", "time"]["median"], 2)
        self.assertEqual(records["hanare", "slowdown"]["median"], 2)
        self.assertEqual(records["limited", "killed"]["median"], 0)
        for record in records.values():
            self.assertEqual(set(record), {"bench", "case", "system", "metric", "unit", "median",
                                           "min", "max", "runs", "params"})


class CommandLine(WithDirectory):
    def run_harness(self, *arguments):
        return subprocess.run([sys.executable, "-B", HERE / "run_programs.py", *arguments],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def test_list(self):
        done = self.run_harness("--list")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreaterEqual(len(done.stdout.splitlines()), 25)

    def test_bad_values_are_named(self):
        for arguments, named in ((["--only", "sort,nonsense"], "'nonsense' is unknown"),
                                 (["--systems", "zram"], "'zram' is unknown"),
                                 (["--rounds", "0"], "--rounds"),
                                 (["--json", "/nonexistent/x"], "--json"),
                                 (["--work", "/dev/shm/hanare-x"], "is in memory")):
            done = self.run_harness(*arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(named, done.stderr)
        with contextlib.suppress(OSError):
            os.rmdir("/dev/shm/hanare-x")

    def test_without_hanare(self):
        other = self.write_program("other", "#!/bin/sh\necho usage\n")
        for hanare in ("/nonexistent", other):
            done = self.run_harness("--work", str(self.directory), "--hanare", hanare, "--quick",
                                    "--skip-without-hanare", "--systems", "plain,hanare")
            self.assertEqual(done.returncode, 77, done.stderr)
            self.assertIn(f"{hanare} has no `run`", done.stderr)

    def test_a_failure_is_the_exit_status(self):
        hanare = self.write_program("hanare", GOOD_HANARE + "echo reason >&2; exit 5\n")
        path = self.directory / "records.json"
        work = self.directory / "work"
        done = self.run_harness("--work", str(work), "--hanare", hanare, "--only", "gcc",
                                "--quick", "--systems", "plain,hanare", "--json", str(path))
        if "skipped" in done.stdout.splitlines()[2]:
            self.skipTest(done.stdout)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("hanare failed: hanare: exit status 5, reason", done.stdout)
        self.assertTrue(json.loads(path.read_text()))
        self.assertEqual(os.listdir(work), ["inputs"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
