# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the package: one for each group of statuses of the C API (hanare/status.h)."""


class Error(Exception):
    """A call failed, and nothing changed.  ``status`` is the name in ``hanare/status.h``."""

    def __init__(self, text: str, status: str = "INTERNAL") -> None:
        super().__init__(text)
        self.status = status


class ArgumentError(Error, ValueError):
    """An argument is not allowed; the text names it, its value and what is allowed."""


class NoRoomError(Error, MemoryError):
    """Memory, a limit of the pool, or the store does not suffice."""


class StoreError(Error, OSError):
    """The store cannot be opened, read or written."""


_BY_STATUS: dict[str, type[Error]] = {
    "INVALID_ARGUMENT": ArgumentError,
    "OUT_OF_RANGE": ArgumentError,
    "NO_MEMORY": NoRoomError,
    "LIMIT": NoRoomError,
    "STORE_FULL": NoRoomError,
    "STORE_UNAVAILABLE": StoreError,
    "STORE_IO": StoreError,
    "CORRUPT": StoreError,
}


def from_status(status: str, text: str) -> Error:
    return _BY_STATUS.get(status, Error)(text, status)


def bad_argument(name: str, value: object, why: str, allowed: str) -> ArgumentError:
    shown = repr(value)
    if len(shown) > 80:
        shown = shown[:77] + "..."
    return ArgumentError(f"{name}: {shown} {why}; allowed is {allowed}", "INVALID_ARGUMENT")
