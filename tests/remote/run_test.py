# SPDX-License-Identifier: Apache-2.0
"""`hanare run` with memory servers as the store: programs do what they do plainly, whatever becomes
of their children, and end by one clear line when the server is gone.

INTERCEPT_PROGRAMS are the programs of tests/intercept, which verify what they do themselves.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import unittest

HANARE = os.environ["HANARE_BINARY"]
PROGRAMS = pathlib.Path(os.environ["INTERCEPT_PROGRAMS"])
SECONDS = 120 * int(os.environ.get("INTERCEPT_WORK", "1"))
MIB = 1 << 20
NOBODY = "65534"
# That every user may start.
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or sys.executable

# More than the local memory of any test, written in an order and read in another.
SCRIPT = """
import hashlib, random, sys
seen = random.Random(5)
blocks = [seen.randbytes(1 << 16) for _ in range({blocks})]
order = list(range(len(blocks)))
for _ in range(2):
    seen.shuffle(order)
    digest = hashlib.sha256()
    for at in order:
        digest.update(blocks[at])
    print(digest.hexdigest(), flush=True)
"""

# Children that take what was theirs along when they are killed, in the middle of writing, while the
# parent goes on in what they leave.
KILLED = """
import hashlib, os, random, signal, sys
seen = random.Random(int(sys.argv[1]))
data = bytearray(seen.randbytes(48 << 20))
whole = hashlib.sha256(data).hexdigest()
for turn in range(12):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        own = random.Random(turn)
        while True:
            for at in range(0, len(data), 4096):
                data[at:at + 8] = own.randbytes(8)
                if at == 16 << 20:
                    os.write(writer, b"x")
    os.close(writer)
    os.read(reader, 1)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    os.close(reader)
    assert os.WTERMSIG(status) == signal.SIGKILL
    # In their place.
    more = [seen.randbytes(1 << 20) for _ in range(24)]
    sums = [hashlib.sha256(each).digest() for each in more]
    assert hashlib.sha256(data).hexdigest() == whole
    assert [hashlib.sha256(each).digest() for each in more] == sums
