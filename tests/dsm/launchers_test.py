# SPDX-License-Identifier: Apache-2.0
"""Programs that share memory below Open MPI's mpirun, MPICH's mpiexec, Slurm's srun, and on the hosts
of a file, by `hanare launch` and by what is behind `--` of TreadMarks' programs.

As dsm_test.py, whose environment this has.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

from dsm_test import HANARE, MODES, PROGRAMS, SECONDS

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "integration"))
os.environ.setdefault("JOB_PROBE", "")
import launch_test  # noqa: E402, pylint: disable=wrong-import-position

TASKS = 3


class Programs:
    """What each launcher is to run: a drawn program, which checks all that it reads."""

    def check(self, run, *command):
        for mode in MODES:
            with self.subTest(mode=mode):
                done = run(*command, str(PROGRAMS / "checked_program"), "7", "6",
                           HANARE_DSM_SHARED=mode)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual(done.stdout.count("as it should be"), TASKS, done.stdout)
                faults = [int(line.split("; ")[1].split()[0]) for line in done.stdout.splitlines()]
                self.assertEqual(sum(faults) > 0, mode == "off", done.stdout)


class OtherLaunchers(launch_test.Base, Programs):
    def run_with(self, *command, **variables):
        return subprocess.run(command, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=SECONDS,
                              preexec_fn=launch_test.die_with_parent(),
                              env={**self.environment, **variables})

    @unittest.skipUnless(shutil.which("mpirun.openmpi"), "mpirun.openmpi is not installed")
    def test_mpirun_of_open_mpi(self):
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        self.check(self.run_with, "mpirun.openmpi", "--oversubscribe", "-n", str(TASKS), "--mca",
                   "plm", "isolated", *root)

    @unittest.skipUnless(shutil.which("mpiexec.mpich"), "mpiexec.mpich is not installed")
    def test_mpiexec_of_mpich(self):
        self.check(self.run_with, "mpiexec.mpich", "-n", str(TASKS))


    def test_program_of_treadmarks_in_a_batch_script(self):
        batch = {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "1"}
        done = self.run_with(PROGRAMS / "tmk_sum", "1000", "--", "-n", str(TASKS),
                             HANARE_BINARY=HANARE, **batch)
        self.assertEqual((done.returncode, done.stdout), (0, f"{TASKS} processes: 499500\n"),
                         done.stderr)


class Slurm(launch_test.Slurm, Programs):
    # Not again what is tested there.
    test_rendezvous_of_the_first_task = test_pmi1_of_the_plug_in = test_without_a_secret = None

    def test_rendezvous_of_the_first_task_of_a_step(self):
        run = lambda *command, **variables: self.srun(*command, HANARE_SECRET_FILE=self.secret,
                                                      **variables)
        self.check(run, "-n", str(TASKS))

    def test_pmi1(self):
        self.check(self.srun, "--mpi=pmi2", "-n", str(TASKS))


class Hosts(launch_test.Hosts, Programs):
    for name in dir(launch_test.Hosts):
        if name.startswith("test_"):
            locals()[name] = None
    del name

    def run_on(self, *command, **variables):
        hosts = self.write("hosts", "a 2\nb\n")
        return subprocess.run([HANARE, "launch", "--hosts", hosts, "--ssh", self.ssh, "--listen",
                               "127.0.0.1", "--", *command], capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, timeout=SECONDS,
                              env={**self.environment, **variables})

    def test_hosts_of_a_file(self):
        self.check(self.run_on)

    def test_program_of_treadmarks_names_the_file(self):
        """`-f FILE` behind `--`, as its users know it."""
        bin_folder = os.path.join(self.files, "bin")
        os.mkdir(bin_folder)
        os.rename(self.ssh, os.path.join(bin_folder, "ssh"))
        hosts = self.write("hosts", "127.0.0.1\nlocalhost\n127.0.0.2\n")
        for options, tasks in ((["-f", hosts], 3), (["-n2", f"-f{hosts}"], 2)):
            done = subprocess.run([PROGRAMS / "tmk_sum", "1000", "--", *options],
                                  capture_output=True, text=True, check=False, timeout=SECONDS,
                                  stdin=subprocess.DEVNULL,
                                  env={**self.environment, "HANARE_BINARY": HANARE,
                                       "PATH": bin_folder + ":" + self.environment["PATH"]})
            if "no network leads out of this machine" in done.stderr:
                self.skipTest(done.stderr)
            self.assertEqual((done.returncode, done.stdout), (0, f"{tasks} processes: 499500\n"),
                             done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
