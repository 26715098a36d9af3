# SPDX-License-Identifier: Apache-2.0
"""`hanare server`, `hanare status` and `hanare drain` as a user runs them.

LEASE_PROBE is a program that opens a lease, lets it grow and waits (lease_probe.cpp).
"""

import contextlib
import errno
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import time
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
PROBE = os.environ["LEASE_PROBE"]
SECONDS = 60
MIB = 1 << 20
# Names that nobody has are not waited for.
os.environ["RES_OPTIONS"] = "timeout:1 attempts:1"


def size_text(size):
    assert size % MIB == 0 and size < 1024 * MIB
    return f"{size // MIB} MiB" if size else "0 B"


class Lease:
    """What a client has got: as much as it wanted, or more."""

    def __init__(self, process, words):
        self.process = process
        self.number, self.bytes, self.extents = (int(word) for word in words)


class Serving:
    """A server that has said that it is ready."""

    def __init__(self, test, process, line):
        self.process = process
        found = re.fullmatch(r"hanare server: (tcp://(\S+):(\d+)) offers (\S+ \S+)\n", line)
        test.assertTrue(found, line)
        self.url, self.host, self.port, self.offer = found.groups()
        self.pages = None

    def end(self, number=signal.SIGTERM):
        """(exit status, standard output, standard error)"""
        self.process.send_signal(number)
        output, error = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, output, error

    def get(self, path, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.pages, timeout=SECONDS)
        with contextlib.closing(connection):
            connection.request(method, path)
            response = connection.getresponse()
            return response.status, response.getheader("Content-Type"), response.read().decode()