print(whole)
"""


def clean_environment():
    return {name: value for name, value in os.environ.items()
            if not name.startswith("HANARE_") and name != "LD_PRELOAD"}


class Server:
    def __init__(self, process, url):
        self.process = process
        self.url = url

    def status(self, *arguments):
        result = subprocess.run([HANARE, "status", "--json", self.url, *arguments],
                                capture_output=True, check=True, env=clean_environment(),
                                timeout=SECONDS)
        return json.loads(result.stdout)


class Base(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="hanare-run-server-", dir="/var/tmp")
        self.addCleanup(shutil.rmtree, self.place)
        os.chmod(self.place, 0o777)

    def secret(self, name="secret"):
        path = os.path.join(self.place, name)
        if not os.path.exists(path):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(os.urandom(32))
        return path

    @contextlib.contextmanager
    def serving(self, memory="512M", secret=None):
        command = [HANARE, "server", "--memory", memory, "--listen", "127.0.0.1:0"]
        if secret:
            command += ["--secret-file", secret]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                              env=clean_environment()) as process:
            try:
                found = re.match(r"hanare server: (tcp://\S+) offers", process.stdout.readline())
                self.assertTrue(found)
                yield Server(process, found[1])
            finally:
                process.kill()

    @contextlib.contextmanager
    def several(self, count, secret=None, memory="256M"):
        with contextlib.ExitStack() as stack:
            yield [stack.enter_context(self.serving(memory, secret)) for _ in range(count)]

    def command(self, server, *program, secret=None, local="20M", options=()):
        command = [HANARE, "run", "--local", local, "--store", getattr(server, "url", server),
                   "--stats", os.path.join(self.place, "stats.json"), *options]
        if secret:
            command += ["--secret-file", secret]
        return [*command, "--", *program]

    def run_in_session(self, command, **more):
        """Status, standard output and errors; whatever is left of the session is killed."""
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, cwd=self.place,
                              env=clean_environment(), start_new_session=True,
                              **more) as process:
            try:
                output, errors = process.communicate(timeout=SECONDS)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        return process.returncode, output, errors

    def totals(self):
        text = pathlib.Path(self.place, "stats.json").read_text("utf-8")
        return json.loads(text)["totals"]

    def compare(self, *program, far_mib=40, status=0, **more):
        """Plainly and on servers, without and with a secret."""
        expected = self.run_in_session(program)
        self.assertEqual(expected[0], status, expected[2])
        for secret in (None, self.secret()):
            with self.subTest(secured=secret is not None), self.serving(secret=secret) as server:
                command = self.command(server, *program, secret=secret, **more)
                result = self.run_in_session(command)
                self.assertEqual(result[:2], expected[:2], result[2])
                self.assertRegex(result[2], r"\Ahanare: peak far memory [^\n]*\n\Z")
                totals = self.totals()
                self.assertGreater(totals["far_bytes_peak"], far_mib * MIB)
                self.assertGreater(totals["read_bytes"], 0)
                self.assertGreater(totals["written_bytes"], 0)
                self.assertTrue(self.comes_to_nothing(server, secret))

    @staticmethod
    def comes_to_nothing(server, secret=None):
        """Whether the server has all of its memory back."""
        options = ["--secret-file", secret] if secret else []
        while server.status(*options)["leases"]:
            pass
        return True


class Programs(Base):
    def test_script(self):
        self.compare(sys.executable, "-S", "-c", SCRIPT.format(blocks=1000))

    def test_sort(self):
        lines = os.path.join(self.place, "lines")
        with open(lines, "w", encoding="ascii") as file:
            for i in range(600_000):
                file.write(f"{i * 2654435761 % (1 << 32):010}\n")
        self.compare("sort", "--parallel=2", "-S", "90M", lines, far_mib=20, local="12M")

    def test_database(self):
        script = """
            import sqlite3
            base = sqlite3.connect(":memory:")
            base.execute("create table t (a integer, b text)")
            base.executemany("insert into t values (?, ?)",
                             ((i * 7919 % 100003, "x" * 300) for i in range(120000)))
            base.execute("create index i on t (a)")
            print(base.execute("select sum(a), count(distinct a), sum(length(b)) from t").fetchall())
            print(base.execute("select count(*) from t where a between 5 and 50000").fetchall())
            """
        self.compare(sys.executable, "-c", textwrap.dedent(script), far_mib=30)

    def test_what_is_started_by_others(self):
        script = SCRIPT.format(blocks=800)
        self.compare("sh", "-c", f"'{sys.executable}' -S -c '{script}'; echo $?")

    def test_threads(self):
        self.compare(PROGRAMS / "races")

    def ordinary_user(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv to become an ordinary user")
        user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
        for needed in (HANARE, PYTHON):
            if subprocess.run([*user, "test", "-x", needed], check=False,
                              timeout=60).returncode != 0:
                self.skipTest(f"{needed} is closed to other users")
        return user

    def test_as_ordinary_user(self):
        user = self.ordinary_user()
        program = [PYTHON, "-S", "-c", SCRIPT.format(blocks=800)]
        expected = self.run_in_session(program)
        for secret in (None, self.secret()):
            with self.subTest(secured=secret is not None), self.serving(secret=secret) as server:
                own = secret and shutil.copy(secret, os.path.join(self.place, "own"))
                if own:
                    os.chown(own, int(NOBODY), int(NOBODY))
                    os.chmod(own, 0o600)
                result = self.run_in_session([*user, *self.command(server, *program, secret=own)])
                self.assertEqual(result[:2], expected[:2], result[2])
                self.assertRegex(result[2], r"\Ahanare: peak far memory [^\n]*\n\Z")

    def test_program_of_another_user(self):
        """Who knows nothing of the secret and can look into nothing of `hanare run`."""
        program = [*self.ordinary_user(), PYTHON, "-S", "-c", SCRIPT.format(blocks=1000) + """
