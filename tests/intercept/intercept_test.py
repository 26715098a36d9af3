# SPDX-License-Identifier: Apache-2.0
"""The programs of this folder, plainly and with `hanare run` in a fraction of their memory.

Each verifies what it does itself; standard output and status must be the same, and the statistics
must tell of far memory.  INTERCEPT_WORK=10 makes those that work at random do ten times as much.
"""

import contextlib
import errno
import functools
import json
import os
import pathlib
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

HANARE = os.environ["HANARE_BINARY"]
PROGRAMS = pathlib.Path(os.environ["INTERCEPT_PROGRAMS"])
TIMEOUT_S = 60 * int(os.environ.get("INTERCEPT_WORK", "1"))
HERE = pathlib.Path(__file__).resolve().parent
MIB = 1 << 20


def start(command, place, **more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith("HANARE_") and name != "LD_PRELOAD"}
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, cwd=place, env=clean,
                            start_new_session=True, **more)


def end(process):
    """Standard output and errors; the whole session is killed when it takes too long."""
    try:
        return process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        _, errors = process.communicate()
        raise AssertionError(f"{process.args} took more than {TIMEOUT_S} s: {errors}") from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def run(command, place, **more):
    """Status, standard output and errors."""
    with start(command, place, **more) as process:
        output, errors = end(process)
    return process.returncode, output, errors


def await_state(reached):
    deadline = time.monotonic() + TIMEOUT_S
    while not reached():
        if time.monotonic() > deadline:
            raise AssertionError("waited in vain")
        time.sleep(0.002)


def child_of(process_id):
    children = pathlib.Path(f"/proc/{process_id}/task/{process_id}/children")
    await_state(lambda: children.read_text("ascii").split())
    return int(children.read_text("ascii").split()[0])


def is_writing(task):
    return (task / "syscall").read_text("ascii").startswith("1 0x1 ")


def turns_of_others(tasks, but):
    """How often other threads than that one have gone to sleep."""
    return sum(int(line.split()[1]) for task in tasks.iterdir() if task.name != str(but)
               for line in (task / "status").read_text("ascii").splitlines()
               if line.startswith("voluntary_ctxt_switches"))


@functools.cache
def plain(name, *arguments):
    with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
        return run([PROGRAMS / name, *arguments], place)


def refusing(*calls):
    return [PROGRAMS / "refuse", *calls, "--"]


