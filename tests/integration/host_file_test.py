# SPDX-License-Identifier: Apache-2.0
"""`hanare run -f HOSTS`: memory servers of a host file, started for one program.

What stands in for ssh is a script that runs the command here, or in a network namespace.
HANARE_MATV is a program of the C API whose result is known (examples/matv.c).
"""

import os
import pathlib
import random
import signal
import subprocess
import unittest

import support
from networks import THERE, TwoNetworks

HANARE = os.environ["HANARE_BINARY"]
MATV = os.environ["HANARE_MATV"]
SECONDS = 100
MIB = 1 << 20
# N x N doubles are 32 MiB, of which 8 MiB have room here.
MATV_ARGUMENTS = ("2048", "8")
# Notes the host and the command, and what only who looks into the process sees.
RSH = """#!/bin/sh
echo "$$ $1 $2" >>"$RSH_LOG"
cat /proc/$$/environ >>"$RSH_LOG.environment"
exec sh -c "$2"
"""


def processes_of(path):
    """Those whose environment has this log."""
    found = []
    for directory in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"RSH_LOG={path}".encode() in (directory / "environ").read_bytes():
                if support.is_running(int(directory.name)):
                    found.append(int(directory.name))
        except OSError:
            pass
    return found


class HostFile(support.InOwnPlace):
    def setUp(self):
        super().setUp()
        self.log = os.path.join(self.directory, "log")
        self.environment["RSH_LOG"] = self.log
        self.files = [self.log, self.log + ".environment"]
        self.rsh = self.file("rsh", RSH, 0o755)

    def tearDown(self):
        self.assertTrue(support.eventually(lambda: not processes_of(self.log), 20),
                        processes_of(self.log))
        for path in self.files:
            pathlib.Path(path).unlink(missing_ok=True)
        super().tearDown()

    def file(self, name, text, mode=0o644):
        path = os.path.join(self.directory, name)
        pathlib.Path(path).write_text(text, "utf-8")
        os.chmod(path, mode)
        self.files.append(path)
        return path

    def hosts(self, text):
        return self.file("hosts", text)

    def command(self, *arguments, rsh=None):
        return [HANARE, "run", "--rsh", rsh or self.rsh, *arguments]

    def run_on(self, hosts, *arguments, rsh=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.run(self.command("-f", hosts, *arguments, rsh=rsh), text=True,
                              capture_output=True, check=False, timeout=SECONDS,
                              env=self.environment, **options)

    def started(self):
        """[(process, host, command)] of the servers, as the log has them."""
        try:
            lines = pathlib.Path(self.log).read_text("utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [tuple(line.split(" ", 2)) for line in lines]

    def assert_refused(self, result, *words):
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertEqual(self.started(), [])


class Programs(HostFile):
    def test_program_on_one_server(self):
        hosts = self.hosts("# computing\nmaster 32\n127.0.0.1 64\nlocalhost 64\n")
        result = self.run_on(hosts, "-n", "2", MATV, *MATV_ARGUMENTS)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("matv: 2048 x 2048, 32 MiB", result.stdout)
        (_, host, command), = self.started()
        self.assertEqual(host, "127.0.0.1")
        self.assertIn("'--memory' '64M'", command)

    def test_unmodified_program(self):
        """GNU sort, with its buffer on the server."""
        lines = [f"{random.getrandbits(128):032x}\n" for _ in range(200_000)]
        path = self.file("lines", "".join(lines))
        hosts = self.hosts("master 12\n127.0.0.1 128\n")
        self.environment["LC_ALL"] = "C"
        result = self.run_on(hosts, "--block", "64K", "sort", "--parallel=1", "-S", "40M", path)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout == "".join(sorted(lines)))
        self.assertRegex(result.stderr, r"^hanare: peak far memory .* out; .*\n$")

    def test_what_the_program_finds(self):
        hosts = self.hosts("master 48\n127.0.0.1 16\n")
        script = ("echo $HANARE_LOCAL $HANARE_STORE; echo $HANARE_SECRET_FILE; "
                  "stat -L -c '%a %s' $HANARE_SECRET_FILE; "
                  "od -An -v -tx1 $HANARE_SECRET_FILE | tr -d ' \\n'")
        result = self.run_on(hosts, "sh", "-c", script)
        self.assertEqual(result.returncode, 0, result.stderr)
        options, path, mode, secret = result.stdout.splitlines()
        self.assertRegex(options, rf"^{48 * MIB} tcp://127\.0\.0\.1:[0-9]+$")
        self.assertEqual(mode, "600 32")
        self.assertFalse(os.path.exists(path))
        self.assertRegex(secret, r"^[0-9a-f]{64}$")
        # Nobody else can have read it.
        self.assertNotIn(secret, pathlib.Path(self.log).read_text("utf-8"))
        self.assertNotIn(secret.encode(),
                         pathlib.Path(self.log + ".environment").read_bytes())
        again = self.run_on(hosts, "sh", "-c", script)
        self.assertNotEqual(again.stdout.splitlines()[3], secret)

    def test_local_memory(self):
        hosts = self.hosts("master 48\n127.0.0.1 16\n")
        result = self.run_on(hosts, "--local", "40M", "sh", "-c", "echo $HANARE_LOCAL")
        self.assertEqual(result.stdout, f"{40 * MIB}\n", result.stderr)

    def test_computing_host_alone(self):
        hosts = self.hosts("master 48\n127.0.0.1 16\n")
        result = self.run_on(hosts, "-n", "1", "sh", "-c", "echo $HANARE_LOCAL $HANARE_STORE")
        self.assertRegex(result.stdout, rf"^{48 * MIB} file:")
        self.assertEqual(self.started(), [])

    def test_more_than_all_hosts_offer(self):
        hosts = self.hosts("master 32\n127.0.0.1 16\n")
        result = self.run_on(hosts, MATV, *MATV_ARGUMENTS)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn("matv: allocate: ", result.stderr)
        self.assertIn("memory server tcp://127.0.0.1:", result.stderr)

    def test_several_servers(self):
        hosts = self.hosts("master 32\n127.0.0.1 16\nlocalhost 64\n")
        result = self.run_on(hosts, "-n", "3", MATV, *MATV_ARGUMENTS)
        self.assertEqual(result.returncode, 0, result.stderr)
        # At the same time.
        self.assertEqual(sorted(host for _, host, _ in self.started()), ["127.0.0.1", "localhost"])
        shown = self.run_on(hosts, "sh", "-c", "echo $HANARE_STORE")
        self.assertRegex(shown.stdout,
                         r"^tier\(tcp://127\.0\.0\.1:[0-9]+,tcp://127\.0\.0\.1:[0-9]+\)$")

    def test_statuses_are_the_programs(self):
        hosts = self.hosts("master 32\n127.0.0.1 16\n")
        self.assertEqual(self.run_on(hosts, "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(self.run_on(hosts, "sh", "-c", "kill -SEGV $$").returncode,
                         -signal.SIGSEGV)
        # The servers, which nobody needs, are not even started.
        before = len(self.started())
        self.assertEqual(self.run_on(hosts, "/nonexistent").returncode, 127)
        self.assertEqual(len(self.started()), before)


class Ends(HostFile):
    SCRIPT = "echo up; exec sleep 1000"

    def start_on(self, hosts):
        process = subprocess.Popen(self.command("-f", hosts, "sh", "-c", self.SCRIPT), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.environment)
        self.addCleanup(process.communicate, timeout=SECONDS)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "up\n")
        (server, _, _), = self.started()
        self.assertTrue(support.is_running(int(server)))
        return process, int(server)

    def check_end(self, number, status):
        process, server = self.start_on(self.hosts("master 32\n127.0.0.1 16\n"))
        process.send_signal(number)
        process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, status)
        self.assertTrue(support.eventually(lambda: not support.is_running(server), 20))

    def test_killed(self):
        self.check_end(signal.SIGKILL, -signal.SIGKILL)

    def test_told_to_end(self):
        self.check_end(signal.SIGTERM, -signal.SIGTERM)

    def test_behind_another_process(self):
        """As behind sshd: the server is no child of what is killed."""
        self.rsh = self.file("indirect", RSH.replace('exec sh -c "$2"', 'sh -c "$2"; exit $?'),
                             0o755)
        self.check_end(signal.SIGKILL, -signal.SIGKILL)

    def test_server_ends_before_the_program_does(self):
        """When `hanare run` is over, so is the server."""
        result = self.run_on(self.hosts("master 32\n127.0.0.1 16\n"), "true")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        (server, _, _), = self.started()
        self.assertFalse(support.is_running(int(server)))


