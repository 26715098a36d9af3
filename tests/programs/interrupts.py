# SPDX-License-Identifier: Apache-2.0
"""Signals that ask for an end become an exception, so that everything is undone on the way out."""

import contextlib
import os
import signal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asks for an end."""

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextlib.contextmanager
def interruptible():
    """Turns the first of the signals into Interrupted; later ones do not disturb the undoing.

    Ends this process by the same signal afterwards, as its parent may want to know.
    """
    def interrupt(number, _frame):
        for other in SIGNALS:
            signal.signal(other, signal.SIG_IGN)
        raise Interrupted(number)

    previous = {number: signal.signal(number, interrupt) for number in SIGNALS}
    try:
        yield
    except Interrupted as error:
        signal.signal(error.number, signal.SIG_DFL)
        os.kill(os.getpid(), error.number)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def undisturbed():
    """Making or undoing something is not cut in two: the signals come when it is done."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