status = dict(line.split(":") for line in open("/proc/self/status"))
print(status["Uid"].split()[0], int(status["RssAnon"].split()[0]) < 45 << 10)
"""]
        for secret in (None, self.secret()):
            with self.subTest(secured=secret is not None), self.serving(secret=secret) as server:
                result = self.run_in_session(self.command(server, *program, secret=secret))
                self.assertEqual(result[0], 0, result[2])
                self.assertRegex(result[2], r"\Ahanare: warn: the other programs of hanare run are "
                                            r"not found [^\n]*\n\Z")
                self.assertTrue(result[1].endswith(f"\n{NOBODY} True\n"), result[1])


class Forks(Base):
    def test_generations_many_killed_and_busy(self):
        self.compare(PROGRAMS / "forks")

    def test_files_that_are_forked(self):
        self.compare(PROGRAMS / "forked_files")

    def test_exec(self):
        self.compare(PROGRAMS / "exec", local="64M", status=9)

    def test_killed_while_they_write(self):
        self.compare(sys.executable, "-S", "-c", KILLED, "7", far_mib=60)

    def test_killed_where_all_of_the_servers_memory_is_used_again(self):
        expected = self.run_in_session([sys.executable, "-S", "-c", KILLED, "8"])
        for secret in (None, self.secret()):
            with self.serving(memory="192M", secret=secret) as server:
                command = self.command(server, sys.executable, "-S", "-c", KILLED, "8",
                                       secret=secret)
                result = self.run_in_session(command)
                self.assertEqual(result[:2], expected[:2], result[2])


class Several(Base):
    """Several stores as one."""

    def specs(self, servers):
        a, b, c = (server.url for server in servers)
        return {"tier": f"tier({a}?size=32M,{b})",
                "before_file": f"tier({a}?size=32M,file:{self.place})",
                "mirror": f"mirror({a},{b})",
                "parity": f"parity(2+1;{a},{b},{c})",
                "nested": f"tier(mirror({a}?size=32M,{b}?size=32M),{c})"}

    def compare_all(self, *program, stores=("tier", "before_file", "mirror", "parity", "nested")):
        expected = self.run_in_session(program)
        self.assertEqual(expected[0], 0, expected[2])
        for secret in (None, self.secret()):
            with self.several(3, secret) as servers:
                for name in stores:
                    spec = self.specs(servers)[name]
                    with self.subTest(store=name, secured=secret is not None):
                        result = self.run_in_session(self.command(spec, *program, secret=secret))
                        self.assertEqual(result[:2], expected[:2], result[2])
                        self.assertRegex(result[2], r"\Ahanare: peak far memory [^\n]*\n\Z")
                        self.assertGreater(self.totals()["written_bytes"], 0)
                        for server in servers:
                            self.assertTrue(self.comes_to_nothing(server, secret))

    def test_script(self):
        self.compare_all(sys.executable, "-S", "-c", SCRIPT.format(blocks=1000))

    def test_children_killed_while_they_write(self):
        self.compare_all(sys.executable, "-S", "-c", KILLED, "9", stores=("tier", "parity"))

    def test_flags_are_an_order(self):
        program = [sys.executable, "-S", "-c", SCRIPT.format(blocks=1000)]
        expected = self.run_in_session(program)
        with self.several(2) as (first, second):
            command = self.command(first.url + "?size=32M", *program,
                                   options=["--store", second.url])
            result = self.run_in_session(command)
            self.assertEqual(result[:2], expected[:2], result[2])

    def test_one_is_lost(self):
        script = SCRIPT.format(blocks=1500) + """
import os
def wait():
    sys.stdin.readline()