class Programs(unittest.TestCase):
    def compare(self, name, local="20M", status=0, launcher=(), far_mib=40,
                lines=(), arguments=(), options=()):
        """`lines`: patterns of what may be said before the last line, each once."""
        expected = plain(name, *arguments)
        self.assertEqual(expected[0], status, expected[2])
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            os.chmod(place, 0o777)
            store, work = os.path.join(place, "store"), os.path.join(place, "work")
            stats = os.path.join(place, "stats.json")
            for folder in (store, work):
                os.mkdir(folder)
                os.chmod(folder, 0o777)
            result = run([*launcher, HANARE, "run", "--local", local, "--store", f"file:{store}",
                          "--stats", stats, *options, PROGRAMS / name, *arguments], work)
            self.assertEqual(result[:2], expected[:2], result[2])
            said = "".join(f"({line})?" for line in lines)
            self.assertRegex(result[2], rf"\A{said}hanare: peak far memory [^\n]*\n\Z")
            totals = json.loads(pathlib.Path(stats).read_text("utf-8"))["totals"]
            self.assertGreater(totals["far_bytes_peak"], far_mib * MIB)
            self.assertGreater(totals["read_bytes"], 0)
            return totals

    def test_peak_of_a_short_life(self):
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            stats = os.path.join(place, "stats.json")
            for _ in range(5):
                # Who has a context for reads takes tens of milliseconds to end.
                program = ("maps = open('/proc/self/maps'); "
                           "print(len(bytearray(30 << 20)), '[aio]' in maps.read())")
                result = run([HANARE, "run", "--local", "64M", "--store", f"file:{place}",
                              "--stats", stats, sys.executable, "-S", "-c", program], place)
                self.assertEqual(result[:2], (0, f"{30 * MIB} False\n"), result[2])
                totals = json.loads(pathlib.Path(stats).read_text("utf-8"))["totals"]
                self.assertGreater(totals["far_bytes_peak"], 30 * MIB)
                self.assertGreater(totals["sufficient_local_bytes"], 30 * MIB)

    def test_how_much_would_have_been_enough(self):
        # Of what it maps the program uses a part.
        program = """
import mmap
memory = mmap.mmap(-1, 900 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for turn in range(6):
    for page in range(0, 60 << 20, 4096):
        memory[page] = turn
"""
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            stats = os.path.join(place, "stats.json")
            result = run([HANARE, "run", "--local", "24M", "--store", f"file:{place}", "--stats",
                          stats, sys.executable, "-S", "-c", program], place)
            self.assertEqual(result[0], 0, result[2])
            totals = json.loads(pathlib.Path(stats).read_text("utf-8"))["totals"]
        self.assertGreaterEqual(totals["far_bytes_peak"], 900 * MIB)
        self.assertGreaterEqual(totals["used_bytes_peak"], 59 * MIB)
        self.assertLess(totals["used_bytes_peak"], 80 * MIB)
        self.assertGreater(totals["sufficient_local_bytes"], 60 * MIB)
        self.assertLess(totals["sufficient_local_bytes"], 90 * MIB)

    def test_thread_where_one_is_of_use_only(self):
        program = ("import os; memory = b'x' * (40 << 20); {} "
                   "print(len(os.listdir('/proc/self/task')))")
        forking = "os.waitpid(os.fork() or os._exit(0), 0);"
        # Each: local memory, what the program does besides, and whether it gets a thread.
        cases = (("256M", "", False), ("256M", forking, True), ("60M", "", True))
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            for local, more, has_thread in cases:
                with self.subTest(local=local, more=more):
                    result = run([HANARE, "run", "--local", local, "--store", f"file:{place}",
                                  sys.executable, "-S", "-c", program.format(more)], place)
                    self.assertEqual(result[0], 0, result[2])
                    self.assertEqual(int(result[1]) > 1, has_thread, result[1])

    PAGEOUT = """
import mmap, os, threading
memory = mmap.mmap(-1, 48 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for page in range(0, len(memory), 4096):
    memory[page:page + 8] = page.to_bytes(8, "little")
def check(step):
    return all(memory[page:page + 8] == page.to_bytes(8, "little")
               for page in range(0, len(memory), 4096 * step))
def page_out(times):
    for _ in range(times):
        memory.madvise(21)
"""

    def run_pageout(self, program):
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            stats = os.path.join(place, "stats.json")
            result = run([HANARE, "run", "--local", "64M", "--store", f"file:{place}", "--stats",
                          stats, sys.executable, "-S", "-c", self.PAGEOUT + program], place)
            return result, json.loads(pathlib.Path(stats).read_text("utf-8"))["totals"]

    def test_page_out(self):
        result, totals = self.run_pageout("page_out(1); print(check(1))")
        self.assertEqual(result[:2], (0, "True\n"), result[2])
        # It would fit: nothing else makes it move.
        self.assertGreater(totals["written_bytes"], 46 * MIB)
        self.assertGreater(totals["read_bytes"], 46 * MIB)
        result, totals = self.run_pageout("print(check(1))")
        self.assertEqual((totals["read_bytes"], totals["written_bytes"]), (0, 0))

    def test_page_out_of_what_is_far_in_part(self):
        self.compare("page_out")

    def test_page_out_while_others_fork(self):
        result, _ = self.run_pageout("""
thread = threading.Thread(target=page_out, args=(200,))
thread.start()
good = 0
for turn in range(20):
    child = os.fork()
    if child == 0:
        os._exit(0 if check(64) else 1)
    good += os.waitpid(child, 0)[1] == 0
thread.join()
print(good, check(1))
""")
        self.assertEqual(result[:2], (0, "20 True\n"), result[2])

    def test_columns_of_an_array(self):
        totals = self.compare("columns")
        # Whole blocks would be 64 passes over 64 MiB.
        self.assertLess(totals["read_bytes"], 16 * 64 * MIB)

    # Programs have another way then.  Its argument is no far memory.
    def test_asynchronous_transfers_are_refused(self):
        program = ("import ctypes; libc = ctypes.CDLL(None, use_errno=True); "
                   "print([libc.syscall(number, 1, ctypes.byref(ctypes.create_string_buffer(200)))"
                   " == -1 and ctypes.get_errno() for number in (206, 425)])")
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            result = run([HANARE, "run", "--local", "64M", "--store", f"file:{place}",
                          sys.executable, "-c", program], place)
        self.assertEqual(result[:2], (0, f"{[errno.ENOSYS] * 2}\n"), result[2])

    def test_first_calls(self):
        for shape in ("load", "copy", "after", "alone"):
            for more in ((), ("maps first",)):
                with self.subTest(shape=shape, more=more):
                    self.compare("first_calls", arguments=(shape, *more))

    def test_first_malloc(self):
        for calls in ("0", "10", "380", "395", "398", "400"):
            with self.subTest(calls=calls):
                self.compare("first_malloc", arguments=(calls,))

    def test_own_malloc(self):
        self.compare("own_malloc")

    def test_identity(self):
        self.compare("identity")

    def test_files(self):
        self.compare("files")

    def test_sockets(self):
        self.compare("sockets")

    def test_waiting(self):
        self.compare("waiting")

    def test_exec(self):
        # A forked child begins with little local memory, and its arguments must fit there.
        self.compare("exec", local="64M", status=9)

    def test_races(self):
        self.compare("races")

    def test_corner_calls(self):
        # Its last part has more stacks than fit.
        self.compare("corner_calls", lines=(r"hanare: warn: the stacks in far memory [^\n]*\n",))
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            result = run([HANARE, "run", "--local", "20M", "--store", f"file:{place}",
                          PROGRAMS / "corner_calls", "refusals"], place)
        self.assertEqual(result[:2], (0, ""), result[2])

    def test_spawn_beside(self):
        self.compare("spawn_beside")

    def test_mappings(self):
        self.compare("mappings")

    def test_run_time_that_asks_for_addresses(self):
        if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
            self.skipTest("addresses are limited (ulimit -v)")
        self.compare("reserving")
        # Its heap is far wherever it lies.
        self.compare("reserving", arguments=("by-wish",))

    def test_breaks(self):
        self.compare("breaks")

    def test_transfers(self):
        totals = self.compare("transfers")
        # Of 40000 to memory that is there most have begun at once, of 20000 to other memory few.
        self.assertLess(totals["protected_calls"], 40000)

    def test_forks(self):
        self.compare("forks")

    def test_scattered(self):
        # Some of 6 MiB that are in use 200 times, and of 96 MiB that are twice: 1.4 GiB if nothing of
        # it were kept.  Where others keep the processors busy, the keeper comes late.
        totals = self.compare("scattered")
        self.assertLess(totals["read_bytes"], 800 * MIB)
        self.assertLess(totals["written_bytes"], 800 * MIB)

    def test_crowd(self):
        self.compare("crowd")

    def test_thin_streams(self):
        # 12 MiB that are used 60 times, of 48 MiB in blocks that are used by a quarter: 2.8 GiB
        # if these came as a whole.  A disk that others keep busy changes what is read together.
        read_bytes = [self.compare("thin_streams", local="18M")["read_bytes"] for _ in range(3)]
        self.assertLess(statistics.median(read_bytes), 1000 * MIB, read_bytes)

    # A child and its child end as the program does.
    def test_counts_of_children(self):
        program = """
import mmap, os
memory = mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for turn in range(2):
    for at in range(0, len(memory), 4096): memory[at] += 1
for generation in range(2):
    if os.fork() != 0:
        os.wait()
        break
print(memory[0])
"""
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            stats = os.path.join(place, "stats.json")
            result = run([HANARE, "run", "--local", "24M", "--store", f"file:{place}",
                          "--stats", stats, sys.executable, "-c", program], place)
            self.assertEqual(result[:2], (0, "2\n" * 3), result[2])
            told = json.loads(pathlib.Path(stats).read_text("utf-8"))
        parent, *others = sorted(told["processes"], key=lambda row: row["read_bytes"], reverse=True)
        self.assertEqual([row["forks"] for row in (parent, *others)].count(1), 2)
        self.assertEqual(told["totals"]["forks"], 2)
        self.assertEqual(len(others), 2)
        self.assertGreater(parent["read_bytes"], 32 * MIB)
        for row in others:
            for figure in ("read_bytes", "written_bytes"):
                self.assertLess(row[figure], parent[figure] / 2, (figure, told["processes"]))
            # Read-ahead leaves the parent few faults, too.
            self.assertLess(row["faults"], parent["faults"], told["processes"])

    def test_split_blocks(self):
        self.compare("split_blocks")

    def test_forked_files(self):
        self.compare("forked_files")

    # Hanare's thread goes on while the program ends.
    def test_late_end(self):
        with (tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place,
              start([HANARE, "run", "--local", "24M", "--store", f"file:{place}",
                     PROGRAMS / "late_end"], place) as launcher):
            try:
                program = child_of(launcher.pid)
                tasks = pathlib.Path(f"/proc/{program}/task")
                await_state(lambda: is_writing(tasks / str(program)))
                before = turns_of_others(tasks, program)
                await_state(lambda: turns_of_others(tasks, program) > before + 3)
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has ended, and its status tells how
            except PermissionError as error:
                self.skipTest(f"what a program waits for cannot be seen here: {error}")
            finally:
                output, errors = end(launcher)
        self.assertEqual(launcher.returncode, 0, errors)
        self.assertTrue(output.endswith(".done\n"), output[-100:])

    def test_pool_of_its_own(self):
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            result = run([HANARE, "run", "--local", "24M", "--store", f"file:{place}",
                          os.environ["POOL_EXAMPLE"], "16", "64"], place)
            self.assertEqual(result[0], 0, result[2])
            self.assertRegex(result[1], r"8388608 keys through 16 MiB .*: correct")

    # A child that waits for room asks for it; its parent looks by itself every 100 ms only.
    def test_children_get_room_at_once(self):
        told_ms = []
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            for _ in range(3):
                result = run([HANARE, "run", "--local", "24M", "--store", f"file:{place}",
                              PROGRAMS / "forks_in_turn"], place)
                self.assertEqual(result[0], 0, result[2])
                told_ms.append(int(result[1]))
                if told_ms[-1] < 90:
                    return
        self.fail(f"in three runs children waited {told_ms} ms")

    def test_set_aside_for_children(self):
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            result = run([HANARE, "run", "--local", "24M", "--store", f"file:{place}",
                          sys.executable, HERE / "set_aside.py"], place)
        self.assertEqual(result[:2], (0, "done\n"), result[2])

    def test_more_processes_than_can_share_memory(self):
        program = """
import os, signal
far = bytearray(40 << 20)
children = []
try:
    while len(children) < 100:
        if (child := os.fork()) == 0:
            while True: signal.pause()
        children.append(child)
except BlockingIOError:
    print(len(children))
for child in children[:2]:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
if (child := os.fork()) == 0: os._exit(far[5])
print(os.waitpid(child, 0)[1])
for child in children[2:]: os.kill(child, signal.SIGKILL)
"""
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            result = run([HANARE, "run", "--local", "64M", "--store", f"file:{place}",
                          sys.executable, "-S", "-c", program], place)
        self.assertEqual(result[:2], (0, "63\n0\n"), result[2])
        self.assertRegex(result[2], r"\Ahanare: cannot fork: 64 [^\n]*\n"
                                    r"hanare: peak far memory [^\n]*\n\Z")

    # What becomes of the page's rows, as those below see it: `page` is a program's own descriptor,
    # for once `hanare run` has ended nobody opens it any more.
    SHARERS = """
import os, signal, struct, sys, time
page = os.open(os.environ["HANARE_RUN_PAGE"], os.O_RDONLY)
def sharers():
    return struct.unpack("<I", os.pread(page, 4, 40))[0]  # RunPage in src/telemetry/run_page.hpp
def await_sharers(count, meanwhile=lambda: None):
    deadline = time.monotonic() + 20
    while sharers() != count:
        if time.monotonic() > deadline:
            print("waited in vain:", sharers(), count, flush=True)
            os.killpg(0, signal.SIGKILL)
        meanwhile()
        time.sleep(0.01)
def child_with_memory():
    child = os.fork()
    if child == 0:
        far = bytearray(40 << 20)
        for at in range(0, len(far), 4096): far[at] = 1
        while True: signal.pause()
    return child
far = bytearray(40 << 20)
for at in range(0, len(far), 4096): far[at] = 1
"""

    def test_the_dead_have_no_part_once_hanare_run_has_ended(self):
        program = self.SHARERS + """
if os.fork() != 0: os._exit(0)
while os.path.lexists(os.environ["HANARE_RUN_PAGE"]): time.sleep(0.01)
more = []
def need_more():  # it has no attendant
    more.append(bytearray(1 << 20))
need_more()
children = [child_with_memory() for _ in range(3)]
await_sharers(4, need_more)
for child in children: os.kill(child, signal.SIGKILL)
await_sharers(1, need_more)
print("done")
"""
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            result = run([HANARE, "run", "--local", "64M", "--store", f"file:{place}",
                          sys.executable, "-S", "-c", program], place)
        self.assertEqual(result[:2], (0, "done\n"), result[2])

    # Numbers of processes that are others outside, or none.
    def test_processes_of_another_namespace(self):
        unshare = ["unshare", "--pid", "--fork"]
        if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("new namespaces of processes are not allowed here")
        program = self.SHARERS + """
await_sharers(1)
while os.path.exists(f"/proc/{os.getpid() + 1}") or os.getpid() == 1:
    if (child := os.fork()) != 0: os._exit(os.waitpid(child, 0)[1] >> 8)
del far
child = child_with_memory()
await_sharers(2)
before = time.monotonic()
while time.monotonic() < before + 2: assert sharers() == 2
os.kill(child, signal.SIGKILL)
await_sharers(1)
print("done", flush=True)
os._exit(0)
"""
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            result = run([HANARE, "run", "--local", "64M", "--store", f"file:{place}",
                          *unshare, sys.executable, "-S", "-c", program], place)
        self.assertEqual(result[:2], (0, "done\n"), result[2])

    def test_limit_of_addresses(self):
        # Each: a limit, whether there is far memory, and what is said of it.
        cases = ((200 * MIB, False, "the program runs in plain memory: addresses are short"),
                 (400 * MIB, True, "some of the program's memory may be plain: addresses are short"),
                 (4096 * MIB, True, ""))
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            for limit, far, words in cases:
                with self.subTest(limit=limit):
                    def limited(limit=limit):
                        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
                    result = run([HANARE, "run", "--local", "40M", "--store", f"file:{place}",
                                  PROGRAMS / "few_addresses"], place, preexec_fn=limited)
                    self.assertEqual(result[:2], (0, "120 MiB\n"), result[2])
                    said = [line for line in result[2].splitlines() if "hanare: warn: " in line]
                    self.assertEqual(len(said), 1 if words else 0, result[2])
                    self.assertIn(words, "".join(said))
                    self.assertEqual("hanare: peak far memory 120 MiB" in result[2], far, result[2])

    # Its tables must not be far: a fault in the handler of a fault ends the program.
    def test_memory_beside_a_pool_of_its_own(self):
        self.assertEqual(plain("own_pool", "early")[:2], (0, "both are right\n"))
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            command = [HANARE, "run", "--local", "8M", "--store", f"file:{place}",
                       PROGRAMS / "own_pool"]
            for _ in range(5):
                self.assertEqual(run([*command, "early"], place)[:2], (0, "both are right\n"))
            refused = run([*command, "late"], place)
            self.assertEqual(refused[0], 1, refused[2])
            self.assertIn("all of the program's memory is far already, below hanare run",
                          refused[1])

    def test_signals(self):
        self.compare("signals")

    def test_cancel(self):
        self.compare("cancel")

    def test_cancel_anywhere(self):
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            # With room for all, no signal is held back that would stop it.
            result = run([HANARE, "run", "--local", "200M", "--store", f"file:{place}",
                          PROGRAMS / "cancel_anywhere"], place)
        self.assertEqual(result[:2], plain("cancel_anywhere")[:2], result[2])
        self.assertRegex(result[2], "peak far memory 64")

    def test_static_array(self):
        self.compare("static_array")

    def test_heap_that_begins_with_a_block(self):
        fixed = ("setarch", "-R")
        if subprocess.run([*fixed, "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("addresses cannot be fixed here (setarch -R)")
        self.compare("static_array", launcher=fixed)

    def test_fortran_common(self):
        compiler = shutil.which("gfortran")
        if compiler is None:
            self.skipTest("needs gfortran")
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            program = pathlib.Path(place, "common")
            subprocess.run([compiler, "-O1", HERE / "common.f90", "-o", program], check=True)
            self.compare(program)

    def test_other_engines(self):
        for engine, name in (("sigbus-copy", "forks"), ("sigbus-copy", "corner_calls"),
                             ("sigbus-copy", "mappings"), ("sigbus-copy", "forked_files"),
                             ("segv-remap", "mappings"), ("segv-remap", "forks")):
            with self.subTest(engine=engine, name=name):
                self.compare(name, local="24M", options=("--engine", engine),
                             lines=(r"hanare: warn: the stacks in far memory [^\n]*\n",))

    def test_all_held(self):
        self.compare("all_held")

    def test_without_userfaultfd(self):
        for name in ("waiting", "cancel"):
            with self.subTest(name):
                self.compare(name, launcher=refusing("userfaultfd", "io_uring_setup", "io_setup"))

    def test_without_process_madvise(self):
        self.compare("crowd", launcher=refusing("process_madvise"))

    def ordinary_user(self, number=65534):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv to become an ordinary user")
        user = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]
        if subprocess.run([*user, "test", "-x", HANARE], check=False, timeout=60).returncode != 0:
            self.skipTest("the build directory is closed to other users")
        return user

    def test_as_ordinary_user(self):
        self.compare("cancel", launcher=self.ordinary_user())

    # `hanare run` of root's has a page that another user cannot open.
    def test_who_does_not_find_the_others_takes_little(self):
        user = self.ordinary_user()
        program = """
import re
far = bytearray(150 << 20)
for turn in range(2):
    for at in range(0, len(far), 4096): far[at] += 1
status = open("/proc/self/status").read()
print(int(re.search(r"RssAnon:\\s*([0-9]+) kB", status)[1]) >> 10, sum(far[::4096]) >> 10)
"""
        with tempfile.TemporaryDirectory(prefix="hanare-intercept-", dir="/var/tmp") as place:
            os.chmod(place, 0o777)
            script = pathlib.Path(place, "script.py")
            script.write_text(program, "ascii")
            python = f"python3 -S {script}"  # that the user may start
            code, output, errors = run(
                [HANARE, "run", "--local", "160M", "--store", f"file:{place}", *user,
                 "sh", "-c", f"{python}; {python} & wait"], place)
        self.assertEqual(code, 0, errors)
        for line in output.splitlines():
            local_mib, count = map(int, line.split())
            self.assertLess(local_mib, 60)
            self.assertEqual(count, 75)
        self.assertEqual(len(output.splitlines()), 2)
        self.assertRegex(errors, r"\Ahanare: warn: the other programs [^\n]*denied[^\n]*\n"
                                 r"(hanare: peak far memory [^\n]*\n)?\Z")

    # The threads of Hanare's and those that the kernel makes for io_uring count, too.
    def test_limit_of_processes(self):
        if shutil.which("prlimit") is None:
            self.skipTest("needs prlimit")
        user = self.ordinary_user(number=61234)  # of whom there are no processes
        for limit in range(2, 6):
            with self.subTest(limit=limit):
                self.compare("static_array", launcher=[*user, "prlimit", f"--nproc={limit}"],
                             lines=("hanare: warn: no thread can be had [^\n]*\n",))


if __name__ == "__main__":
    unittest.main()
