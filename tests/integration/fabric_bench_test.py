# SPDX-License-Identifier: Apache-2.0
"""`hanare bench fabric` as a user runs it: table, records, refusals, no process left behind.

Few rounds; nothing is timed.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
FIELDS = {"bench", "case", "system", "metric", "unit", "median", "min", "max", "runs", "params"}
CASES = ("get_64", "put_64", "fetch_add", "get_64k", "put_64k", "get_1m", "get_64k_q8")
LARGE = ("get_64k", "put_64k", "get_1m", "get_64k_q8")
SIGNALS = ("signal_computing", "signal_sleeping")
COMPARED = {"ucx": "hanare-bench-ucx", "mpi_openmpi": "hanare-bench-mpi-openmpi",
            "mpi_mpich": "hanare-bench-mpi-mpich"}
BUILT = os.path.dirname(HANARE)


def is_built(system):
    return os.path.exists(os.path.join(BUILT, COMPARED[system]))


class Bench(support.InOwnPlace):
    def run_bench(self, *arguments, **options):
        return subprocess.run([HANARE, "bench", "fabric", "--quick", *arguments], timeout=120,
                              check=False, env=self.environment, capture_output=True, text=True,
                              **options)

    def records_of(self, *arguments, **options):
        """Output and records of a run that succeeds."""
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            os.chmod(directory, 0o777)
            path = os.path.join(directory, "results.json")
            result = self.run_bench("--json", path, *arguments, **options)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            with open(path, encoding="utf-8") as file:
                records = json.load(file)
        for record in records:
            self.assertEqual(set(record), FIELDS)
            self.assertEqual(record["bench"], "fabric")
            if record["metric"] != "extra_processor":  # a difference
                self.assertGreater(record["min"], 0, record)
        return result, records

    def start_bench(self, *arguments):
        process = self.start("bench", "fabric", *arguments)
        for end in (process.kill, process.stdout.close, process.stderr.close):
            self.addCleanup(end)
        return process

    def programs_of_this_place(self):
        """Names of the running programs whose temporary directory is this test's."""
        mark = f"TMPDIR={self.directory}".encode()
        found = set()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.add(os.path.basename(os.readlink(process / "exe")))
        return found

    def check_nothing_is_left(self):
        self.assertTrue(support.eventually(lambda: not self.programs_of_this_place()))
        self.assertTrue(support.eventually(lambda: not os.listdir(self.directory)))


class FabricBench(Bench):
    def test_records(self):
        result, records = self.records_of()
        for name in CASES:
            of_case = [r for r in records if r["case"] == name]
            own = {(r["system"], r["metric"]) for r in of_case}
            self.assertGreaterEqual(own, {("raw_tcp", "time"), ("hanare", "time"),
                                          ("hanare", "ratio")})
            self.assertEqual({r["system"] for r in of_case}, {"raw_tcp", "hanare"})
            self.assertIn(f"\n{name} ", result.stdout)
            engines = {r["params"]["engine"] for r in of_case}
            self.assertEqual(engines, {"tcp", "secure", "ring", "shm"})
        for name in SIGNALS:
            self.assertEqual({r["system"] for r in records if r["case"] == name},
                             {"hanare", "kernel"})
        self.check_processor(records)
        self.check_sweep(records)
        self.check_groups(records)

    def check_processor(self, records):
        for name in LARGE:
            spent = {r["params"]["engine"]: r["median"] for r in records
                     if r["case"] == name and r["metric"] == "processor"}
            extra = [r["median"] for r in records
                     if r["case"] == name and r["metric"] == "extra_processor"]
            self.assertEqual(set(spent), {"tcp", "secure", "ring", "shm"})
            self.assertEqual(len(extra), 1)
            self.assertLess(extra[0], spent["secure"])

    def check_sweep(self, records):
        sizes = {4 << i for i in range(19)}
        for system in ("hanare", "raw_tcp"):
            for depth, metric in ((1, "time"), (8, "rate")):
                found = {r["params"]["bytes"] for r in records if r["case"] == "sweep"
                         and (r["system"], r["metric"], r["params"]["depth"]) ==
                         (system, metric, depth)}
                self.assertEqual(found, sizes)

    def check_groups(self, records):
        self.assertEqual({r["params"]["tasks"] for r in records if r["case"] == "barrier"},
                         {4, 8, 16})
        messages = {(r["params"]["way"], r["params"]["tasks"]): r["median"] for r in records
                    if r["case"] == "multicast" and r["metric"] == "root_messages"}
        for tasks in (4, 8, 16):
            self.assertEqual(messages["flat", tasks], tasks - 1)
            self.assertLessEqual(messages["tree", tasks], 3 * 8)

    def test_chosen_cases(self):
        result = self.run_bench("--cases", "put_64", "--compare", "raw_tcp")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("\nput_64 ", result.stdout)
        self.assertNotIn("get_64", result.stdout)

    def test_names_that_do_not_exist(self):
        for flag, allowed in (("--cases", "get_64k_q8"), ("--compare", "raw_tcp"),
                              ("--network", "veth")):
            result = self.run_bench(flag, "get_65")
            self.assertEqual(result.returncode, 2)
            self.assertIn(flag, result.stderr)
            self.assertIn('"get_65"', result.stderr)
            self.assertIn(allowed, result.stderr)