class Refusals(HostFile):
    def test_bad_files(self):
        for line, words in (("b", "hosts:2: lacks the MB"), ("b x", "hosts:2: 'x' is no number"),
                            ("b 0", "hosts:2: '0' is out of range"),
                            ("-oX=y 4", "hosts:2: '-oX=y' is no name of a host"),
                            ("b 1 2", "hosts:2: '2' is too much"),
                            ("127.0.0.1 3", "hosts:2: '3' is too little for a server"),
                            ("no-such-host.invalid 8", "hosts:2: no-such-host.invalid: ")):
            with self.subTest(line=line):
                self.assert_refused(self.run_on(self.hosts(f"a 32\n{line}\n"), "true"), words)
        self.assert_refused(self.run_on(self.hosts(""), "true"), "hosts names no host")
        self.assert_refused(self.run_on("/nonexistent", "true"), "-f: ", "/nonexistent")

    def test_bad_usage(self):
        hosts = self.hosts("a 32\n127.0.0.1 16\n")
        self.assert_refused(self.run_on(hosts, "-n", "3", "true"), "-n 3: ", "names 2 hosts")
        self.assert_refused(self.run_on(hosts, "-n", "0", "true"), "-n: '0'")
        self.assert_refused(self.run_on(hosts, "--store", "file:/var/tmp", "true"), "--store and -f")
        self.assert_refused(self.run_on(hosts, "--rsh", " ", "true", rsh="x"), "--rsh")
        self.assert_refused(self.run_on(hosts, "true", rsh="/nonexistent/rsh"), "/nonexistent/rsh")
        self.assert_refused(self.run_on(self.hosts("a 1\n127.0.0.1 16\n"), "true"),
                            "local (host file ", "does not hold 16 blocks")
        for flags in (("-n", "2"), ("--rsh", "ssh"), ("--remote", "/x")):
            result = subprocess.run([HANARE, "run", *flags, "true"], text=True, check=False,
                                    capture_output=True, timeout=SECONDS, env=self.environment)
            self.assert_refused(result, f"{flags[0]} needs -f")

    def check_failure(self, script, *words):
        rsh = self.file("bad", "#!/bin/sh\n" + script, 0o755)
        marker = os.path.join(self.directory, "ran")
        result = self.run_on(self.hosts("a 32\n127.0.0.1 16\n"), "touch", marker, rsh=rsh)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertFalse(os.path.exists(marker))
        for word in words:
            self.assertIn(word, result.stderr)
        return result.stderr

    def test_no_server(self):
        self.check_failure("echo 'no route' >&2; exit 255\n", "no route\n",
                           "hosts:2: 127.0.0.1: ", "ended with exit status 255 before")
        self.check_failure("exec 0</dev/null; sh -c \"$2\"\n", "--attached: standard input")
        # Shells may say something first.
        chatty = self.file("chatty", RSH.replace("exec", "echo 'Welcome!'; exec"), 0o755)
        result = self.run_on(self.hosts("a 32\n127.0.0.1 16\n"), "true", rsh=chatty)
        self.assertEqual(result.returncode, 0, result.stderr)