wait()
if os.fork() == 0:
    for at in order:
        blocks[at] = seen.randbytes(1 << 16)
    os._exit(0)
print(os.wait()[1])
for at in order:
    digest.update(blocks[at])
print(digest.hexdigest())
"""
        program = [sys.executable, "-S", "-c", script]
        expected = self.run_in_session(program)
        for lost, secret in enumerate((None, self.secret())):
            for kind in ("mirror", "parity"):
                with self.several(3, secret) as servers, \
                     self.subTest(store=kind, lost=lost, secured=secret is not None):
                    self.lose_one(self.specs(servers)[kind], servers[lost], program, secret,
                                  expected[1])

    def lose_one(self, spec, lost, program, secret, expected):
        command = self.command(spec, *program, secret=secret)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True,
                              env=clean_environment()) as process:
            try:
                output = "".join(process.stdout.readline() for _ in range(2))
                lost.process.kill()
                lost.process.wait()
                rest, errors = process.communicate("\n", timeout=SECONDS)
            finally:
                process.kill()
        self.assertEqual((process.returncode, output + rest), (0, expected), errors)
        self.assertIn(f"warn: memory server {lost.url} has ended the connection", errors)
        self.assertLessEqual(len(errors.splitlines()), 4, errors)


class Moving(Base):
    """What members have that are lost, or leave, moves to others while the program runs."""

    WAITING = SCRIPT.format(blocks=700) + """
sys.stdin.readline()
for at in order:
    digest.update(blocks[at])
print(digest.hexdigest())
"""

    @contextlib.contextmanager
    def running(self, spec, script, secret):
        """The program, once all of its memory is in use."""
        command = self.command(spec, sys.executable, "-S", "-c", script, secret=secret)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True,
                              env=clean_environment()) as process:
            try:
                process.said = "".join(process.stdout.readline() for _ in range(2))
                yield process
            finally:
                process.kill()

    def await_error(self, process, text):
        lines = []
        while not lines or text not in lines[-1]:
            lines.append(process.stderr.readline())
            self.assertTrue(lines[-1], lines)

    def finish(self, process, expected):
        output, errors = process.communicate("\n", timeout=SECONDS)
        self.assertEqual((process.returncode, process.said + output), (0, expected), errors)

    @staticmethod
    def kill(server):
        server.process.kill()
        server.process.wait()

    def spare(self, servers):
        a, b, c, d = (server.url for server in servers)
        return {"mirror": f"mirror({a},{b},{c})", "parity": f"parity(2+1;{a},{b},{c},{d})",
                "nested": f"tier(mirror({a},{b},{c}),file:{self.place})"}

    def each(self, stores):
        for secret in (None, self.secret()):
            for name in stores:
                with self.several(4, secret, "320M") as servers, \
                     self.subTest(store=name, secured=secret is not None):
                    yield self.spare(servers)[name], servers, secret

    def test_two_are_lost_one_after_the_other(self):
        expected = self.run_in_session([sys.executable, "-S", "-c", self.WAITING])[1]
        for spec, servers, secret in self.each(("mirror", "parity", "nested")):
            with self.running(spec, self.WAITING, secret) as process:
                self.kill(servers[0])
                self.await_error(process, "have moved to other members: nothing is missing")
                self.kill(servers[1])
                self.finish(process, expected)

    def test_they_wait_for_children(self):
        script = SCRIPT.format(blocks=700) + """
import os
if os.fork() == 0:
    for at in order:
        blocks[at] = seen.randbytes(1 << 16)
    print("there", flush=True)
    sys.stdin.readline()
    os._exit(0)
os.wait()
sys.stdin.readline()
for at in order:
    digest.update(blocks[at])
