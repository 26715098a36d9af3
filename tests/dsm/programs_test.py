# SPDX-License-Identifier: Apache-2.0
"""The programs of bench/dsm in small sizes: every form verifies its result, and all have the same one.

DSM_BENCH_PROGRAMS is the directory of the programs.  HANARE_BINARY starts the Tmk forms: over common
memory, as tasks of one machine have it, and over sockets, as those of several.  DSM_BENCH_MPI is
the MPI that the MPI forms were built with.  What was not built or cannot be started is skipped.
"""

import os
import pathlib
import shutil
import subprocess
import unittest

PROGRAMS = pathlib.Path(os.environ["DSM_BENCH_PROGRAMS"])
HANARE = os.environ.get("HANARE_BINARY")
MPI = os.environ.get("DSM_BENCH_MPI") or "openmpi"
SECONDS = 60

OPEN_MPI = ["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root", "--mca", "plm", "isolated"]
MPICH = ["mpiexec.mpich"]

# Name, arguments, and what all forms agree in.
CASES = {
    "ep": ("ep", ["--log2", "18"], ["digest"]),
    "fft": ("fft", [], ["digest"]),
    "is of a class": ("is", ["--keys-log2", "16", "--max-log2", "11"], ["digest"]),
    "is, many values": ("is", ["--keys-log2", "15", "--max-log2", "15"], ["digest"]),
    "jacobi": ("jacobi", ["--size", "203"], ["digest"]),
    "sor-z": ("sor", ["--zero", "1", "--rows", "65", "--columns", "514"], ["digest"]),
    "sor-nz": ("sor", ["--rows", "65", "--columns", "514"], ["digest"]),
    "qsort-quick": ("quicksort", ["--keys", "30000", "--leaf", "500"], ["digest"]),
    "qsort-bubble": ("quicksort", ["--keys", "10000", "--leaf", "200", "--bubble", "1"], ["digest"]),
    "tsp": ("tsp", ["--cities", "13"], ["length"]),
    "water": ("water", ["--molecules", "61"], ["potential", "kinetic"]),
}


def values_of(line):
    return dict(word.split("=", 1) for word in line.split())


class Programs(unittest.TestCase):
    def run_form(self, program, form, processes, arguments, status=0, launcher=(), **variables):
        path = PROGRAMS / f"{program}-{form}"
        if not path.exists():
            self.skipTest(f"{path.name} was not built")
        done = subprocess.run([*launcher, str(path), *arguments], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=SECONDS,
                              env={**os.environ, **variables})
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        lines = [line for line in done.stdout.splitlines() if line.startswith("name=")]
        self.assertEqual(len(lines), 1, done.stdout + done.stderr)
        values = values_of(lines[0])
        self.assertEqual(values["form"], form)
        self.assertEqual(values["processes"], str(processes))
        self.assertEqual(values["verified"], "yes" if status == 0 else "no")
        self.assertGreaterEqual(float(values["seconds"]), 0)
        return values

    def compare(self, form, processes, launcher, cases=tuple(CASES), behind=(), **variables):
        for name in cases:
            program, arguments, keys = CASES[name]
            with self.subTest(name=name, form=form, processes=processes, **variables):
                wanted = self.run_form(program, "seq", 1, arguments)
                found = self.run_form(program, form, processes, [*arguments, *behind],
                                      launcher=launcher, **variables)
                self.assertEqual([found[key] for key in keys], [wanted[key] for key in keys])

    def tmk(self, processes, shared, cases=tuple(CASES)):
        if not HANARE:
            self.skipTest("no hanare to start the Tmk forms")
        self.compare("tmk", processes, [HANARE, "launch", "-n", str(processes), "--"], cases,
                     HANARE_DSM_SHARED=shared)

    def test_sequential(self):
        for name, (program, arguments, _) in CASES.items():
            with self.subTest(name=name):
                self.run_form(program, "seq", 1, arguments)

    def test_wrong_results_are_found(self):
        for name, (program, arguments, _) in CASES.items():
            with self.subTest(name=name):
                self.run_form(program, "seq", 1, [*arguments, "--spoil", "1"], status=1)

    def test_bad_arguments(self):
        for arguments in (["--size", "2"], ["--pears", "1"], ["--size"]):
            done = subprocess.run([PROGRAMS / "jacobi-seq", *arguments], capture_output=True,
                                  text=True, timeout=SECONDS)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_tmk_over_common_memory(self):
        for processes in (2, 3, 4):
            self.tmk(processes, "on")

    def test_tmk_over_sockets(self):
        for processes in (2, 3):
            self.tmk(processes, "off")

    def test_tmk_with_all_memory_at_process_0(self):
        if not HANARE:
            self.skipTest("no hanare to start the Tmk forms")
        launcher = [HANARE, "launch", "-n", "3", "--"]
        self.compare("tmk", 3, launcher, behind=["--init-by", "0"], HANARE_DSM_SHARED="off")

    def test_few_faults_and_messages_in_the_steady_state(self):
        if not HANARE:
            self.skipTest("no hanare to start the Tmk forms")
        launcher = [HANARE, "launch", "-n", "2", "--"]
        for program, size in (("jacobi", ["--size", "512"]),
                              ("sor", ["--rows", "66", "--columns", "2048"])):
            with self.subTest(program=program):
                few, many = (self.run_form(program, "tmk", 2, [*size, "--iterations", iterations],
                                           launcher=launcher, HANARE_DSM_SHARED="off")
                             for iterations in ("40", "240"))
                # How many there are until then depends on who is faster at first; then there were
                # eight in each iteration if nothing were done about them.
                self.assertLess(int(many["faults"]), int(few["faults"]) + 200)
                # What the neighbours need comes with the barrier: a message from each task, where
                # fetching takes two.
                barriers = 200 * (1 if program == "jacobi" else 2)
                self.assertLess(int(many["messages"]), int(few["messages"]) + 1.6 * 2 * barriers)

    def test_what_a_transpose_reads_is_fetched_once(self):
        if not HANARE:
            self.skipTest("no hanare to start the Tmk forms")
        values = self.run_form("fft", "tmk", 2, [], launcher=[HANARE, "launch", "-n", "2", "--"],
                               HANARE_DSM_SHARED="off")
        # Each process reads half of the other's 64 planes of 64 * 64 complex numbers, at first and
        # in each of six iterations.
        needed = 2 * 7 * (64**3 // 4) * 16
        self.assertLess(int(values["bytes"]), 1.2 * needed)

    def test_mpi(self):
        launcher = OPEN_MPI if MPI == "openmpi" else MPICH
        if not shutil.which(launcher[0]):
            self.skipTest(f"{launcher[0]} is not installed")
        for processes in (2, 3) if MPI == "openmpi" else (2,):  # MPICH's wait busily
            self.compare("mpi", processes, [*launcher, "-n", str(processes)])

    def test_pvm(self):
        # Starting its daemon, which stays, is for whoever wants it.
        if not self.has_pvm():
            self.skipTest("no PVM daemon runs")
        cases = [name for name in CASES if CASES[name][0] in ("is", "jacobi", "sor")]
        # As root only for who says so, as who has started the daemon must have.
        self.compare("pvm", 3, [], cases, behind=["--", "-n", "3"], PVM_ALLOW_ROOT="1")

    @staticmethod
    def has_pvm():
        folder = pathlib.Path(os.environ.get("PVM_TMP", "/tmp"))
        return (folder / f"pvmd.{os.getuid()}").exists()


if __name__ == "__main__":
    unittest.main()
