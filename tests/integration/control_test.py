# SPDX-License-Identifier: Apache-2.0
"""The control sockets of processes, and `hanare ps` and `top`, which ask them."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import support

HANARE = os.environ["HANARE_BINARY"]
POOLS = os.environ["CONTROL_POOLS"]
MEMORY = os.environ.get("CONTROL_MEMORY")
MIB = 1 << 20

needs_memory = unittest.skipUnless(MEMORY, "a sanitizer does not go below hanare run")


class Told:
    """A process that takes lines, and answers each with a number."""

    def __init__(self, command, **more):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, start_new_session=True, **more)

    def number(self):
        line = self.process.stdout.readline()
        assert line, f"{self.process.args} says nothing"
        return int(line)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line):
        self.tell(line)
        return self.number()

    def end(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()


class Base(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix=f"hanare-control-{os.getpid()}-", dir="/var/tmp")
        self.addCleanup(place.cleanup)
        self.sessions = set()
        self.runtime = os.path.join(place.name, "runtime")
        self.store = os.path.join(place.name, "store")
        for folder in (self.runtime, self.store):
            os.mkdir(folder, 0o700)

    def environment(self, **more):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("HANARE_", "SLURM_"))
                 and name not in ("TMPDIR", "XDG_CONFIG_HOME", "LD_PRELOAD")}
        ours = {"HOME": "/nonexistent", "XDG_RUNTIME_DIR": self.runtime,
                "HANARE_STORE": f"file:{self.store}"}
        return {**clean, **ours, **more}

    def start(self, *command, environment=None, **more):
        told = Told(command, env=self.environment(**(environment or {})), **more)
        self.sessions.add(told.process.pid)
        self.addCleanup(told.end)
        return told

    def start_memory(self, *arguments, environment=None):
        return self.start(HANARE, "run", "--local", "16M", MEMORY, *arguments,
                          environment=environment)

    def ps(self, *arguments, **environment):
        result = subprocess.run([HANARE, "ps", *arguments], capture_output=True, text=True,
                                check=False, timeout=60, env=self.environment(**environment))
        of_ours = [line for line in result.stderr.splitlines() if not self.is_of_others(line)]
        self.assertEqual((result.returncode, of_ours), (0, []))
        return result.stdout

    def processes(self, **environment):
        told = json.loads(self.ps("--json", **environment))["processes"]
        self.assertEqual(len(told), len({process["process_id"] for process in told}))
        return {process["process_id"]: process for process in told
                if self.may_be_ours(process)}

    def may_be_ours(self, process):
        """Others have processes, too, which answer at nameless addresses, and may end meanwhile."""
        try:
            return os.getsid(process["process_id"]) in self.sessions
        except ProcessLookupError:
            return self.store in json.dumps(process)

    def is_of_others(self, line):
        """Theirs may be busy, and not answer."""
        silent = re.fullmatch(r"hanare: (\S+)-(\d+)(?:\.sock)? does not answer: .*", line)
        return (silent is not None and not silent[1].startswith(self.runtime)
                and not self.may_be_ours({"process_id": int(silent[2])}))

    def wait_for(self, process_id, **environment):
        """What is told of the process: the attendant makes its socket by and by."""
        self.assertTrue(support.eventually(
            lambda: process_id in self.processes(**environment)), process_id)
        return self.processes(**environment)[process_id]

    def sockets(self):
        folder = pathlib.Path(self.runtime, "hanare")
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def request(self, name, line):
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(60)
            client.connect(os.path.join(self.runtime, "hanare", name))
            client.sendall(line)
            answer = b""
            while part := client.recv(65536):
                answer += part
        return answer


class Pools(Base):
    def test_one_line_for_all_pools_of_a_process(self):
        told = self.start(POOLS)
        number = told.number()
        self.assertEqual(self.sockets(), [f"pools-{number}.sock"])  # from the first pool on
        process = self.processes()[number]
        self.assertEqual(process["far_bytes"], 32 * MIB)
        self.assertGreater(process["written_bytes"], 8 * MIB)
        self.assertLessEqual(process["local_bytes"], 16 * MIB)
        (answer,) = process["answers"]
        self.assertEqual((answer["kind"], answer["command"]), ("pools", "lasting_pools"))
        self.assertEqual([pool["virtual_bytes"] for pool in answer["pools"]], [16 * MIB] * 2)
        self.assertIn(self.store, answer["pools"][0]["store"])
        header, *rows = [row for row in self.ps().splitlines() if not row.startswith("-")]
        (line,) = [row for row in rows if row.split()[0] == str(number)]  # others may have some
        self.assertEqual(header.split(), ["pid", "program", "far", "local/budget", "in", "out",
                                          "waiting"])
        for word in (str(number), "lasting_pools", "32 MiB", "/16 MiB"):
            self.assertIn(word, line)

    def test_who_serves_may_end(self):
        told = self.start(POOLS)
        number = told.number()
        self.assertEqual(told.ask("close"), 0)
        self.assertEqual(self.processes()[number]["far_bytes"], 16 * MIB)
        self.assertEqual(told.ask("open"), 3)
        self.assertEqual(self.processes()[number]["far_bytes"], 32 * MIB)
        self.assertEqual((told.ask("close"), told.ask("close")), (0, 0))
        self.assertEqual((self.sockets(), self.processes()), ([], {}))
        self.assertEqual(told.ask("open"), 4)
        self.assertEqual(self.processes()[number]["far_bytes"], 16 * MIB)

    def test_with_synchronous_transfers(self):
        told = self.start(POOLS, environment={"HANARE_IO": "sync"})
        number = told.number()
        for _ in range(3):
            self.assertEqual(self.processes()[number]["far_bytes"], 32 * MIB)
        self.assertEqual(told.ask("close"), 0)
        self.assertEqual(self.processes()[number]["far_bytes"], 16 * MIB)

    def test_exit_leaves_nothing(self):
        told = self.start(POOLS)
        told.number()
        told.process.stdin.close()
        self.assertEqual(told.process.wait(60), 0)
        self.assertEqual(self.sockets(), [])

    def test_killed_ones_are_not_shown_and_swept(self):
        told = self.start(POOLS)
        number = told.number()
        told.process.kill()
        told.process.wait(60)
        self.assertEqual(self.sockets(), [f"pools-{number}.sock"])
        self.assertEqual((self.processes(), self.sockets()), ({}, []))

    def test_forked_child_does_not_answer_for_its_parent(self):
        told = self.start(POOLS)
        number, child = told.number(), told.ask("fork")
        self.assertEqual(list(self.processes()), [number])
        os.kill(number, signal.SIGKILL)
        told.process.wait(60)
        self.assertTrue(support.is_running(child))
        began = time.monotonic()
        self.assertEqual((self.processes(), self.sockets()), ({}, []))
        self.assertLess(time.monotonic() - began, 2)  # else the child kept the socket open

    def test_switched_off(self):
        told = self.start(POOLS, environment={"HANARE_CONTROL": "off"})
        told.number()
        self.assertEqual((self.processes(), self.sockets()), ({}, []))

    def test_without_runtime_directory(self):
        told = self.start(POOLS, environment={"XDG_RUNTIME_DIR": ""})
        number = told.number()
        self.assertIn(number, self.processes(XDG_RUNTIME_DIR=""))
        self.assertEqual(self.sockets(), [])

    def test_directory_that_cannot_be_used(self):
        os.chmod(self.runtime, 0o755)
        number = self.start(POOLS).number()
        self.assertIn(number, self.processes(XDG_RUNTIME_DIR=""))
        self.assertEqual(os.listdir(self.runtime), [])

    def add(self, number, spec):
        return subprocess.run([HANARE, "pool", "add", str(number), spec], capture_output=True,
                              text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
                              env=self.environment())

    def test_stores_are_added(self):
        places = [os.path.join(self.store, name) for name in ("a", "b", "c")]
        for place in places:
            os.makedirs(place, exist_ok=True)
        spec = f"tier(file:{places[0]},file:{places[1]})"
        number = self.start(POOLS, environment={"HANARE_STORE": spec}).number()
        added = self.add(number, f"file:{places[2]}")
        self.assertEqual((added.returncode, added.stderr), (0, ""))
        self.assertEqual(added.stdout, f"process {number}: file:{places[2]} has been added\n")
        for wrong, why in (("file:/no/such/place", "does not exist"),
                           ("tcp://127.0.0.1:1", "cannot connect"),
                           ("nonsense", "is of no known kind")):
            refused = self.add(number, wrong)
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn(why, refused.stderr)
            self.assertEqual(len(refused.stderr.splitlines()), 1, refused.stderr)
        self.assertEqual(self.add(number, f"file:{places[2]}").returncode, 0)

    def test_what_cannot_have_another_store(self):
        number = self.start(POOLS).number()
        refused = self.add(number, f"file:{self.store}")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("no pool here has a store of several", refused.stderr)
        short = subprocess.run([HANARE, "pool", "add", "1"], capture_output=True, text=True,
                               check=False, timeout=60, env=self.environment())
        self.assertEqual((short.returncode, short.stderr),
                         (2, "hanare: error: hanare pool add needs PID and SPEC; see hanare pool "
                             "add --help\n"))
        nobody = self.add(1, f"file:{self.store}")
        self.assertEqual(nobody.returncode, 2, nobody.stderr)
        self.assertIn("process 1 has no pool that can be asked", nobody.stderr)

    def test_unknown_requests(self):
        number = self.start(POOLS).number()
        name = f"pools-{number}.sock"
        self.assertTrue(self.request(name, b"hanare/1 statistics\n").startswith(b"hanare/1 ok "))
        for line, text in ((b"hanare/1 stat\n", b'unknown request "stat"; known are: statistics add added'),
                           (b"hanare/9 statistics\n", b"version 9 is not spoken here, version 1 is"),
                           (b"statistics\n", b"not a request: it is one line, 'hanare/1 REQUEST'")):
            self.assertEqual(self.request(name, line),
                             b"hanare/1 error %d\n%s" % (len(text), text))

    def test_ordinary_user(self):
        if os.geteuid() != 0:
            self.skipTest("needs root to become an ordinary user")
        with support.reachable_copy(HANARE) as (hanare, place):
            pools = shutil.copy(POOLS, place)
            environment = {"XDG_RUNTIME_DIR": "", "HANARE_STORE": "file:/var/tmp",
                           "LD_LIBRARY_PATH": place}
            told = self.start(pools, environment=environment, **support.AS_NOBODY)
            number = told.number()
            shown = subprocess.run([hanare, "ps", "--json"], capture_output=True, check=True,
                                   timeout=60, env=self.environment(**environment),
                                   **support.AS_NOBODY)
            self.assertIn(number, [process["process_id"]
                                   for process in json.loads(shown.stdout)["processes"]])
            self.assertNotIn(number, self.processes(XDG_RUNTIME_DIR=""))  # root is another user


@needs_memory
class Memory(Base):
    def test_system_calls_are_not_caught_twice(self):
        done = subprocess.run([HANARE, "run", POOLS], capture_output=True, text=True, check=False,
                              timeout=60, stdin=subprocess.DEVNULL,
                              env=self.environment(HANARE_SYSCALLS="on"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("syscalls = on: the program is under hanare run", done.stderr)

    def test_program_and_forked_child(self):
        told = self.start_memory()
        number = told.number()
        process = self.wait_for(number)
        self.assertEqual(process["command"], "lasting_memory")
        self.assertGreaterEqual(process["far_bytes"], 48 * MIB)
        self.assertEqual(process["answers"][0]["kind"], "program")
        self.assertIn(f"program-{number}.sock", self.sockets())
        child = told.ask("fork")
        process = self.wait_for(child)  # told of by the others
        self.assertGreaterEqual(process["far_bytes"], 48 * MIB)
        self.assertEqual(process["answers"], [])
        for of in (number, child):
            links = [int(name) for name in os.listdir(f"/proc/{of}/fd")]
            self.assertEqual([link for link in links if 2 < link < 1000], [])
        lines = [line.split() for line in self.ps().splitlines()]
        self.assertTrue({str(number), str(child)} <= {line[0] for line in lines})

    def test_child_that_execs_answers_itself(self):
        told = self.start_memory()
        number, child = told.number(), told.ask("exec")
        self.assertNotEqual(number, child)
        self.assertTrue(support.eventually(
            lambda: [answer["kind"] for answer in self.wait_for(child)["answers"]] == ["program"]))
        # Nothing of it depends on those above.
        told.process.kill()
        told.process.wait(60)
        self.assertTrue(support.eventually(lambda: not support.is_running(number)))
        # Its last thread may end a moment later.
        self.assertTrue(support.eventually(
            lambda: list(self.processes()) == [child]
            and self.sockets() == [f"program-{child}.sock"]), self.sockets())

    def test_memory_adopted_in_a_child(self):
        child = self.start_memory("small").number()
        self.assertGreaterEqual(self.wait_for(child)["far_bytes"], 48 * MIB)

    def test_children_of_others_are_told_when_hanare_run_is_gone(self):
        told = self.start_memory()
        number = told.number()
        execed, forked = told.ask("exec"), told.ask("fork")
        self.wait_for(forked)
        self.assertTrue(support.eventually(lambda: self.wait_for(execed)["answers"] != []))
        told.process.kill()
        told.process.wait(60)
        self.assertTrue(support.eventually(lambda: not support.is_running(number)))
        self.assertTrue(support.eventually(
            lambda: sorted(self.processes()) == sorted([execed, forked])), self.processes())

    def test_nothing_before_memory_is_adopted(self):
        told = self.start(HANARE, "run", "sh", "-c", "echo $$; read line")
        told.number()
        self.assertTrue(support.eventually(self.sockets))
        self.assertEqual((self.processes(), self.sockets()), ({}, [f"run-{told.process.pid}.sock"]))

    def test_switched_off(self):
        told = self.start_memory(environment={"HANARE_CONTROL": "off"})
        told.number()
        child = told.ask("exec")
        self.assertEqual((self.processes(), self.sockets()), ({}, []))
        self.assertTrue(support.is_running(child))

    def test_exit_leaves_nothing(self):
        told = self.start_memory()
        self.wait_for(told.number())
        told.process.stdin.close()
        self.assertEqual(told.process.wait(60), 0)
        self.assertEqual(self.sockets(), [])


class Top(Base):
    def top(self, *arguments, **more):
        return subprocess.Popen([HANARE, "top", *arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=self.environment(), **more)

    def test_rates_between_two_looks(self):
        told = self.start(POOLS)
        number = told.number()
        top = self.top("--once", "--json", "--every", "1500", "--server", "tcp://127.0.0.1:1")
        while top.poll() is None:
            if told.ask("open") == 8:  # all that it has room for
                break
        out, err = top.communicate(timeout=60)
        self.assertEqual((top.returncode, err), (0, ""))
        (line,) = out.splitlines()
        look = json.loads(line)
        self.assertGreater(look["seconds"], 1.4)
        (process,) = [row for row in look["processes"] if row["process_id"] == number]
        self.assertEqual(process["command"], "lasting_pools")
        self.assertGreater(process["far_bytes"], 32 * MIB)
        self.assertGreater(process["written_bytes_per_s"], MIB)
        self.assertGreater(process["waiting_threads"], 0)
        (server,) = look["servers"]
        self.assertIn("cannot be reached", server["error"])

    @needs_memory
    def test_hits_of_programs(self):
        told = self.start(HANARE, "run", "--local", "32M", "--", sys.executable, "-c",
                          "import os\nmemory = bytearray(96 << 20)\nprint(os.getpid(), flush=True)\n"
                          "while True:\n    memory[::4096] = bytes(len(memory) // 4096)\n")
        number = told.number()
        self.wait_for(number)
        top = self.top("--once", "--json", "--every", "1000")
        out, _ = top.communicate(timeout=60)
        (process,) = [row for row in json.loads(out)["processes"] if row["process_id"] == number]
        self.assertTrue(0 < process["hit_ratio"] <= 1, process)
        self.assertGreater(process["waiting_threads"], 0)

    def test_where_nothing_moves(self):
        told = self.start(POOLS)
        number = told.number()
        top = self.top("--once", "--every", "100")
        out, err = top.communicate(timeout=60)
        self.assertEqual((top.returncode, err), (0, ""))
        (row,) = [line for line in out.splitlines() if line.startswith(f"{number} ")]
        self.assertRegex(row, r"lasting_pools +32 MiB +\S+ MiB/16 MiB +0 B/s +\S+ \S+ +- +0 %")

    def test_servers(self):
        server = subprocess.Popen([HANARE, "server", "--memory", "64M", "--listen", "127.0.0.1:0"],
                                  stdout=subprocess.PIPE, text=True, env=self.environment())
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        url = server.stdout.readline().split()[2]
        told = self.start(POOLS, environment={"HANARE_STORE": url})
        told.number()
        top = self.top("--once", "--every", "100", "--server", url)
        out, err = top.communicate(timeout=60)
        self.assertEqual((top.returncode, err), (0, ""))
        self.assertRegex(out, rf"\n{url}: \S+ MiB of 64 MiB leased, \d leases\n")

    def test_pipes_and_signals(self):
        top = self.top("--json", "--every", "100")
        self.assertIn("processes", json.loads(top.stdout.readline()))
        top.stdout.close()  # who reads has gone
        self.assertEqual(top.wait(60), -signal.SIGPIPE)
        self.assertEqual(top.stderr.read(), "")
        top.stderr.close()
        top = self.top("--every", "100")
        self.assertIn("program", top.stdout.readline())
        top.send_signal(signal.SIGINT)
        _, err = top.communicate(timeout=60)
        self.assertEqual((top.returncode, err), (0, ""))

    def test_bad_usage(self):
        for arguments, named in ((("--every", "5"), "--every"), (("--every", "x"), "--every"),
                                 (("--secret-file", "-"), "--secret-file")):
            top = self.top(*arguments)
            _, err = top.communicate(timeout=60)
            self.assertEqual((top.returncode, err.count("\n")), (2, 1), err)
            self.assertIn(named, err)

    def on_terminal(self, kind):
        """Its end of a terminal of 40 columns and 10 rows, and the process.

        `settings_before` are the terminal's before the process had it.
        """
        ours, its = pty.openpty()
        self.settings_before = termios.tcgetattr(its)
        self.addCleanup(os.close, ours)
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
        environment = self.environment(TERM=kind)

        def take_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        top = subprocess.Popen([HANARE, "top", "--every", "100"], stdin=its, stdout=its,
                               stderr=its, env=environment, preexec_fn=take_terminal)
        self.addCleanup(top.wait)
        self.addCleanup(top.kill)
        return ours, its, top

    def read_until(self, ours, wanted):
        text = b""
        while wanted not in text:
            self.assertTrue(select.select([ours], [], [], 60)[0], text)
            text += os.read(ours, 65536)
        return text

    def test_terminals(self):
        told = self.start(POOLS)
        told.number()
        ours, its, top = self.on_terminal("xterm")
        text = self.read_until(ours, b"lasting_pool")
        self.assertIn(b"\x1b[?1049h", text)
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 120, 0, 0))
        text = self.read_until(ours, b"waiting\x1b[K")  # the last column is there now
        os.write(ours, b"q")
        text = self.read_until(ours, b"\x1b[?1049l")
        self.assertEqual(top.wait(60), 0)
        self.assertIn(b"\x1b[?25h", text)
        self.assertEqual(termios.tcgetattr(its), self.settings_before)
        os.close(its)

    def test_dumb_terminals(self):
        ours, its, top = self.on_terminal("dumb")
        text = self.read_until(ours, b"program") + self.read_until(ours, b"program")
        self.assertNotIn(b"\x1b", text)
        top.send_signal(signal.SIGTERM)
        self.assertEqual(top.wait(60), 0)
        os.close(its)


if __name__ == "__main__":
    unittest.main()