print(digest.hexdigest())
"""
        plain = [sys.executable, "-S", "-c", script]
        expected = self.run_in_session(plain)[1]
        for spec, servers, secret in self.each(("mirror", "parity")):
            with self.running(spec, script, secret) as process:
                process.said += process.stdout.readline()
                self.kill(servers[0])
                self.await_error(process, "it is lost")
                process.stdin.write("\n")
                process.stdin.flush()
                self.await_error(process, "have moved to other members: nothing is missing")
                self.kill(servers[1])
                self.finish(process, expected)

    def test_drained_servers_are_left(self):
        expected = self.run_in_session([sys.executable, "-S", "-c", self.WAITING])[1]
        for secret in (None, self.secret()):
            options = ["--secret-file", secret] if secret else []
            for name in ("tier", "mirror", "parity"):
                with self.several(4, secret, "320M") as servers, \
                     self.subTest(store=name, secured=secret is not None):
                    spec = {**self.spare(servers),
                            "tier": f"tier({servers[0].url},{servers[1].url})"}[name]
                    with self.running(spec, self.WAITING, secret) as process:
                        subprocess.run([HANARE, "drain", servers[0].url, *options], check=True,
                                       capture_output=True, timeout=SECONDS,
                                       env=clean_environment())
                        self.assertTrue(self.comes_to_nothing(servers[0], secret))
                        self.kill(servers[0])
                        self.finish(process, expected)

    @staticmethod
    def program_of(process):
        return pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii").strip()

    def add(self, process, spec):
        return subprocess.run([HANARE, "pool", "add", self.program_of(process), spec],
                              capture_output=True, text=True, check=False, timeout=SECONDS,
                              env=clean_environment())

    def request(self, process, line):
        """Of its control socket, without the command that asks otherwise."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(SECONDS)
            client.connect(f"\0hanare/{os.geteuid()}/program-{self.program_of(process)}")
            client.sendall(f"hanare/1 {line}\n".encode("ascii"))
            return b"".join(iter(lambda: client.recv(65536), b"")).decode("utf-8")

    def assert_added(self, process, spec):
        added = self.add(process, spec)
        self.assertEqual((added.returncode, added.stderr), (0, ""))
        self.assertEqual(added.stdout, f"process {self.program_of(process)}: {spec} has been added\n")

    def test_one_more_is_added(self):
        expected = self.run_in_session([sys.executable, "-S", "-c", self.WAITING])[1]
        for secret in (None, self.secret()):
            with self.several(4, secret, "320M") as servers:
                a, b, c, d = (server.url for server in servers)
                for spec, lost in ((f"mirror({a},{b})", servers[0]), (f"mirror({b},{c})", servers[1])):
                    with self.subTest(store=spec, secured=secret is not None), \
                         self.running(spec, self.WAITING, secret) as process:
                        self.kill(lost)
                        self.await_error(process, "it is lost")
                        again = self.add(process, c)
                        self.assertIn("among the members" if spec.endswith(f"{c})") else "has been added",
                                      again.stdout + again.stderr)
                        self.assert_added(process, d)
                        self.await_error(process, "have moved to other members: nothing is missing")
                        if lost is servers[1]:
                            self.kill(servers[2])
                        self.finish(process, expected)

    def test_room_is_added(self):
        """The other server is nearly full, and the first can be left all the same."""
        expected = self.run_in_session([sys.executable, "-S", "-c", self.WAITING])[1]
        with self.several(2, None, "320M") as servers:
            spec = f"tier({servers[0].url},{servers[1].url}?size=8M)"
            with self.running(spec, self.WAITING, None) as process:
                self.assert_added(process, f"file:{self.place}")
                subprocess.run([HANARE, "drain", servers[0].url], check=True, capture_output=True,
                               timeout=SECONDS, env=clean_environment())
                self.assertTrue(self.comes_to_nothing(servers[0], None))
                self.kill(servers[0])
                self.finish(process, expected)

    def test_children_have_what_was_added(self):
        script = self.WAITING + """
import os
for is_killed in (False, True):
    sys.stdin.readline()
    child = os.fork()
    if child == 0:
        for at in order:
            blocks[at] = blocks[at][::-1]
        for at in order:
            digest.update(blocks[at])
        print(digest.hexdigest(), flush=True)
        if is_killed:
            os.kill(os.getpid(), 9)
        os._exit(0)
    os.wait()
    more = [seen.randbytes(1 << 16) for _ in range(300)]
    for block in blocks + more:
        digest.update(block)
    print(digest.hexdigest(), flush=True)
"""
        plain = subprocess.run([sys.executable, "-S", "-c", script], input="\n" * 3, check=True,
                               stdout=subprocess.PIPE, text=True, timeout=SECONDS)
        for secret in (None, self.secret()):
            with self.several(4, secret, "320M") as servers:
                a, b, c, d = (server.url for server in servers)
                spec = f"tier({a}?size=16M,file:{self.place})"
                with self.subTest(secured=secret is not None), \
                     self.running(spec, script, secret) as process:
                    self.assert_added(process, f"mirror({b},{c})")
                    self.assert_added(process, d)
                    subprocess.run([HANARE, "drain", a] +
                                   (["--secret-file", secret] if secret else []), check=True,
                                   capture_output=True, timeout=SECONDS, env=clean_environment())
                    self.assertTrue(self.comes_to_nothing(servers[0], secret))
                    self.kill(servers[0])
                    output, errors = process.communicate("\n" * 3, timeout=SECONDS)
                    self.assertEqual((process.returncode, process.said + output),
                                     (0, plain.stdout), errors)

    def test_silent_servers_are_not_added(self):
        expected = self.run_in_session([sys.executable, "-S", "-c", self.WAITING])[1]
        with self.several(3, None, "320M") as servers:
            a, b, c = (server.url for server in servers)
            with self.running(f"mirror({a},{b})", self.WAITING, None) as process:
                servers[2].process.send_signal(signal.SIGSTOP)
                refused = self.add(process, c)
                # Of one that falls silent after that, the program finds it out.
                self.assertIn(" ok ", self.request(process, f"add {c}"))
                while '"waiting":1' in (outcome := self.request(process, "added")):
                    pass
                servers[2].process.send_signal(signal.SIGCONT)
                self.assertEqual((refused.returncode, refused.stderr), (
                    2, f"hanare: error: {c} does not answer within 5 s\n"))
                self.assertIn(f"memory server {c} does not answer", outcome)
                self.assert_added(process, c)
                self.finish(process, expected)

    def test_what_cannot_be_added(self):
        script = self.WAITING + """
import os
child = os.fork()
if child == 0:
    print("there", flush=True)
    sys.stdin.readline()
    os._exit(0)
os.wait()
"""
        with self.several(2, None, "320M") as servers:
            a, b = (server.url for server in servers)
            with self.running(a, self.WAITING, None) as process:
                refused = self.add(process, b)
                self.assertEqual(refused.returncode, 2)
                self.assertIn("it has to be of several", refused.stderr)
            with self.running(f"tier(file:{self.place},file:{self.place})", script, None) as process:
                for wrong, why in (("file:/no/such/place", "does not exist"),
                                   (a, "had no server at first"), ("nonsense", "no known kind")):
                    refused = self.add(process, wrong)
                    self.assertIn(why, refused.stderr)
                    self.assertEqual(len(refused.stderr.splitlines()), 1, refused.stderr)
            with self.running(f"tier({a},file:{self.place})", script, None) as process:
                self.assertIn("cannot connect", self.add(process, "tcp://127.0.0.1:1").stderr)
                process.stdin.write("\n")
                process.stdin.flush()
                self.assertTrue(process.stdout.readline())
                self.assertEqual(process.stdout.readline(), "there\n")
                self.assertIn("children share its memory", self.add(process, b).stderr)
                process.communicate("\n", timeout=SECONDS)
                self.assertEqual(process.returncode, 0)