class Compared(Bench):
    def check_system(self, system):
        if not is_built(system):
            self.skipTest(f"{COMPARED[system]} was not built: its headers are not installed")
        cases = ("get_64", "put_64", "fetch_add", "get_64k_q8")
        result, records = self.records_of("--compare", f"raw_tcp,{system}", "--cases",
                                          ",".join((*cases, "passive_target")))
        for name in cases:
            own = {(r["system"], r["params"]["engine"]) for r in records
                   if r["case"] == name and r["metric"] == "time"}
            self.assertGreaterEqual(own, {(system, "tcp"), (system, "secure"), ("raw_tcp", "tcp")})
            self.assertNotIn((system, "shm"), own)
            ratios = {r["params"]["to"] for r in records
                      if r["case"] == name and r["metric"] == "ratio"}
            self.assertEqual(ratios, {"raw_tcp", system})
        waited = [r for r in records if r["case"] == "passive_target" and r["system"] == system]
        self.assertEqual([r["runs"] for r in waited], [2])
        self.assertIn(system, result.stdout)
        self.assertEqual(result.stderr, "")

    def test_ucx(self):
        self.check_system("ucx")

    def test_open_mpi(self):
        self.check_system("mpi_openmpi")

    def test_mpich(self):
        self.check_system("mpi_mpich")

    def test_all_of_mpi(self):
        if not is_built("mpi_openmpi") and not is_built("mpi_mpich"):
            self.skipTest("no MPI was found when this was built")
        _, records = self.records_of("--compare", "mpi", "--cases", "get_64")
        self.assertEqual({r["system"] for r in records},
                         {"hanare", *filter(is_built, ("mpi_openmpi", "mpi_mpich"))})

    def test_what_is_not_installed(self):
        with support.reachable_copy(HANARE) as (_, place):
            for system, package in (("ucx", "libucx-dev"), ("mpi", "libopenmpi-dev"),
                                    ("mpi_mpich", "libmpich-dev")):
                result = subprocess.run(
                    [os.path.join(place, "hanare-tools"), "bench", "fabric", "--compare", system],
                    timeout=60, check=False, capture_output=True, text=True, env=self.environment)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)
                self.assertIn(f"install {package} and build Hanare again", result.stderr)

    def test_killed_or_interrupted(self):
        """Whatever was started ends, and its files are removed, also when nobody sees to that."""
        systems = [system for system in COMPARED if is_built(system)]
        if not systems:
            self.skipTest("neither UCX nor MPI was found when this was built")
        started = {COMPARED[system] for system in systems}
        for number in (signal.SIGKILL, signal.SIGINT):
            process = self.start_bench("--cases", "get_64", "--compare", ",".join(systems))
            self.assertTrue(support.eventually(lambda: started <= self.programs_of_this_place()))
            process.send_signal(number)
            self.assertEqual(process.wait(60), -number)
            self.check_nothing_is_left()


class Networks(Bench):
    def check_veth(self, *arguments, program=HANARE, **options):
        before = os.listdir("/sys/class/net")
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            os.chmod(directory, 0o777)
            path = os.path.join(directory, "results.json")
            result = subprocess.run(
                [program, "bench", "fabric", "--quick", "--network", "veth", "--cases",
                 "get_64,get_64k,sweep,passive_target", "--json", path, *arguments], timeout=120,
                check=False, env=self.environment, capture_output=True, text=True, **options)
            if "cannot make a network" in result.stderr:
                self.assertEqual(result.stderr.count("\n"), 1)
                self.skipTest(result.stderr.strip())
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            with open(path, encoding="utf-8") as file:
                records = json.load(file)
        self.assertEqual({r["params"]["network"] for r in records}, {"veth"})
        self.assertEqual({r["params"]["engine"] for r in records if r["case"] == "get_64"},
                         {"tcp", "secure"})
        self.assertEqual({r["case"] for r in records},
                         {"get_64", "get_64k", "sweep", "passive_target"})
        self.assertEqual(os.listdir("/sys/class/net"), before)
        return records

    def test_veth(self):
        self.check_veth()

    def test_veth_beside_other_systems(self):
        systems = [system for system in COMPARED if is_built(system)]
        if not systems:
            self.skipTest("neither UCX nor MPI was found when this was built")
        records = self.check_veth("--compare", ",".join(("raw_tcp", *systems)))
        for case in ("get_64", "get_64k"):
            measured = {r["system"] for r in records if r["case"] == case and r["metric"] == "time"}
            self.assertEqual(measured, {"hanare", "raw_tcp", *systems})
        waited = {r["system"] for r in records if r["case"] == "passive_target"}
        self.assertGreaterEqual(waited, set(systems))

    @unittest.skipIf(os.geteuid() != 0, "this is an ordinary user already")
    def test_veth_as_an_ordinary_user(self):
        with support.reachable_copy(HANARE) as (program, _):
            self.check_veth(program=program, **support.AS_NOBODY)

    def test_killed_or_interrupted(self):
        before = os.listdir("/sys/class/net")
        for number in (signal.SIGKILL, signal.SIGINT):
            process = self.start_bench("--network", "veth", "--cases", "get_64")
            if not support.eventually(lambda: support.children_of(process.pid), 5):
                self.skipTest(process.communicate()[1].strip())
            process.send_signal(number)
            self.assertEqual(process.wait(60), -number)
            self.check_nothing_is_left()
        self.assertEqual(os.listdir("/sys/class/net"), before)

    def test_what_is_on_one_machine(self):
        for arguments in (("--cases", "signal_computing"), ("--cases", "barrier")):
            result = self.run_bench("--network", "veth", *arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn("--network veth", result.stderr)


if __name__ == "__main__":
    unittest.main()