class AttachedServer(HostFile):
    def server(self, *arguments, **options):
        return subprocess.run([HANARE, "server", "--memory", "8M", "--listen", "127.0.0.1:0",
                               "--attached", *arguments], capture_output=True, text=True,
                              check=False, timeout=SECONDS, env=self.environment, **options)

    def test_ends_with_its_input(self):
        result = self.server(input="5a" * 32 + "\n")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^hanare server: tcp://127\.0\.0\.1:[0-9]+ offers 8 MiB\n$")

    def test_bad_input(self):
        self.assert_refused(self.server(input="5a\n"), "--attached: standard input: ")
        self.assert_refused(self.server(input="x" * 64 + "\n"), "a secret is 32 bytes")
        secret = self.file("secret", "5a" * 32, 0o600)
        self.assert_refused(self.server("--secret-file", secret, input=""), "exclude each other")


class OtherMachine(HostFile):
    """Program and server in networks of their own."""

    def test_program_and_server(self):
        networks = TwoNetworks(self)
        script = RSH.replace("exec sh", "exec " + " ".join(networks.in_there("sh")))
        rsh = self.file("netns", script, 0o755)
        hosts = self.hosts(f"master 32\n{THERE} 64\n")
        command = self.command("-f", hosts, MATV, *MATV_ARGUMENTS, rsh=rsh)
        result = subprocess.run(networks.in_here(*command), text=True, capture_output=True,
                                check=False, timeout=SECONDS, env=self.environment,
                                stdin=subprocess.DEVNULL)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("matv: 2048 x 2048", result.stdout)
        (_, host, text), = self.started()
        self.assertEqual(host, THERE)
        self.assertIn("'--listen' '0.0.0.0:0'", text)


if __name__ == "__main__":
    unittest.main()