class Failures(Base):
    def assert_refused(self, result, *words, status=2):
        self.assertEqual((result[0], result[1]), (status, ""), result[2])
        self.assertEqual(result[2].count("\n"), 1, result[2])
        self.assertTrue(result[2].startswith("hanare: error: "), result[2])
        for word in words:
            self.assertIn(word, result[2])

    def test_nobody_there(self):
        with self.serving() as server:
            url = server.url
        self.assert_refused(self.run_in_session(self.command(url, "true")), url, "cannot connect")
        self.assert_refused(self.run_in_session(self.command("tcp://no.such.host.invalid", "true")),
                            "no.such.host.invalid")

    def test_another_secret(self):
        with self.serving(secret=self.secret()) as server:
            result = self.run_in_session(self.command(server, "true",
                                                      secret=self.secret("another")))
            self.assert_refused(result, server.url, "secret_file")
            self.assert_refused(self.run_in_session(self.command(server, "true")), "secret_file")
            result = self.run_in_session(self.command(server, "true", secret="/nowhere/secret"))
            self.assert_refused(result, "/nowhere/secret")

    def test_less_than_is_asked_for(self):
        with self.serving(memory="64M") as server:
            result = self.run_in_session(self.command(f"{server.url}?size=100M", "true"))
            self.assert_refused(result, server.url, "64 MiB", "100 MiB", status=70)

    def test_no_program(self):
        with self.serving() as server:
            result = self.run_in_session(self.command(server, "no-such-program"))
            self.assertEqual(result[0], 127, result[2])

    def test_server_killed_during_the_run(self):
        script = SCRIPT.format(blocks=1500) + """
sys.stdin.readline()
for at in order:
    digest.update(blocks[at])
print("all of it")
"""
        for secret in (None, self.secret()):
            with self.serving(secret=secret) as server:
                command = self.command(server, sys.executable, "-S", "-c", script, secret=secret)
                with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True,
                                      env=clean_environment()) as process:
                    try:
                        for _ in range(2):
                            self.assertTrue(process.stdout.readline())
                        server.process.kill()
                        server.process.wait()
                        output, errors = process.communicate("\n", timeout=SECONDS)
                    finally:
                        process.kill()
                self.assertEqual((process.returncode, output), (-signal.SIGBUS, ""), errors)
                lines = errors.splitlines()
                self.assertEqual(len(lines), 2, errors)
                self.assertIn(f"memory server {server.url} has ended the connection", lines[0])
                self.assertTrue(lines[1].startswith("hanare: peak far memory"), errors)

    def test_server_killed_before_a_fork(self):
        script = SCRIPT.format(blocks=1500) + """
sys.stdin.readline()
import os
try:
    child = os.fork()
    if child == 0:
        os._exit(0)
    print("there is a child")
except BlockingIOError:
    print("there is none", flush=True)
    os._exit(0)
"""
        with self.serving() as server:
            command = self.command(server, sys.executable, "-S", "-c", script)
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True,
                                  env=clean_environment()) as process:
                try:
                    for _ in range(2):
                        self.assertTrue(process.stdout.readline())
                    server.process.kill()
                    server.process.wait()
                    output, errors = process.communicate("\n", timeout=SECONDS)
                finally:
                    process.kill()
            # It may need what is there before it can ask for a child.
            if process.returncode == -signal.SIGBUS:
                self.assertEqual(output, "")
            else:
                self.assertEqual((process.returncode, output), (0, "there is none\n"), errors)
                self.assertIn("hanare: cannot fork: ", errors)
            self.assertIn(server.url, errors)

    def test_names(self):
        with self.serving(secret=self.secret()) as server:
            command = self.command(server, "true", secret=self.secret(), options=["--verbose"])
            result = self.run_in_session(command)
            self.assertEqual(result[0], 0, result[2])
            self.assertIn(f"store {server.url}", result[2])


if __name__ == "__main__":
    unittest.main()
