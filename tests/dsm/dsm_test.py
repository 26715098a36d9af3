# SPDX-License-Identifier: Apache-2.0
"""Shared memory of a job's tasks: drawn programs, rules, and what happens when a task is lost.

DSM_PROGRAMS is the directory of the programs beside this file, compiled.  Tasks of one machine have
their memory in common, or, with HANARE_DSM_SHARED=off, are like tasks of several machines; and
slow_network.c lies between these for some.
HANARE_TEST_RUNS is how many programs are drawn (default 40), HANARE_TEST_SEED the first one's seed.
"""

import os
import pathlib
import pwd
import struct
import subprocess
import sys
import tempfile
import time
import unittest

HANARE = os.environ["HANARE_BINARY"]
PROGRAMS = pathlib.Path(os.environ["DSM_PROGRAMS"])
RUNS = int(os.environ.get("HANARE_TEST_RUNS", "40"))
SEED = int(os.environ.get("HANARE_TEST_SEED", "1"))
SECONDS = 120
# An answer that does not come is given up after 60 s (Peers::kAnswerMs): who needs as long has not
# noticed a loss, but waited.  That it is 5 s where the machine has time is for who measures.
LOSS_SECONDS = 40
MODES = ("on", "off")


def launch(tasks, *command, mode="on", **variables):
    return subprocess.run([HANARE, "launch", "-n", str(tasks), "--", *map(str, command)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=SECONDS,
                          env={**os.environ, "HANARE_DSM_SHARED": mode, **variables})


def timed_launch(*arguments, **named):
    """And how many seconds it took."""
    started = time.monotonic()
    run = launch(*arguments, **named)
    return run, time.monotonic() - started


def ordinary_user():
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


class DrawnPrograms(unittest.TestCase):
    """Programs without data races, against what a sequentially consistent memory would hold."""

    def check(self, mode):
        for seed in range(SEED, SEED + RUNS):
            tasks = 2 + seed % 7
            with self.subTest(seed=seed, tasks=tasks):
                run = launch(tasks, PROGRAMS / "checked_program", seed, 8, mode=mode)
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                self.assertEqual(run.stdout.count("as it should be"), tasks)

    def test_in_common_memory(self):
        self.check("on")

    def test_over_sockets(self):
        self.check("off")

    def test_over_a_slow_network(self):
        for seed in range(SEED, SEED + (RUNS + 4) // 5):
            tasks = 2 + seed % 4
            with self.subTest(seed=seed, tasks=tasks):
                run = launch(tasks, PROGRAMS / "checked_program", seed, 4, mode="off",
                             LD_PRELOAD=str(PROGRAMS / "slow_network.so"),
                             SLOW_NETWORK_SEED=str(seed))
                self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                self.assertEqual(run.stdout.count("as it should be"), tasks)

    def test_while_homes_move(self):
        """Who had a block reads and writes on in it, before its new home has it."""
        slow = {"LD_PRELOAD": str(PROGRAMS / "slow_network.so"), "SLOW_NETWORK_SEED": str(SEED)}
        for mode, rounds, more in (("on", 200, {}), ("off", 100, {}), ("off", 4, slow)):
            run = launch(4, PROGRAMS / "moves", rounds, mode=mode, **more)
            self.assertEqual((run.returncode, run.stdout, run.stderr), (0, 4 * "right\n", ""))

    def test_sections_of_many_rounds(self):
        """Blocks that all write to, some of them under locks, in memory that is new again and again."""
        for mode, tasks, rounds, threads in (("on", 3, 40, 0), ("off", 3, 60, 0), ("off", 2, 60, 0),
                                             ("off", 5, 10, 0), ("off", 2, 8, 1), ("off", 3, 8, 1)):
            with self.subTest(mode=mode, tasks=tasks, threads=threads):
                run = launch(tasks, PROGRAMS / "sections", rounds, 24, threads, mode=mode)
                self.assertEqual((run.returncode, run.stdout, run.stderr),
                                 (0, tasks * "right\n", ""))

    def test_with_a_task_that_is_killed(self):
        """All others end, and name it; the launcher, which would end them, sees a shell."""
        for seed in range(SEED, SEED + (RUNS + 4) // 5):
            tasks = 2 + seed % 5
            killed = seed // 5 % tasks
            program = f"{PROGRAMS / 'checked_program'} {seed} 4 {killed} {seed % 4}"
            slow = {"LD_PRELOAD": str(PROGRAMS / "slow_network.so")} if seed % 3 == 0 else {}
            with self.subTest(seed=seed, tasks=tasks, killed=killed):
                run, seconds = timed_launch(tasks, "sh", "-c", f"{program}; echo status $?",
                                            mode=MODES[seed % 2], **slow)
                self.assertLess(seconds, LOSS_SECONDS, run.stderr)
                self.assertNotIn("status 0", run.stdout, run.stdout + run.stderr)
                self.assertNotIn("status 1\n", run.stdout, run.stdout + run.stderr)
                self.assertEqual(run.stdout.count("status 137\n"), 1, run.stdout + run.stderr)
                self.assertEqual(run.stdout.count("status"), tasks, run.stdout + run.stderr)
                told = run.stderr.count("is no more")
                self.assertGreaterEqual(told, tasks - 1, run.stdout + run.stderr)
                self.assertIn(f"task {killed} is no more", run.stderr)


class Rules(unittest.TestCase):
    def check(self, case, tasks=(1, 3)):
        for mode in MODES:
            for count in tasks:
                with self.subTest(mode=mode, tasks=count):
                    run = launch(count, PROGRAMS / "rules", case, mode=mode)
                    self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
                    self.assertEqual(run.stdout, "right\n" * count)

    def test_locks_are_released_once_by_who_has_them(self):
        self.check("locks")

    def test_barriers_have_one_number(self):
        self.check("barriers")

    def test_memory_is_zero_and_has_an_end(self):
        self.check("memory")

    def test_a_process_joins_its_job_once(self):
        self.check("communication")

    def test_large_variables_are_distributed(self):
        self.check("distribution")

    def test_children_have_none_of_it(self):
        self.check("forks")

    def test_system_calls_fail_or_find_it(self):
        self.check("system_calls")

    def test_one_write_is_one_notice(self):
        self.check("first_block", tasks=(2, 3))

    def test_as_much_memory_as_is_allowed(self):
        run = launch(2, PROGRAMS / "rules", "first_block", mode="off", HANARE_DSM_MEMORY="4T")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_threads_share_a_task_s_part(self):
        self.check("threads", tasks=(1, 2, 3))

    def test_a_thread_may_be_in_a_barrier_while_others_pass_locks(self):
        self.check("thread_in_barrier", tasks=(1, 2, 3))

    def test_memory_comes_back(self):
        for mode in MODES:
            apart = {"RULES_APART": "1"} if mode == "off" else {}
            run = launch(3, PROGRAMS / "rules", "memory_comes_back", mode=mode, **apart)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_so_many_tasks_are_refused(self):
        run = launch(254, PROGRAMS / "rules", "locks")
        self.assertNotEqual(run.returncode, 0)
        lines = [line for line in run.stderr.splitlines() if "tasks" in line]
        self.assertGreater(len(lines), 0, run.stderr)
        for line in lines:
            self.assertIn("254 tasks; shared memory is for 253 at most", line)

    def test_another_build_of_the_program_is_found(self):
        rules = (PROGRAMS / "rules").read_bytes()
        # The note that says which build it is: how long its name is, its content and its kind.
        note = struct.pack("<III", 4, 20, 3) + b"GNU\0"
        self.assertEqual(rules.count(note), 1, "built without --build-id")
        at = rules.index(note) + len(note)
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder, "rules")
            other.write_bytes(rules[:at] + bytes([rules[at] ^ 1]) + rules[at + 1:])
            other.chmod(0o755)
            for mode in MODES:
                run = launch(2, "sh", "-c", f"test $HANARE_RANK = 0 && exec {PROGRAMS / 'rules'} "
                             f"distribution; exec {other} distribution", mode=mode)
                self.assertNotEqual(run.returncode, 0)
                self.assertIn("no such variable: is it another program?", run.stderr)

    def test_addresses_that_a_task_has_in_use(self):
        for mode in MODES:
            run = launch(2, PROGRAMS / "rules", "distribution", mode=mode,
                         RULES_OCCUPIED="0x100000000000")
            self.assertEqual((run.returncode, run.stdout), (0, "right\n" * 2), run.stderr)

    def test_addresses_that_a_task_may_not_have(self):
        command = f"test $HANARE_RANK = 0 || ulimit -v 20000000; exec {PROGRAMS / 'rules'} locks"
        run = launch(2, "sh", "-c", command)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("of addresses are free in all tasks", run.stderr)

    def test_memory_of_different_sizes_is_refused(self):
        command = f"HANARE_DSM_MEMORY=$((1 + $HANARE_RANK))G exec {PROGRAMS / 'rules'} locks"
        run = launch(2, "sh", "-c", command)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("shared memory of", run.stderr)

    def test_wrong_variables_are_named(self):
        for name, value in (("HANARE_DSM_MEMORY", "much"), ("HANARE_DSM_MEMORY", "100T"),
                            ("HANARE_DSM_SHARED", "maybe")):
            with self.subTest(name=name, value=value):
                run = launch(1, PROGRAMS / "rules", "locks", **{"mode": "on", name: value})
                self.assertEqual(run.returncode, 1)
                self.assertIn("shared memory" if value == "100T" else name, run.stderr)


class LostTasks(unittest.TestCase):
    """A launcher that ends the job itself does not see the task: a shell stands between."""

    def check(self, case, mode):
        run, seconds = timed_launch(3, "sh", "-c", f"{PROGRAMS / 'rules'} {case}; echo status $?",
                                    mode=mode)
        self.assertLess(seconds, LOSS_SECONDS, run.stderr)
        return run

    def test_in_barriers_and_locks(self):
        for case in ("lost_in_barrier", "lost_with_lock"):
            for mode in MODES:
                with self.subTest(case=case, mode=mode):
                    run = self.check(case, mode)
                    self.assertEqual(run.stdout.count("status 0\n"), 2, run.stdout + run.stderr)

    def test_in_the_middle_of_a_lock(self):
        for case in ("notices", "traffic", "release"):
            with self.subTest(case=case), tempfile.TemporaryDirectory() as folder:
                run, seconds = timed_launch(3, "sh", "-c", f"{PROGRAMS / 'losses'} {case} {folder};"
                                            "echo status $?", mode="off")
                self.assertLess(seconds, LOSS_SECONDS, run.stderr)
                self.assertNotIn("status 1\n", run.stdout, run.stderr)
                self.assertGreaterEqual(run.stdout.count("status 0\n"), 2, run.stderr)

    def test_memory_that_only_it_had(self):
        run = self.check("lost_home", "off")
        # The second one may find the first lost.
        self.assertEqual(run.stderr.count("is no more; SIGBUS follows"), 2, run.stderr)
        self.assertIn("task 2 is no more; SIGBUS follows", run.stderr)
        self.assertEqual(run.stdout.count("status 135\n"), 2, run.stdout)

    def test_memory_in_common_stays(self):
        run = self.check("lost_home", "on")
        self.assertEqual(run.stderr.count("reading 5"), 2, run.stderr)


class TreadMarks(unittest.TestCase):
    """compat/Tmk.h."""

    def test_program_starts_its_processes(self):
        for processes in (1, 3):
            run = subprocess.run([PROGRAMS / "tmk_sum", "1000", "--", "-n", str(processes)],
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 timeout=SECONDS)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(run.stdout, f"{processes} processes: 499500\n")

    def test_error_ends_all_processes(self):
        run = launch(3, PROGRAMS / "tmk_sum", "-1", mode="off")
        self.assertEqual(run.returncode, 70, run.stderr)
        self.assertIn("tmk_sum: a negative count", run.stderr)

    def test_wrong_options_are_named(self):
        for options, text in ((("-n", "many"), "-n many"), (("-x",), "-x"), (("-n",), "-n")):
            run = subprocess.run([PROGRAMS / "tmk_sum", "1", "--", *options],
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 timeout=SECONDS)
            self.assertEqual(run.returncode, 70)
            self.assertIn(text, run.stderr)
            self.assertEqual(run.stderr.count("\n"), 1)


@unittest.skipIf(ordinary_user() is None, "not root: the other tests run as an ordinary user")
class OrdinaryUser(unittest.TestCase):
    def test_drawn_program(self):
        user = ordinary_user()
        for mode in MODES:
            run = subprocess.run(
                ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups",
                 HANARE, "launch", "-n", "3", "--", PROGRAMS / "checked_program", "5", "8"],
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
                env={**os.environ, "HANARE_DSM_SHARED": mode, "HOME": "/nonexistent"})
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
