# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of a program once: in a memory cgroup where there are some, with a time limit.

What it starts is ended by it, whatever happens: the processes of the cgroup by their ids, or,
without cgroups, the session (a process group) of each process it has started.
"""

import contextlib
import dataclasses
import os
import pathlib
import resource
import select
import signal
import subprocess
import time

from interrupts import SIGNALS, undisturbed

SAMPLE_INTERVAL_S = 0.02
# A program whose memory does not fit may still wait for somebody after one of its processes has
# been killed.
AFTER_OOM_KILL_S = 2
ERROR_TEXT_CHARACTERS = 300


@dataclasses.dataclass(frozen=True)
class Step:
    """One command, and where its standard input comes from.

    With a client, the command is a server: both have the same working directory, the client's
    output is the step's, and it is the client that tells the server to end.  Only the server has
    limited memory.
    """

    argv: tuple
    stdin: str = os.devnull
    client: tuple = ()


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How it went: `failure` is empty, or says why there is no result."""

    failure: str
    time_s: float
    peak_bytes: int
    oom_kills: int = 0


class Failed(Exception):
    """The command did not do what it should; the text says what it did."""


def describe(status):
    """The text for a wait status as Popen.returncode gives it."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"


class Run:
    """One run of some steps in `directory`, which is the working directory of all of them.

    wrap: gives the arguments that stand before those of step number N.
    """

    def __init__(self, steps, directory, environment, timeout_s, cgroup=None, wrap=lambda _: ()):
        self.steps = steps
        self.directory = pathlib.Path(directory)
        self.environment = environment
        self.timeout_s = timeout_s
        self.cgroup = cgroup
        self.wrap = wrap
        self.peak_bytes = 0
        self.oom_kills = 0
        self.deadline = 0.0
        self.started = []

    def run(self):
        failure = ""
        before = time.monotonic()
        self.deadline = before + self.timeout_s
        try:
            for number, step in enumerate(self.steps):
                self._run_step(number, step)
        except Failed as error:
            failure = str(error)
        except OSError as error:
            failure = f"cannot be started: {error}"
        finally:
            time_s = time.monotonic() - before
            with undisturbed():
                self._end_all()
        return Outcome(failure, time_s, self.peak_bytes, self.oom_kills)

    def _run_step(self, number, step):
        argv = (*self.wrap(number), *step.argv)
        if not step.client:
            self._wait(self._start(argv, step.stdin, f"stdout.{number}", limited=True), argv[0])
            return
        server = self._start(argv, step.stdin, f"server.{number}", limited=True)
        client = self._start(step.client, os.devnull, f"stdout.{number}", limited=False)
        self._wait(client, "client", beside=server)
        self._wait(server, argv[0])

    def _start(self, argv, stdin, output, limited):
        def prepare():
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if limited and self.cgroup is not None:
                self.cgroup.enter()

        with open(stdin, "rb") as source, \
                open(self.directory / output, "wb") as out, \
                open(self.directory / "stderr", "ab") as error, \
                undisturbed():
            process = subprocess.Popen(argv, cwd=self.directory, env=self.environment,
                                       stdin=source, stdout=out, stderr=error,
                                       start_new_session=True, preexec_fn=prepare)
            self.started.append(process)
        return process

    def _wait(self, process, name, beside=None):
        """Until it ends; raises Failed when that is not the end it should have."""
        descriptor = os.pidfd_open(process.pid)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            killed_at = None
            while not poll.poll(SAMPLE_INTERVAL_S * 1000):
                now = time.monotonic()
                self._sample()
                if self.oom_kills and killed_at is None:
                    killed_at = now
                if killed_at is not None and now > killed_at + AFTER_OOM_KILL_S:
                    raise Failed("killed for want of memory (part of it)")
                if now > self.deadline:
                    raise Failed(f"not done after {self.timeout_s:.0f} s")
                if beside is not None and has_failed(beside):
                    self._reap(beside)
                    raise Failed(self._text(beside.returncode, "server"))
        finally:
            os.close(descriptor)
        self._sample()
        self._reap(process)
        if process.returncode != 0 or self.oom_kills:
            raise Failed(self._text(process.returncode, name))

    def _sample(self):
        if self.cgroup is not None:
            use = self.cgroup.use()
            self.peak_bytes = max(self.peak_bytes, use.anonymous_bytes)
            self.oom_kills = use.oom_kills

    def _text(self, status, name):
        if self.oom_kills:
            return "killed for want of memory"
        text = f"{os.path.basename(name)}: {describe(status)}"
        with contextlib.suppress(OSError):
            lines = (self.directory / "stderr").read_text(errors="replace").split("\n")
            last = next((line for line in reversed(lines) if line.strip()), "")
            text += f", {last}"[:ERROR_TEXT_CHARACTERS] if last else ""
        return text

    def _end_all(self):
        if self.cgroup is not None:
            self.cgroup.kill_all()
        for process in self.started:
            self._reap(process)

    def _reap(self, process):
        """Ends what there still is of its session, then takes note of its end."""
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if self.cgroup is None:  # the largest process, as there is nobody who knows the sum
            self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * 1024)


def has_failed(process):
    """Whether a process, which is not taken note of yet, has come to a bad end."""
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    return ended is not None and (ended.si_code != os.CLD_EXITED or ended.si_status != 0)