class Base(support.InOwnPlace):
    def hanare(self, *arguments, **options):
        return subprocess.run([options.pop("program", HANARE), *arguments], capture_output=True,
                              text=True, check=False, timeout=SECONDS, env=self.environment,
                              **options)

    @contextlib.contextmanager
    def serving(self, *arguments, listen="127.0.0.1:0", memory="64M", metrics=False, **options):
        if metrics:
            arguments = (*arguments, "--metrics", "127.0.0.1:0")
        process = self.start("server", "--memory", memory, "--listen", listen, *arguments,
                             **options)
        try:
            line = process.stdout.readline()
            self.assertTrue(line, "" if line else process.stderr.read())
            server = Serving(self, process, line)
            if metrics:
                line = process.stdout.readline()
                server.pages = int(re.fullmatch(r"hanare server: http://127\.0\.0\.1:(\d+)/metrics\n",
                                                line)[1])
            yield server
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=SECONDS)

    def ask(self, server, *arguments, what="status"):
        """Standard output of a question that is answered."""
        result = self.hanare(what, server.url, *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return result.stdout

    def status(self, server, *arguments):
        return json.loads(self.ask(server, "--json", *arguments))

    def assert_refused(self, result, *words):
        self.assertEqual((result.returncode, result.stdout), (2, ""), result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        self.assertTrue(result.stderr.startswith("hanare: error: "), result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)

    @contextlib.contextmanager
    def lease(self, server, name="a client", size=8 * MIB, more=()):
        """That of a client that stays for so long."""
        process = subprocess.Popen([PROBE, server.port, name, str(size), *more], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=self.environment)
        try:
            words = process.stdout.readline().split()
            self.assertEqual(len(words), 3, "" if words else process.stderr.read())
            lease = Lease(process, words)
            self.assertGreaterEqual(lease.bytes, size)
            yield lease
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=SECONDS)

    def refusal(self, server, *more, size=4 * MIB):
        """What a client says that gets no lease."""
        result = subprocess.run([PROBE, server.port, "x", str(size), *more], text=True,
                                capture_output=True, check=False, timeout=SECONDS,
                                stdin=subprocess.DEVNULL, env=self.environment)
        self.assertEqual(result.returncode, 3, result.stdout)
        return result.stderr

    def secret(self, name="secret", mode=0o600):
        path = os.path.join(self.directory, name)
        pathlib.Path(path).write_bytes(os.urandom(32))
        os.chmod(path, mode)
        self.files.append(path)
        return path

    def setUp(self):
        super().setUp()
        self.files = []

    def tearDown(self):
        for path in self.files:
            os.unlink(path)
        super().tearDown()


class Life(Base):
    def test_from_ready_to_the_end(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.serving() as server:
                self.assertEqual((server.host, server.offer), ("127.0.0.1", "64 MiB"))
                self.assertEqual(self.ask(server),
                                 f"{server.url}: 64 MiB, 0 B leased, 64 MiB free\n")
                self.assertEqual(server.end(number),
                                 (0, "", "hanare server: ended; no lease was cut off\n"))
            result = self.hanare("status", server.url)
            self.assert_refused(result, server.url, "cannot be reached", "Connection refused")

    def test_what_is_cut_off(self):
        with self.serving() as server, self.lease(server) as one, self.lease(server) as other:
            size = size_text(one.bytes + other.bytes)
            self.assertEqual(server.end(),
                             (0, "", f"hanare server: ended; 2 leases of {size} were cut off\n"))
        with self.serving() as server, self.lease(server) as lease:
            self.assertEqual(
                server.end()[2],
                f"hanare server: ended; 1 lease of {size_text(lease.bytes)} was cut off\n")

    def test_huge_pages(self):
        with self.serving("--huge-pages") as server, self.lease(server):
            self.assertEqual(server.end()[0], 0)

    def test_sizes_are_rounded_down(self):
        with self.serving(memory="18M") as server:
            self.assertEqual(server.offer, "16 MiB")

    def test_ipv6(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            self.skipTest(f"no IPv6 here: {error}")
        with self.serving(listen="[::1]:0") as server:
            self.assertEqual(server.host, "[::1]")
            self.assertTrue(self.ask(server).startswith(server.url))

    def test_names(self):
        with self.serving(listen="localhost:0") as server:
            self.assertEqual(server.host, "127.0.0.1")
            answer = self.hanare("status", f"tcp://localhost:{server.port}")
            self.assertEqual(answer.returncode, 0, answer.stderr)

    def test_service_manager(self):
        path = os.path.join(self.directory, "notify")
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as manager:
            manager.bind(path)
            self.files.append(path)
            manager.settimeout(SECONDS)
            with self.serving(more_environment={"NOTIFY_SOCKET": path}) as server:
                self.assertEqual(manager.recv(1000).decode(),
                                 f"READY=1\nSTATUS={server.url} offers 64 MiB")
                self.assertEqual(server.end()[0], 0)
                self.assertEqual(manager.recv(1000), b"STOPPING=1")

    def test_service_manager_is_gone(self):
        with self.serving(more_environment={"NOTIFY_SOCKET": "/nonexistent"}) as server:
            status, _, error = server.end()
            self.assertEqual(status, 0)
            self.assertIn("hanare server: cannot tell $NOTIFY_SOCKET, /nonexistent", error)

    def test_nobody_can_read_that_it_is_ready(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run(
                [HANARE, "server", "--memory", "8M", "--listen", "127.0.0.1:0"], stdout=full,
                stderr=subprocess.PIPE, text=True, check=False, timeout=SECONDS,
                env=self.environment)
        self.assertEqual(result.returncode, 70)
        self.assertEqual(result.stderr, "hanare: error: cannot write to standard output: "
                                        "No space left on device\n")

    def test_as_a_service(self):
        """The command of the unit, as systemd would run it."""
        unit = pathlib.Path(__file__).resolve().parents[2] / "packaging/systemd"
        text = (unit / "hanare-server.service.in").read_text("utf-8")
        script = re.search(r"^ExecStart=/bin/sh -c '(.*)' @HANARE_PROGRAM@ \$OPTIONS$", text, re.M)[1]
        credential = self.secret()
        process = subprocess.Popen(
            ["/bin/sh", "-c", script.replace("$$", "$"), HANARE, "--memory", "8M", "--listen",
             "127.0.0.1:0"], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.environment, "CREDENTIALS_DIRECTORY": self.directory})
        try:
            server = Serving(self, process, process.stdout.readline())
            self.assertIn("8 MiB free", self.ask(server, "--secret-file", credential))
            self.assertEqual(server.end()[0], 0)
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=SECONDS)

    @unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
    def test_as_an_ordinary_user(self):
        with support.reachable_copy(HANARE) as (program, library):
            self.environment["LD_LIBRARY_PATH"] = library
            with self.serving(program=program, **support.AS_NOBODY) as server:
                with self.lease(server) as lease:
                    answer = self.hanare("status", server.url, program=program, **support.AS_NOBODY)
                    self.assertIn(f"{size_text(lease.bytes)} leased", answer.stdout)
                self.assertEqual(server.end()[0], 0)


class Questions(Base):
    def test_leases(self):
        with self.serving() as server:
            with self.lease(server, "himeno 17") as one, self.lease(server, "another") as other:
                leased = one.bytes + other.bytes
                text = self.ask(server)
                self.assertIn(f": 64 MiB, {size_text(leased)} leased, "
                              f"{size_text(64 * MIB - leased)} free\n", text)
                self.assertRegex(
                    text, rf"(?m)^{one.number} +himeno 17 +{size_text(one.bytes)} +1 ")
                status = self.status(server)
                self.assertEqual((status["total_bytes"], status["leased_bytes"]),
                                 (64 * MIB, leased))
                self.assertIs(status["draining"], False)
                self.assertRegex(status["server"], r"^[0-9a-f]{16}$")
                rows = [(row["client"], row["bytes"], row["connections"])
                        for row in status["leases"]]
                self.assertEqual(rows, [("himeno 17", one.bytes, 1), ("another", other.bytes, 1)])
                one.process.stdin.write("end\n")
                one.process.stdin.flush()
                self.assertEqual(one.process.wait(SECONDS), 0)
                self.assertEqual([row["client"] for row in self.status(server)["leases"]],
                                 ["another"])
            # Who has gone without a word.
            self.assertTrue(support.eventually(lambda: not self.status(server)["leases"]))
            self.assertTrue(support.eventually(
                lambda: self.status(server)["free_bytes"] == 64 * MIB))

    def test_more_leases_than_an_answer_holds(self):
        with self.serving("--quota", "4M", memory="256M") as server, \
                contextlib.ExitStack() as stack:
            for i in range(40):
                stack.enter_context(self.lease(server, f"client {i}", 4 * MIB))
            names = [row["client"] for row in self.status(server)["leases"]]
            self.assertEqual(names, [f"client {i}" for i in range(40)])

    def test_each_server_has_another_number(self):
        with self.serving() as first, self.serving() as second:
            self.assertNotEqual(self.status(first)["server"], self.status(second)["server"])

    def test_drain(self):
        with self.serving() as server:
            with self.lease(server) as lease:
                self.assertEqual(self.ask(server, what="drain"),
                                 f"{server.url} lends nothing more; {size_text(lease.bytes)} in 1 "
                                 "lease is still there\n")
                self.assertIn(", draining\n", self.ask(server))
                self.assertIs(self.status(server)["draining"], True)
                self.assertEqual(self.refusal(server), "lease_probe: asking: BUSY\n")
            self.assertEqual(server.end()[0], 0)

    def test_quota(self):
        with self.serving("--quota", "8M") as server:
            with self.lease(server) as lease:
                self.assertEqual(lease.bytes, 8 * MIB)
                self.assertEqual(self.refusal(server, size=12 * MIB),
                                 "lease_probe: asking: STORE_FULL\n")

    def test_who_is_no_memory_server(self):
        def ask(answer):
            with socket.create_server(("127.0.0.1", 0)) as listener:
                url = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
                process = self.start("status", url)
                peer, _ = listener.accept()
                with peer:
                    peer.recv(10)
                    peer.sendall(answer)
                    if answer:
                        peer.shutdown(socket.SHUT_WR)
                    output, error = process.communicate(timeout=SECONDS)
                return subprocess.CompletedProcess([], process.returncode, output, error), url
        result, url = ask(b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 100)
        self.assert_refused(result, f"{url} has ended the connection", "is no memory server")
        result, url = ask(b"")  # says nothing, ever
        self.assert_refused(result, f"{url} does not answer within 5 s")

    def test_bad_usage(self):
        for command in ("status", "drain"):
            self.assert_refused(self.hanare(command), f"hanare {command} needs a server")
            self.assert_refused(self.hanare(command, "127.0.0.1:7077"), "'127.0.0.1:7077'",
                                "allowed is tcp://HOST[:PORT]")
            self.assert_refused(self.hanare(command, "tcp://no-such-host.invalid"),
                                "tcp://no-such-host.invalid:7077 cannot be reached")
            self.assert_refused(self.hanare(command, "tcp://192.0.2.1"),
                                "another machine", "--secret-file")
        self.assert_refused(self.hanare("drain", "tcp://127.0.0.1", "--json"), "--json")


class Secrets(Base):
    def test_who_knows_it(self):
        secret = self.secret()
        with self.serving("--secret-file", secret) as server:
            self.assertIn("64 MiB free", self.ask(server, "--secret-file", secret))
            with open(secret, "rb") as file:
                answer = self.hanare("status", server.url, "--secret-file", "-", stdin=file)
            self.assertEqual(answer.returncode, 0, answer.stderr)
            with self.lease(server, more=(secret,)):
                self.assertEqual(len(self.status(server, "--secret-file", secret)["leases"]), 1)

    def test_who_does_not(self):
        secret, other = self.secret(), self.secret("other")
        with self.serving("--secret-file", secret) as server:
            for what in ("status", "drain"):
                self.assert_refused(self.hanare(what, server.url, "--secret-file", other),
                                    server.url, "has another secret")
                self.assert_refused(self.hanare(what, server.url), server.url,
                                    "wants a secret (--secret-file)")
            self.assertIs(self.status(server, "--secret-file", secret)["draining"], False)
        with self.serving() as server:
            self.assert_refused(self.hanare("status", server.url, "--secret-file", secret),
                                server.url, "does not want a secret")

    def test_files(self):
        for arguments in (["server", "--memory", "8M", "--listen", "127.0.0.1:0"],
                          ["status", "tcp://127.0.0.1:1"]):
            def refused(path, *words, arguments=arguments):
                self.assert_refused(self.hanare(*arguments, "--secret-file", path,
                                                stdin=subprocess.DEVNULL),
                                    "--secret-file: ", *words)
            refused("/nonexistent", "/nonexistent: No such file")
            refused(self.secret(f"open-{arguments[0]}", 0o644), "can be used by others", "chmod 600")
            refused("-", "a secret is 32 bytes")

    def test_off_loopback_there_has_to_be_one(self):
        for address in ("0.0.0.0:0", "[::]:0", "192.0.2.1:7077"):
            # Before anything else is found.
            for more in ((), ("--memory", "none"), ("--memory", "8M", "--metrics", "x")):
                self.assert_refused(self.hanare("server", "--listen", address, *more),
                                    "--listen: at ", "needs a secret", "--secret-file")

    def test_what_goes_over_the_network(self):
        secret = self.secret()
        arguments = ("--secret-file", secret)
        with self.serving(*arguments, listen="0.0.0.0:0") as server:
            with self.lease(server, more=(secret,)):
                pass
            self.assertIn("only sealed", self.refusal(server, secret, "authenticated"))
        with self.serving(*arguments, "--auth-only", listen="0.0.0.0:0") as server:
            with self.lease(server, more=(secret, "authenticated")):
                pass
        self.assert_refused(self.hanare("server", "--memory", "8M", "--auth-only"),
                            "--auth-only needs --secret-file")


class Tenants(Base):
    def test_what_each_has(self):
        secret, one, two = (self.secret(name) for name in ("secret", "one", "two"))
        with self.serving("--secret-file", secret, "--tenant", f"alice:8M:{one}", "--tenant",
                          f"bob:1G:{two}", metrics=True) as server:
            with self.lease(server, "hers", 8 * MIB, (one,)) as hers, \
                    self.lease(server, "his", 8 * MIB, (two,)) as his:
                self.assertEqual(self.refusal(server, one), "lease_probe: asking: STORE_FULL\n")
                everything = self.status(server, "--secret-file", secret)
                self.assertEqual([(row["client"], row["tenant"]) for row in everything["leases"]],
                                 [("hers", "alice"), ("his", "bob")])
                self.assertRegex(self.ask(server, "--secret-file", secret),
                                 r"(?m)^\d+ +his +\S+ \S+ +1 +.*bob$")
                of_alice = self.status(server, "--secret-file", one)
                self.assertEqual([row["client"] for row in of_alice["leases"]], ["hers"])
                self.assertEqual((of_alice["leased_bytes"], of_alice["free_bytes"]),
                                 (hers.bytes, 0))
                self.assert_refused(self.hanare("drain", server.url, "--secret-file", one),
                                    "does not take that from a tenant")
                samples = parse_metrics(server.get("/metrics")[2])["hanare_server_tenant_bytes"]
                self.assertEqual(
                    {(dict(labels)["tenant"], dict(labels)["state"]): value
                     for labels, value in samples.items()},
                    {("alice", "leased"): hers.bytes, ("alice", "quota"): 8 * MIB,
                     ("bob", "leased"): his.bytes, ("bob", "quota"): 1024 * MIB})
                page = server.get("/status")[2] + server.get("/metrics")[2]
                for file in (secret, one, two):
                    self.assertNotIn(pathlib.Path(file).read_bytes().hex(), page)
                    self.assertNotIn(file, page)
            self.assertTrue(support.eventually(
                lambda: not self.status(server, "--secret-file", secret)["leases"]))
            self.assert_refused(self.hanare("status", server.url, "--secret-file",
                                            self.secret("nobodys")), "has another secret")

    def test_bad_usage(self):
        secret, one = self.secret(), self.secret("one")

        def refuse(*arguments, words):
            self.assert_refused(self.hanare("server", "--memory", "8M", "--listen", "127.0.0.1:0",
                                            *arguments), *words)
        refuse("--tenant", f"a:8M:{one}", words=("--tenant needs --secret-file",))
        own = ("--secret-file", secret)
        for text, words in ((f"8M:{one}", "NAME:SIZE:FILE"), ("a", "NAME:SIZE:FILE"),
                            (f"a b:8M:{one}", "'a b' is no name of a tenant"),
                            (f"{'a' * 17}:8M:{one}", "is no name of a tenant"),
                            (f"a:8Q:{one}", "'8Q'"), (f"a:1M:{one}", "is too little"),
                            ("a:8M:/nonexistent", "--tenant: opening /nonexistent"),
                            (f"a:8M:{secret}", "a has the secret of another")):
            refuse(*own, "--tenant", text, words=(words,))
        refuse(*own, "--tenant", f"a:8M:{one}", "--tenant", f"b:8M:{one}",
               words=("b has the secret of another",))
        refuse(*own, "--tenant", f"a:8M:{one}", "--tenant", f"a:8M:{self.secret('two')}",
               words=("a has the name of another",))


class Descriptors(Base):
    def test_too_few(self):
        """Who cannot be served is told, and so is the log, once; the others go on."""
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
        with self.serving(preexec_fn=few) as server, self.lease(server) as lease:
            with contextlib.ExitStack() as stack:
                closed = 0
                for _ in range(40):
                    stranger = stack.enter_context(
                        socket.create_connection((server.host, int(server.port)), SECONDS))
                    stranger.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        closed += stranger.recv(1) == b""
                self.assertTrue(closed or support.eventually(
                    lambda: self.is_closed(stranger)))
            lease.process.stdin.write("end\n")
            lease.process.stdin.flush()
            self.assertEqual(lease.process.wait(SECONDS), 0)
            self.assertTrue(support.eventually(
                lambda: self.hanare("status", server.url).returncode == 0))
            status, _, error = server.end()
            self.assertEqual(status, 0)
            self.assertEqual(error.count("no descriptor is left"), 1, error)

    @staticmethod
    def is_closed(stranger):
        try:
            return stranger.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True


class Refusals(Base):
    def refuse(self, arguments, *words):
        self.assert_refused(self.hanare("server", "--listen", "127.0.0.1:0", *arguments), *words)

    def test_memory(self):
        self.refuse([], "needs --memory SIZE")
        self.refuse(["--memory", "1000T"], "--memory: 1000 TiB is more than there is here: ")
        self.refuse(["--memory", "1M"], "--memory: '1M' is too little; allowed is 4 MiB and more")
        self.refuse(["--memory", "12Q"], "--memory", "'12Q'", "allowed is")
        self.refuse(["--memory", "8M", "--quota", "0"], "--quota", "'0'", "allowed is")
        self.refuse(["--memory", "8M", "--quota", "3M"],
                    "--quota: '3M' is too little; allowed is 4 MiB and more")

    def test_addresses(self):
        def refuse(*arguments, words):
            self.assert_refused(self.hanare("server", "--memory", "8M", *arguments), *words)
        refuse("--listen", "127.0.0.1", words=("--listen: '127.0.0.1' lacks the port",))
        refuse("--listen", "::1:0", words=("--listen: '::1:0'", "needs brackets"))
        refuse("--listen", "no-such-host.invalid:0", words=("--listen: ", "no-such-host.invalid"))
        refuse("--metrics", "127.0.0.1:70000", words=("--metrics: '127.0.0.1:70000'",))

    def test_ports_in_use(self):
        with self.serving(metrics=True) as server:
            used = f"127.0.0.1:{server.port}"
            self.assert_refused(self.hanare("server", "--memory", "8M", "--listen", used),
                                "--listen: ", "Address already in use")
            for port in (server.port, server.pages):
                self.refuse(["--memory", "8M", "--metrics", f"127.0.0.1:{port}"], "--metrics: ",
                            "Address already in use")
            self.assertIn("64 MiB free", self.ask(server))


SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? ([0-9]+)')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\\n]|\\[\\"n])*)"')


def parse_metrics(text):
    """{name: {labels as a frozenset: value}}, of a page of which every line has to be right."""
    assert text.endswith("\n")
    samples, kinds = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in ("gauge", "counter") and name not in kinds, line
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            assert name in kinds and name.endswith("_total") == (kinds[name] == "counter"), line
            labels = frozenset((key, re.sub(r"\\(.)", r"\1", text))
                               for key, text in LABEL.findall(labels or ""))
            of_name = samples.setdefault(name, {})
            assert labels not in of_name, line
            of_name[labels] = int(value)
    return samples


class Metrics(Base):
    def metrics(self, server):
        status, kind, text = server.get("/metrics")
        self.assertEqual((status, kind), (200, "text/plain; version=0.0.4; charset=utf-8"))
        return parse_metrics(text)

    def test_page(self):
        nasty = 'a "b" \\ {c},d="e"'
        with self.serving(metrics=True) as server:
            with self.lease(server, nasty) as one, self.lease(server, "b") as other:
                samples = self.metrics(server)
                memory = {dict(labels)["state"]: value for labels, value
                          in samples["hanare_server_memory_bytes"].items()}
                self.assertEqual(set(memory), {"total", "leased", "free", "unwiped", "touched"})
                self.assertEqual((memory["total"], memory["leased"]),
                                 (64 * MIB, one.bytes + other.bytes))
                self.assertEqual(memory["free"] + memory["unwiped"],
                                 64 * MIB - one.bytes - other.bytes)
                leases = {(dict(labels)["lease"], dict(labels)["client"]): value for labels, value
                          in samples["hanare_server_lease_bytes"].items()}
                self.assertEqual(leases, {(str(one.number), nasty): one.bytes,
                                          (str(other.number), "b"): other.bytes})
                self.assertEqual(self.ask(server).count(nasty), 1)
            self.assertTrue(support.eventually(lambda: self.metrics(server)[
                "hanare_server_leases"][frozenset()] == 0))
            self.assertIn("STORE_FULL", self.refusal(server, size=100 * MIB))
            samples = self.metrics(server)
            counts = {name.removeprefix("hanare_server_"): samples[name][frozenset()]
                      for name in samples if name.endswith("_total")}
            self.assertEqual(counts["leases_opened_total"], 3)
            self.assertEqual(counts["leases_ended_total"], 0)
            self.assertEqual(counts["refusals_total"], 1)
            self.assertTrue(support.eventually(lambda: self.metrics(server)[
                "hanare_server_leases_abandoned_total"][frozenset()] == 3))
            # All memory becomes known to be there, by and by.
            self.assertTrue(support.eventually(lambda: self.metrics(server)[
                "hanare_server_memory_bytes"][frozenset({("state", "touched")})] == 64 * MIB))

    def test_status(self):
        with self.serving(metrics=True) as server, self.lease(server, 'a "client"') as lease:
            code, kind, text = server.get("/status")
            self.assertEqual((code, kind), (200, "application/json"))
            page, status = json.loads(text), self.status(server)
            self.assertEqual(page["leases_opened"], 1)
            del page["leases"][0]["age_s"], status["leases"][0]["age_s"]
            self.assertEqual(page["leases"],
                             [{**status["leases"][0], "extents": lease.extents}])
            self.assertEqual({name: page[name] for name in status if name != "leases"},
                             {name: status[name] for name in status if name != "leases"})

    def test_what_is_no_page(self):
        with self.serving(metrics=True) as server:
            self.assertEqual(server.get("/")[0], 404)
            self.assertEqual(server.get("/metrics/")[0], 404)
            self.assertEqual(server.get("/metrics?x=1")[0], 200)
            self.assertEqual(server.get("/metrics", "POST")[0], 405)
            self.assertEqual(server.get("/metrics", "DELETE")[0], 405)
            self.assertEqual(server.get("/metrics", "HEAD")[2], "")

    @staticmethod
    def send(server, request):
        """Until the connection is over, which it has to be in time."""
        with socket.create_connection(("127.0.0.1", server.pages), SECONDS) as stranger:
            try:
                stranger.sendall(request)
                stranger.shutdown(socket.SHUT_WR)
                while stranger.recv(65536):
                    pass
            except OSError as error:
                if error.errno not in (errno.ENOTCONN, errno.ECONNRESET, errno.EPIPE):
                    raise

    def test_bad_requests(self):
        requests = (b"\x00" * 5000, b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n",
                    b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
                    b"GET /metrics HTTP/1.1\r\n" + b"x: y\r\n" * 50_000,
                    b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"
                    + b"x" * 100_000,
                    b"GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                    b"ffffffffffffffff\r\n",
                    os.urandom(3000), b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
        with self.serving(metrics=True) as server, self.lease(server):
            for request in requests:
                self.send(server, request)
            self.assertEqual(len(self.status(server)["leases"]), 1)
            self.assertTrue(self.metrics(server))
            self.assertEqual(server.end()[0], 0)

    def test_many_who_say_nothing(self):
        with self.serving(metrics=True) as server, contextlib.ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(socket.create_connection(("127.0.0.1", server.pages), SECONDS))
            open_files = len(os.listdir(f"/proc/{server.process.pid}/fd"))
            self.assertLess(open_files, 100)
            with self.lease(server) as lease:
                self.assertIn(f"{size_text(lease.bytes)} leased", self.ask(server))
            stack.close()

            def is_answered():
                try:
                    return self.metrics(server)
                except (ConnectionError, http.client.HTTPException):
                    time.sleep(0.1)
                    return False
            self.assertTrue(support.eventually(is_answered))
            self.assertEqual(server.end()[0], 0)


if __name__ == "__main__":
    unittest.main()
