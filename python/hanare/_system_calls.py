# SPDX-License-Identifier: Apache-2.0
"""Whether the system calls of the process may be given far arrays."""
from __future__ import annotations

import logging
import os

from . import _native
from ._errors import Error

_caught = False


def catch_system_calls() -> None:
    """Called once, when the package is imported."""
    global _caught
    if os.environ.get("HANARE_SYSCALLS", "on") not in ("on", "true", "yes", "1"):
        return
    try:
        _native.catch_system_calls()
    except Error as failure:  # arrays work all the same
        logging.getLogger("hanare").info("system calls cannot be given far arrays: %s", failure)
    else:
        _caught = True


def system_calls_are_caught() -> bool:
    """Whether system calls may be given far arrays: `tofile`, sockets, `readinto`, pipes.

    They may where they could be caught when the package was imported.  ``HANARE_SYSCALLS=off``
    leaves them alone.
    """
    return _caught
