# SPDX-License-Identifier: Apache-2.0
"""What `hanare` prints and returns: help, usage errors, info, doctor.

The first argument is the program. Runs do not see HANARE_* variables of the caller.
"""

import ctypes
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

import support

BINARY = os.path.abspath(sys.argv.pop(1))
OPTIONS = ["local", "store", "secret_file", "server_timeout_ms", "block", "engine", "read_ahead",
           "replacement", "background", "io", "direct", "allow_tmpfs", "control", "syscalls", "log_level"]


def run(*arguments, environment=None, program=BINARY, **more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith("HANARE_") and name not in ("TMPDIR", "XDG_CONFIG_HOME")}
    clean["HOME"] = "/nonexistent"
    clean.update(environment or {})
    return subprocess.run([program, *arguments], capture_output=True, text=True, env=clean,
                          timeout=60, check=False, **more)


def run_as_nobody(*arguments, environment=None, **more):
    with support.reachable_copy(BINARY) as (program, library):
        environment = {**(environment or {}), "LD_LIBRARY_PATH": library}
        return run(*arguments, environment=environment, program=program, **support.AS_NOBODY,
                   **more)


def users():
    """Runners as this user, and as an ordinary one."""
    return [run] + ([run_as_nobody] if os.geteuid() == 0 else [])


needs_first_place = unittest.skipIf(
    support.SANITIZER, "a sanitizer insists on being the first that is preloaded")


def info(*arguments, environment=None):
    result = run("info", "--json", *arguments, environment=environment)
    assert result.returncode == 0, result.stderr
    return {row["option"]: row for row in json.loads(result.stdout)["options"]}


def refuse_userfaultfd_and_io_uring():
    """In the child before exec: seccomp refuses both with EPERM, as container profiles do."""
    load, equal, ret = 0x20, 0x15, 0x06
    userfaultfd, io_uring_setup = 323, 425
    code = [(load, 0, 0, 0), (equal, 1, 0, userfaultfd), (equal, 0, 1, io_uring_setup),
            (ret, 0, 0, 0x00050000 | 1), (ret, 0, 0, 0x7fff0000)]
    text = b"".join(struct.pack("HBBI", *line) for line in code)
    buffer = ctypes.create_string_buffer(text)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(code),
                                                      ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) != 0:
        raise OSError("no_new_privs")
    if libc.prctl(set_seccomp, filter_mode, program, 0, 0) != 0:
        raise OSError("seccomp")


