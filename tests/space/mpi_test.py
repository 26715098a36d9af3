# SPDX-License-Identifier: Apache-2.0
"""Ranks of Open MPI and MPICH as tasks of a space: their messages, windows and ends, the NAS Parallel
Benchmarks (bench/npb_mpi), and `hanare bench space`.

SPACE_PROGRAMS is the directory of the programs beside this file, compiled.  With HANARE_LONG_TESTS all
numbers of ranks that take a minute or so (`make test-mpi`).
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

HANARE = os.environ["HANARE_BINARY"]
PROGRAMS = pathlib.Path(os.environ["SPACE_PROGRAMS"])
IS_LONG = "HANARE_LONG_TESTS" in os.environ
SECONDS = 600 if IS_LONG else 120

OPEN_MPI = ("mpirun.openmpi", ["--oversubscribe", "--allow-run-as-root", "--mca", "plm", "isolated"])
MPICH = ("mpiexec.mpich", [])


def launcher_of(test, launcher, program):
    path = shutil.which(launcher)
    if not path or not program.exists():
        test.skipTest(f"{launcher} or its mpicc is not installed")
    return path


def wait_until_ended(processes):
    processes = list(processes)
    end = time.monotonic() + SECONDS
    while any(pathlib.Path(f"/proc/{process}").exists() for process in processes):
        if time.monotonic() > end:
            raise AssertionError(f"some of {processes} still run")
        time.sleep(0.01)


class Jobs(unittest.TestCase):
    def run_job(self, launcher, flags, ranks, *command):
        return subprocess.run([launcher_of(self, launcher, command[0]), *flags, "-n", str(ranks),
                               HANARE, "space", "exec", "--verbose", *map(str, command)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SECONDS)

    def assert_right(self, done):
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "right\n", ""))

    def test_open_mpi(self):
        program = PROGRAMS / "mpi_exchange_openmpi"
        self.assert_right(self.run_job(*OPEN_MPI, 4, program, "space"))

    def test_mpich(self):
        program = PROGRAMS / "mpi_exchange_mpich"
        self.assert_right(self.run_job(*MPICH, 4, program, "space"))

    def test_killed_rank_ends_the_job_and_leaves_nothing(self):
        program = PROGRAMS / "mpi_exchange_openmpi"
        job = subprocess.Popen([launcher_of(self, OPEN_MPI[0], program), *OPEN_MPI[1], "-n", "4", HANARE, "space", "exec",
                                str(program), "wait"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(job.kill)
        ranks = [int(job.stdout.readline()) for _ in range(4)]
        root = int(pathlib.Path(f"/proc/{ranks[0]}/stat").read_text().split()[3])
        os.kill(ranks[2], signal.SIGKILL)
        job.communicate(timeout=SECONDS)
        self.assertNotEqual(job.returncode, 0)
        wait_until_ended([root, *ranks])

    def test_abort_ends_the_job_and_leaves_nothing(self):
        for launcher, flags, mpi in ((*OPEN_MPI, "openmpi"), (*MPICH, "mpich")):
            done = self.run_job(launcher, flags, 3, PROGRAMS / f"mpi_exchange_{mpi}", "abort")
            self.assertEqual(done.returncode, 33, done.stderr)
            ranks = [int(number) for number in done.stdout.split() if number.isdigit()]
            self.assertEqual(len(ranks), 3, done.stdout)
            wait_until_ended(ranks)

    def test_more_ranks_than_a_space_has_mappings_for(self):
        program = PROGRAMS / "mpi_exchange_openmpi"
        path = launcher_of(self, OPEN_MPI[0], program)
        done = subprocess.run([path, *OPEN_MPI[1], "-n", "5", HANARE, "space", "exec", "--verbose",
                               program], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SECONDS, env=os.environ | {"HANARE_SPACE_MAPPINGS": "1500"})
        self.assertEqual((done.returncode, done.stdout), (0, "right\n"), done.stderr)
        # Two in each.
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 2, done.stderr)
        self.assertIn("vm.max_map_count", lines[0])

    def test_two_spaces_in_one_job(self):
        program = PROGRAMS / "mpi_exchange_openmpi"
        path = launcher_of(self, OPEN_MPI[0], program)
        half = ["-n", "2", HANARE, "space", "exec", "--verbose", "--space"]
        name = f"half-{os.getpid()}"
        done = subprocess.run([path, *OPEN_MPI[1], *half, name + "-left", program, ":",
                               *half, name + "-right", program], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS)
        self.assert_right(done)


class Applications(unittest.TestCase):
    """The NAS Parallel Benchmarks; each verifies its result."""

    def assert_verified(self, launcher, flags, ranks, program):
        done = subprocess.run([launcher_of(self, launcher, program), *flags, "-n", str(ranks), HANARE,
                               "space", "exec", "--verbose", program], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertRegex(done.stdout.splitlines()[-1], f"^result: .* ranks={ranks} .*verified=yes$")

    def ranks_for(self, name, most):
        """Powers of two, or squares for SP."""
        counts = (1, 4, 9, 16) if name == "sp" else (1, 2, 4, 8, 16)
        counts = [count for count in counts if count <= most]
        return counts if IS_LONG else counts[-1:]

    def test_open_mpi(self):
        for name in ("is", "cg", "ft", "mg", "sp"):
            for ranks in self.ranks_for(name, 16 if IS_LONG else 4):
                with self.subTest(name=name, ranks=ranks):
                    self.assert_verified(*OPEN_MPI, ranks, PROGRAMS / f"npb-{name}-openmpi")

    def test_mpich(self):
        # Its ranks wait busily for a processor.
        for name in ("is", "cg", "ft", "mg", "sp"):
            for ranks in self.ranks_for(name, 4 if IS_LONG else 2):
                with self.subTest(name=name, ranks=ranks):
                    self.assert_verified(*MPICH, ranks, PROGRAMS / f"npb-{name}-mpich")

    @unittest.skipUnless(IS_LONG, "takes minutes: make test-mpi")
    def test_class_a(self):
        directory = pathlib.Path(HANARE).resolve().parent
        for name in ("is", "cg", "ft", "mg", "sp"):
            ranks = 4 if name == "sp" else 2
            for mpi, launcher in (("openmpi", OPEN_MPI), ("mpich", MPICH)):
                with self.subTest(name=name, mpi=mpi):
                    self.assert_verified(*launcher, ranks,
                                         directory / f"hanare-bench-npb-{name}-{mpi}")

    @unittest.skipUnless(IS_LONG, "takes minutes: make test-mpi")
    def test_many_ranks(self):
        for ranks in (64, 128):
            self.assert_verified(*OPEN_MPI, min(ranks, 64), PROGRAMS / "npb-is-openmpi")
            done = subprocess.run([launcher_of(self, OPEN_MPI[0], PROGRAMS / "mpi_exchange_openmpi"),
                                   *OPEN_MPI[1], "-n", str(ranks), HANARE, "space", "exec", "--verbose",
                                   PROGRAMS / "mpi_exchange_openmpi"], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual((done.returncode, done.stdout), (0, "right\n"), done.stderr)
            self.assertNotIn("on its own", done.stderr)


@unittest.skipUnless(shutil.which("mpirun.openmpi") and
                     (PROGRAMS / "mpi_exchange_openmpi").exists(), "Open MPI is not installed")
class Bench(unittest.TestCase):
    def test_measures_both_ways(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "results.json")
            done = subprocess.run([HANARE, "bench", "space", "--mpi", "openmpi", "--rounds", "1",
                                   "--ranks", "4", "--cases", "pairs,collectives,memory,start", "--json", path], stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, timeout=SECONDS)
            self.assertEqual(done.returncode, 0, done.stderr)
            records = json.loads(path.read_text())
        median = {(record["case"], record["system"], record["params"]["bytes"]): record["median"]
                  for record in records}
        for case in ("pingpong", "bcast", "allreduce", "alltoall"):
            self.assertGreater(median[case, "plain", 65536], 0)
            self.assertGreater(median[case, "space", 65536], 0)
        # Counts, which do not depend on how busy the machine is.
        window = max(bytes for case, _, bytes in median if case == "window_tables")
        self.assertLess(median["window_tables", "space", window],
                        median["window_tables", "plain", window] / 2)
        self.assertGreater(median["window_memory", "space", window], window >> 10)
        for case in ("pingpong_eager", "pingpong_rendezvous"):
            self.assertGreater(median[case, "space", 1 << 20], 0)
        self.assertGreater(median["start", "space", 0], 0)

    def test_mistakes(self):
        for flags, text in ((["--rounds", "0"], "--rounds"), (["--ranks", "1"], "--ranks"),
                            (["--mpi", "other"], "--mpi"), (["--cases", "pears"], "--cases")):
            done = subprocess.run([HANARE, "bench", "space", *flags], capture_output=True, text=True,
                                  timeout=SECONDS)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
