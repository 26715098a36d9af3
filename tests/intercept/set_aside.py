# SPDX-License-Identifier: Apache-2.0
"""What `hanare run` has set aside for forked children, as a program below it sees it."""

import os
import pathlib
import signal
import struct
import time

MIB = 1 << 20
CHILDREN = 64
CHILD = struct.Struct("<iiQ")  # RunChild in src/telemetry/run_page.hpp
TIMEOUT_S = 20


def set_aside():
    """Bytes by process; they end the page, whose size is in its second word."""
    page = pathlib.Path(os.environ["HANARE_RUN_PAGE"]).read_bytes()
    end = struct.unpack_from("<Q", page, 8)[0]
    children = CHILD.iter_unpack(page[end - CHILDREN * CHILD.size:end])
    return {process: count for process, _, count in children if process != 0}


def fork_that(work):
    """(process, descriptor): the child works once something is written to the descriptor."""
    begin, go = os.pipe()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            os.close(go)
            os.read(begin, 1)
            status = work()
        finally:
            os._exit(status)
    os.close(begin)
    return process, go


def need_memory():
    far = bytearray(40 * MIB)
    for at in range(0, len(far), 4096):
        far[at] = 1
    return 2 if os.getpid() in set_aside() else 0


def await_nothing():
    deadline = time.monotonic() + TIMEOUT_S
    while set_aside():
        assert time.monotonic() < deadline, set_aside()
        time.sleep(0.01)


held = bytearray(8 * MIB)  # all of it local, so that no child needs memory at once
for at in range(0, len(held), 4096):
    held[at] = 1
assert not set_aside()

process, go = fork_that(need_memory)
assert list(set_aside()) == [process], (process, set_aside())
assert 4 * MIB < set_aside()[process] < 8 * MIB, set_aside()
os.write(go, b"x")
assert os.waitpid(process, 0)[1] == 0
await_nothing()
os.close(go)

process, go = fork_that(lambda: 0)
assert process in set_aside()
os.kill(process, signal.SIGKILL)
await_nothing()  # before it is reaped
assert os.waitpid(process, 0)[1] == signal.SIGKILL
os.close(go)

waited, _never = os.pipe()
os.set_inheritable(waited, True)
process, go = fork_that(lambda: os.execv("/proc/self/exe", ["python3", "-c", f"""
import os
kept = bytearray(16 << 20)
os.read({waited}, 1)
"""]))
assert process in set_aside()
os.write(go, b"x")
await_nothing()  # while it waits
os.kill(process, signal.SIGKILL)
os.waitpid(process, 0)
print("done")