class Usage(unittest.TestCase):
    def assert_bad_usage(self, arguments, *words, environment=None):
        result = run(*arguments, environment=environment)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("hanare: error: "), result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    def test_help_and_version(self):
        for arguments in (["--help"], ["info", "--help"], ["doctor", "-h"]):
            result = run(*arguments)
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("Usage: hanare", result.stdout)
        result = run("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^hanare \d+\.\d+\.\d+\n$")

    def test_without_subcommand(self):
        result = run()
        self.assertEqual((result.returncode, result.stdout), (2, ""))
        self.assertIn("Subcommands:", result.stderr)

    def test_help_knows_every_flag(self):
        text = run("info", "--help").stdout
        for option in OPTIONS:
            self.assertIn("--" + option.replace("_", "-"), text)

    def test_unknown_arguments(self):
        self.assert_bad_usage(["inof"], "'inof'")
        self.assert_bad_usage(["inf"], "'inf'", "did you mean 'info'?")
        self.assert_bad_usage(["info", "--blok", "1M"], "'--blok'", "did you mean '--block'?")
        self.assert_bad_usage(["info", "--blok=1M"], "did you mean '--block'?")
        self.assert_bad_usage(["info", "surplus"], "'surplus'", "; see hanare info --help")
        self.assert_bad_usage(["info", "doctor"], "'doctor'")
        self.assert_bad_usage(["xyzzy"], "allowed is run, launch, space, server, status, drain, ps, top, report, dsm-report, pool, info, doctor, demo or "
                              "bench")
        self.assert_bad_usage(["--block", "1M", "info"], "'--block' must come after hanare info")

    def test_names_of_benches(self):
        names = "resident, fault, fabric, intercept, numpy, pager, remote, space, stencil, dlm-test1, dlm, dlm-pagesize or dsm"
        self.assert_bad_usage(["bench"], f"needs a name: {names}", "; see hanare bench --help")
        self.assert_bad_usage(["bench", "xyzzy"], "'xyzzy'", f"allowed is {names}",
                              "; see hanare bench --help")
        self.assert_bad_usage(["bench", "residnt"], "did you mean 'resident'?")
        self.assert_bad_usage(["bench", "fault", "--jsn", "x"], "did you mean '--json'?",
                              "; see hanare bench fault --help")

    def test_numbers(self):
        for flag, most in (("--rounds", 99), ("--patience", 86400)):
            for value in ("x", "0", "-1", "1.5", str(most + 1), "99999999999999999999"):
                with self.subTest(flag=flag, value=value):
                    self.assert_bad_usage(["demo", flag, value], f"{flag}: '{value}' is ",
                                          f"allowed is a number from 1 to {most}")

    def test_values_missing_or_surplus(self):
        for command, flag in ((["info"], "--block"), (["demo"], "--rounds"),
                              (["demo"], "--size"), (["bench", "fault"], "--json")):
            pointer = f"; see hanare {' '.join(command)} --help"
            with self.subTest(command=command, flag=flag):
                for missing in ([flag], [flag + "="], [flag, flag]):
                    self.assert_bad_usage([*command, *missing], f"{flag}: its value is missing",
                                          pointer)
                self.assert_bad_usage([*command, flag, "1", flag, "2"],
                                      f"{flag}: is given more than once", pointer)
        self.assert_bad_usage(["info", "--block", "--io", "sync"], "--block: its value is missing")
        self.assert_bad_usage(["doctor", "--json=x"], "--json: takes no value, not 'x'",
                              "; see hanare doctor --help")
        self.assert_bad_usage(["demo", "--worker", "x"], "--worker")

    def test_bad_values_name_flag_value_and_what_is_allowed(self):
        cases = {
            "--local": ["0", "-1G", "12Q", "1e9", "99999999T", "2 G"],
            "--block": ["0", "3K", "2K", "8M", "-4K", "huge"],
            "--engine": ["fast", "AUTO"],
            "--read-ahead": ["-1", "1025", "1.5", "many"],
            "--replacement": ["lru", "round-robin"],
            "--background": ["true", "maybe"],
            "--io": ["aio"],
            "--direct": ["2", "maybe"],
            "--allow-tmpfs": ["si"],
            "--control": ["true", "maybe"],
            "--syscalls": ["true", "maybe"],
            "--log-level": ["loud"],
            "--store": ["/scratch", "disk:/x", "file:/x?size=0", "file:/x?sise=1G"],
        }
        for flag, values in cases.items():
            for value in values:
                with self.subTest(flag=flag, value=value):
                    self.assert_bad_usage(["info", f"{flag}={value}"], flag, value, "allowed is")
                    self.assert_bad_usage(["doctor", flag, value], flag, value, "allowed is")

    def test_auto_is_among_what_is_allowed(self):
        for flag, value in (("--local", "x"), ("--engine", "x"), ("--io", "x"), ("--store", "x"),
                            ("--store", "mirror(a,b)")):
            with self.subTest(flag=flag, value=value):
                self.assert_bad_usage(["info", flag, value], flag, "auto")

    def test_several_stores(self):
        for spec, why in (("mirror(file:/a)", "too few stores: at least 2"),
                          ("parity(4+1;file:/a)", "too few stores: at least 5"),
                          ("parity(file:/a,file:/b,file:/c)", "lacks 2+1;, 4+1; or 8+1;"),
                          ("tier(a,b)", "is of no known kind")):
            self.assert_bad_usage(["info", "--store", spec], "--store", why)
        spec = "tier(mirror(tcp://a,tcp://b),file:/x)"
        self.assertIn(spec, run("info", "--store", spec).stdout)

    def test_memory_servers_as_stores(self):
        self.assert_bad_usage(["info", "--store", "tcp://host:0"], "--store", "tcp://host:0", "port")
        self.assert_bad_usage(["info", "--store", "tcp://host?size=0"], "--store", "size 0")
        self.assertIn("tcp://host:1", run("info", "--store", "tcp://host:1").stdout)

    def test_bad_environment(self):
        self.assert_bad_usage(["info"], "HANARE_BLOCK", "'junk'", "allowed is",
                              environment={"HANARE_BLOCK": "junk"})

    def test_output_that_cannot_be_written(self):
        for arguments in (["info"], ["doctor", "--json"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                result = subprocess.run([BINARY, *arguments], stdout=full, stderr=subprocess.PIPE,
                                        text=True, check=False, timeout=60)
            self.assertEqual(result.returncode, 70)
            self.assertEqual(result.stderr, "hanare: error: cannot write to standard output: "
                                            "No space left on device\n")

    @support.needs_limit_of_files
    def test_output_beyond_the_limit_of_files(self):
        for limit in (0, 100):
            with tempfile.TemporaryFile() as file:
                result = subprocess.run([BINARY, "info"], stdout=file, stderr=subprocess.PIPE,
                                        text=True, check=False, timeout=60,
                                        preexec_fn=support.limit_files(limit))
            self.assertEqual(result.returncode, 70)
            self.assertEqual(result.stderr, "hanare: error: cannot write to standard output: "
                                            "File too large\n")

    def test_closed_standard_streams(self):
        for runner in users():
            for arguments in (["info"], ["doctor"], ["--help"]):
                with self.subTest(runner=runner.__name__, arguments=arguments):
                    result = runner(*arguments, preexec_fn=support.close_standard_streams)
                    self.assertEqual(result.returncode, 0)
            result = runner("info", "--block", "x", preexec_fn=support.close_standard_streams)
            self.assertEqual(result.returncode, 2)


class Info(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)

    def config(self, text):
        path = pathlib.Path(self.directory.name) / "hanare.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def test_every_option_once_with_source(self):
        rows = info()
        self.assertEqual(list(rows), OPTIONS)
        for name, row in rows.items():
            self.assertEqual(row["source"], "default")
            self.assertTrue(row["doc"] and row["allowed"] and row["value"])
            self.assertEqual(row["environment"], "HANARE_" + name.upper())
        self.assertEqual(rows["block"]["value"], "256K")
        self.assertEqual(rows["store"]["value"], "file:/var/tmp")
        self.assertRegex(rows["local"]["note"], r"^auto: 80 % of ")

    def test_text_has_the_same_values(self):
        text = run("info", "--local", "1G").stdout
        for name, row in info("--local", "1G").items():
            pattern = rf"(?m)^{name} +{re.escape(row['value'])} +{row['source']} "
            self.assertRegex(text, pattern)

    def test_says_what_tables_take(self):
        """No more for a block than the DLM paper's 32 bytes."""
        told = json.loads(run("info", "--json").stdout)["bookkeeping"]
        self.assertLess(0, told["block_bytes"])
        self.assertLess(told["block_bytes"], told["program_block_bytes"])
        self.assertLessEqual(told["program_block_bytes"], told["block_bytes_max"])
        self.assertEqual(told["block_bytes_max"], 32)
        tebibyte = (1 << 40) // (1 << 20) * told["block_bytes"] >> 20
        self.assertIn(f"{told['block_bytes']} bytes of local memory for each block",
                      run("info").stdout)
        self.assertIn(f"{tebibyte} MiB (", run("info", "--block", "1M").stdout)

    def test_precedence(self):
        path = self.config('block = "64K"\nread_ahead = 1\nio = "sync"\n')
        environment = {"HANARE_CONFIG": path, "HANARE_BLOCK": "128K", "HANARE_READ_AHEAD": "2"}
        rows = info("--block", "1M", environment=environment)
        found = {name: (rows[name]["value"], rows[name]["source"]) for name in OPTIONS}
        self.assertEqual(found["block"], ("1M", "flag --block"))
        self.assertEqual(found["read_ahead"], ("2", "environment HANARE_READ_AHEAD"))
        self.assertEqual(found["io"], ("sync", "file " + path))
        self.assertEqual(found["engine"], ("auto", "default"))

    def test_files_are_found_where_they_belong(self):
        home = pathlib.Path(self.directory.name)
        for variable, folder in (("XDG_CONFIG_HOME", home), ("HOME", home / ".config")):
            (folder / "hanare").mkdir(parents=True)
            path = folder / "hanare" / "hanare.toml"
            path.write_text('block = "64K"\n', encoding="utf-8")
            with self.subTest(variable=variable):
                rows = info(environment={variable: str(home)})
                self.assertEqual(rows["block"]["source"], f"file {path}")

    def test_current_directory_is_not_searched(self):
        self.config('block = "64K"\n')
        result = run("info", "--json", cwd=self.directory.name)
        rows = json.loads(result.stdout)["options"]
        self.assertEqual({row["source"] for row in rows}, {"default"})

    def test_bad_files(self):
        for text, word in (("blok = 1\n", "did you mean 'block'?"), ("block = \n", "not valid TOML"),
                           ("block = 3\n", "power of two"), ("read_ahead = 1.5\n", "read_ahead")):
            result = run("info", environment={"HANARE_CONFIG": self.config(text)})
            self.assertEqual(result.returncode, 2)
            self.assertIn(word, result.stderr)
            self.assertIn("hanare.toml", result.stderr)
        result = run("info", environment={"HANARE_CONFIG": "/nonexistent/x.toml"})
        self.assertEqual(result.returncode, 2)
        self.assertIn("/nonexistent/x.toml", result.stderr)

    def test_unknown_variable_is_a_warning(self):
        result = run("info", environment={"HANARE_BLOK": "1M"})
        self.assertEqual(result.returncode, 0)
        self.assertIn("hanare: warn: the environment variable 'HANARE_BLOK' is unknown",
                      result.stderr)
        self.assertIn("did you mean 'HANARE_BLOCK'?", result.stderr)
        result = run("info", "--log-level", "error", environment={"HANARE_BLOK": "1M"})
        self.assertEqual(result.stderr, "")
        result = run("info", environment={"HANARE_FOO": "1"})
        self.assertIn("'HANARE_FOO' is unknown", result.stderr)
        self.assertNotIn("did you mean", result.stderr)

    def test_variables_of_build_and_tests_are_no_noise(self):
        for name in ("HANARE_BINARY", "HANARE_TEST_SEED", "HANARE_NO_BOOTSTRAP"):
            self.assertEqual(run("info", environment={name: "1"}).stderr, "")

    def test_directory_of_the_store_is_named(self):
        odd = self.directory.name + "/odd?size=1G"
        os.mkdir(odd)
        for value, directory, note in (
                (None, "/var/tmp", "auto: directory /var/tmp, $TMPDIR is not set"),
                ("", "/var/tmp", "auto: directory /var/tmp, $TMPDIR is empty"),
                (odd, odd, f"auto: directory {odd}, from $TMPDIR")):
            environment = {} if value is None else {"TMPDIR": value}
            with self.subTest(value=value):
                rows = info(environment=environment)
                self.assertEqual(rows["store"]["note"], note)
                self.assertIn(f"directory {directory}", run("info", environment=environment).stdout)
                again = info("--store", rows["store"]["value"])
                self.assertEqual(again["store"]["value"], rows["store"]["value"])
                report = run("doctor", "--json", environment=environment).stdout
                checks = {c["check"]: c for c in json.loads(report)["checks"]}
                self.assertTrue(checks["store"]["found"].startswith(directory + ": "), checks)
                self.assertFalse(checks["pool"]["prevents"], checks["pool"])

    def test_slurm_limit_is_used(self):
        rows = info(environment={"SLURM_MEM_PER_NODE": "100"})
        self.assertEqual(rows["local"]["value"], "80M")
        self.assertIn("SLURM_MEM_PER_NODE", rows["local"]["note"])

    def test_values_that_are_not_text_do_not_break_json(self):
        result = subprocess.run([BINARY, b"info", b"--json", b"--store", b"file:/\xff\xfe"],
                                capture_output=True, check=False, timeout=60)
        self.assertEqual(result.returncode, 0)
        json.loads(result.stdout)


class Doctor(unittest.TestCase):
    def doctor(self, *arguments, **more):
        result = run("doctor", "--json", *arguments, **more)
        report = json.loads(result.stdout)
        checks = {check["check"]: check for check in report["checks"]}
        self.assertEqual(result.returncode, 0 if report["can_run"] else 1)
        self.assertEqual(report["can_run"], not any(c["prevents"] for c in checks.values()))
        return checks

    def test_every_check_says_what_it_found(self):
        checks = self.doctor()
        self.assertEqual(set(checks), {
            "kernel", "userfaultfd", "system calls", "io_uring", "memory limit", "store",
            "memory cgroup", "swap", "huge pages", "max_map_count", "overcommit", "limits",
            "SIGBUS", "CPUs", "user", "hanare run", "seccomp", "user dispatch", "ptrace", "pool"})
        for check in checks.values():
            self.assertTrue(check["found"] and check["use"], check)
        self.assertEqual(checks["kernel"]["found"], os.uname().release)

    def test_text_ends_with_the_verdict(self):
        result = run("doctor")
        verdict = "Hanare can run here." if result.returncode == 0 else "Hanare cannot run here"
        self.assertTrue(result.stdout.splitlines()[-1].startswith(verdict), result.stdout)

    def test_store_that_cannot_be_used(self):
        for spec, word in (("file:/nonexistent", "No such file"), ("file:/proc", "/proc"),
                           ("file:/etc/passwd", "Not a directory")):
            check = self.doctor("--store", spec)["store"]
            self.assertTrue(check["prevents"])
            self.assertIn(word, check["found"])

    def test_store_on_tmpfs(self):
        if not os.path.ismount("/dev/shm"):
            self.skipTest("/dev/shm is no mount here")
        self.assertTrue(self.doctor("--store", "file:/dev/shm")["store"]["prevents"])
        allowed = self.doctor("--store", "file:/dev/shm", "--allow-tmpfs", "true")["store"]
        self.assertFalse(allowed["prevents"])

    def test_budget_below_the_minimum(self):
        for value in ("512K", "1M"):
            checks = self.doctor("--local", value)
            self.assertTrue(checks["memory limit"]["prevents"])
            self.assertIn("more than 1 MiB", checks["memory limit"]["change"])
            self.assertTrue(checks["pool"]["prevents"])
        checks = self.doctor("--local", "2M")
        self.assertFalse(checks["memory limit"]["prevents"])
        self.assertFalse(checks["pool"]["prevents"], checks["pool"])

    @support.needs_limit_of_files
    def test_store_that_can_hold_nothing(self):
        for runner in users():
            for limit in (0, 1000, 100 << 10):
                with self.subTest(runner=runner.__name__, limit=limit):
                    result = runner("doctor", "--json", preexec_fn=support.limit_files(limit))
                    self.assertEqual(result.returncode, 1, result.stderr)
                    checks = {c["check"]: c for c in json.loads(result.stdout)["checks"]}
                    self.assertTrue(checks["store"]["prevents"])
                    self.assertIn("ulimit -f", checks["store"]["change"])
                    self.assertTrue(checks["pool"]["prevents"])
                    self.assertIn("ulimit -f", checks["pool"]["found"])

    def test_full_disk(self):
        fill = 'mount -t tmpfs -o size=1m none "$0" && head -c 900k /dev/zero >"$0/filler" && '
        with tempfile.TemporaryDirectory() as place:
            private = ["unshare", "--mount", "sh", "-c"]
            probe = subprocess.run([*private, fill + "true", place], capture_output=True,
                                   check=False)
            if probe.returncode != 0:
                self.skipTest(f"no mounts of one's own here: {probe.stderr}")
            done = subprocess.run([*private, fill + f'{BINARY} doctor --json --allow-tmpfs true '
                                   '--store "file:$0"', place], capture_output=True, text=True,
                                  check=False, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertTrue(checks["store"]["prevents"])
        self.assertIn("no room", checks["store"]["use"])
        self.assertTrue(checks["pool"]["prevents"])

    def test_size_beyond_the_room(self):
        checks = self.doctor("--store", "file:/var/tmp?size=4096T")
        self.assertTrue(checks["store"]["prevents"])
        self.assertIn("4 PiB were asked for", checks["store"]["use"])

    def test_seccomp_that_refuses(self):
        checks = self.doctor(preexec_fn=refuse_userfaultfd_and_io_uring)
        self.assertFalse(checks["userfaultfd"]["prevents"])
        self.assertIn("engine segv-remap", checks["userfaultfd"]["use"])
        self.assertIn("refused: Operation not permitted", checks["userfaultfd"]["found"])
        self.assertIn("seccomp", checks["userfaultfd"]["change"])
        self.assertFalse(checks["io_uring"]["prevents"])
        self.assertIn("refused", checks["io_uring"]["found"])
        self.assertIn("refused: userfaultfd, io_uring", checks["seccomp"]["found"])
        self.assertTrue(checks["seccomp"]["change"])
        checks = self.doctor("--io", "uring", preexec_fn=refuse_userfaultfd_and_io_uring)
        self.assertTrue(checks["io_uring"]["prevents"])

    def test_chosen_engine_is_shown(self):
        for engine in ("sigbus-move", "sigbus-copy", "segv-remap", "thread", "shared"):
            check = self.doctor("--engine", engine)["userfaultfd"]
            self.assertIn(engine, check["use"])

    def test_background_work_is_shown(self):
        for value in ("on", "off"):
            self.assertIn(f"background = {value}",
                          self.doctor("--background", value)["CPUs"]["use"])

    def test_system_calls_need_permission(self):
        if os.geteuid() != 0:
            self.skipTest("whether root may is not to be seen")
        self.assertIn("hanare_pin", self.doctor()["system calls"]["use"])
        self.assertIn("may be given", self.doctor("--engine", "thread")["system calls"]["use"])
        self.assertIn("may be given", self.doctor("--syscalls", "on")["system calls"]["use"])
        with open("/proc/sys/vm/unprivileged_userfaultfd", encoding="ascii") as file:
            if file.read().strip() != "0":
                self.skipTest("vm.unprivileged_userfaultfd allows it to everybody")
        done = run_as_nobody("doctor", "--json", "--engine", "thread")
        self.assertEqual(done.returncode, 1, done.stderr)
        checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertTrue(checks["userfaultfd"]["prevents"])
        self.assertIn("CAP_SYS_PTRACE", checks["userfaultfd"]["change"])
        self.assertIn("refused", checks["system calls"]["found"])
        self.assertIn("CAP_SYS_PTRACE", checks["pool"]["found"])

    def assert_programs_run(self, checks):
        self.assertRegex(checks["hanare run"]["found"],
                         r"^LD_PRELOAD works; in a trial \d+ system calls of \d+ modules are caught")
        self.assertEqual(checks["hanare run"]["change"], "")

    @needs_first_place
    def test_programs_are_tried(self):
        checks = self.doctor()
        self.assert_programs_run(checks)
        for name in ("user dispatch", "ptrace"):
            self.assertEqual((checks[name]["change"], checks[name]["prevents"]), ("", False))
        # Containers refuse more, and still programs run.
        self.assert_programs_run(self.doctor(preexec_fn=refuse_userfaultfd_and_io_uring))

    @needs_first_place
    def test_programs_are_tried_as_ordinary_user(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv to become an ordinary user")
        with support.reachable_copy(BINARY) as (program, place):
            library = pathlib.Path(BINARY).parents[1] / "libhanare-run.so"
            shutil.copy(library, place)
            done = subprocess.run(
                ["setpriv", "--reuid", str(support.NOBODY), "--regid", str(support.NOBODY),
                 "--clear-groups", program, "doctor", "--json"], capture_output=True, text=True,
                check=False, timeout=60, cwd="/",
                env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LD_LIBRARY_PATH": place})
        self.assertEqual(done.returncode, 0, done.stderr)
        checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        self.assert_programs_run(checks)
        self.assertIn("no CAP_SYS_PTRACE", checks["ptrace"]["found"])
        if checks["userfaultfd"]["found"].startswith("works"):
            self.assertIn("user mode only" if "refused" in checks["system calls"]["found"]
                          else "kernel mode too", checks["userfaultfd"]["found"])

    def test_library_that_cannot_be_used(self):
        missing = self.doctor(environment={"HANARE_RUN_LIBRARY": "/nonexistent/lib.so"})
        self.assertIn("/nonexistent/lib.so", missing["hanare run"]["found"])
        self.assertTrue(missing["hanare run"]["change"])
        self.assertFalse(missing["hanare run"]["prevents"])  # the API can be used
        with tempfile.NamedTemporaryFile(dir="/var/tmp") as empty:
            os.chmod(empty.name, 0o755)
            broken = self.doctor(environment={"HANARE_RUN_LIBRARY": empty.name})["hanare run"]
        self.assertIn("cannot be preloaded", broken["found"])
        self.assertTrue(broken["change"])

    def test_library_where_nothing_may_be_executed(self):
        library = pathlib.Path(BINARY).parents[1] / "libhanare-run.so"
        with tempfile.TemporaryDirectory() as place:
            private = ["unshare", "--mount", "sh", "-c"]
            mount = 'mount -t tmpfs -o noexec none "$0" && cp "$1" "$0/lib.so"'
            probe = subprocess.run([*private, mount, place, library], capture_output=True,
                                   check=False)
            if probe.returncode != 0:
                self.skipTest(f"no mounts of one's own here: {probe.stderr}")
            done = subprocess.run([*private, mount + f' && HANARE_RUN_LIBRARY="$0/lib.so" {BINARY} '
                                   'doctor --json', place, library], capture_output=True,
                                  text=True, check=False, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        checks = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertIn("noexec", checks["hanare run"]["change"])

    def test_engine_that_is_refused(self):
        check = self.doctor("--engine", "sigbus-copy",
                            preexec_fn=refuse_userfaultfd_and_io_uring)["userfaultfd"]
        self.assertTrue(check["prevents"])
        self.assertIn("engine sigbus-copy was asked for", check["use"])

    def test_mappings_that_limit_the_blocks(self):
        with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
            limit = int(file.read())
        def check(local):
            return self.doctor("--engine", "segv-remap", "--block", "4K",
                               "--local", str(local))["max_map_count"]
        few, many = check(limit // 4 * 4096), check(limit * 4096)
        self.assertEqual(few["change"], "")
        self.assertIn("blocks of 16 KiB instead of 4 KiB", many["use"])
        self.assertIn("vm.max_map_count=", many["change"])

    def test_ordinary_user(self):
        if os.geteuid() != 0:
            self.skipTest("is an ordinary user anyhow")
        report = json.loads(run_as_nobody("doctor", "--json").stdout)
        checks = {check["check"]: check for check in report["checks"]}
        self.assertEqual(checks["user"]["found"], f"user id {support.NOBODY}")
        self.assertIn("swapon is not allowed", checks["swap"]["found"])
        self.assertFalse(checks["pool"]["prevents"], checks["pool"])


if __name__ == "__main__":
    # Ends like Ctrl-C, so that temporary directories vanish.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    unittest.main()
