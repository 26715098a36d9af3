# SPDX-License-Identifier: Apache-2.0
"""Programs as they are, with their memory in a pool: `hanare run`."""
from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from ._command import path
from ._errors import bad_argument
from ._sizes import parse_size

# Options of `hanare run` that stand alone.
_FLAGS = {"--progress", "--quiet", "--verbose", "-h", "--help"}


def with_interpreter(arguments: Sequence[str]) -> list[str]:
    """Of the command ``hanare``; a program ``*.py`` of ``run`` gets this Python in front."""
    given = list(arguments)
    if not given or given[0] != "run":
        return given
    at = 1
    while at < len(given) and given[at].startswith("-") and given[at] != "--":
        at += 1 if given[at] in _FLAGS or "=" in given[at] else 2
    at += at < len(given) and given[at] == "--"
    if at < len(given) and given[at].endswith(".py"):
        given.insert(at, sys.executable)
    return given


@dataclasses.dataclass(frozen=True)
class RunResult:
    """How a program ended under `hanare run`, and what it cost.

    ``stats`` is what ``hanare run --stats`` writes; None where the program left nothing.
    ``stdout`` and ``stderr`` are those of `subprocess.run`.
    """

    args: list[str]
    returncode: int
    stdout: Any
    stderr: Any
    stats: dict[str, Any] | None


def run(command: Sequence[str | os.PathLike[str]], *, local: int | str | None = None,
        store: str | os.PathLike[str] | None = None, block: int | str | None = None,
        check: bool = True, **options: Any) -> RunResult:
    """Runs a program, unmodified, with its memory in a pool of its own, and waits for it.

    ``command``: program and arguments; ``script.py`` as the program is run by this Python.
    ``local``, ``store``, ``block``: as of `Pool`.  ``options``: those of `subprocess.run`.

    Raises subprocess.CalledProcessError when the program fails, unless ``check`` is False.
    """
    if isinstance(command, (str, bytes)) or len(command) == 0:
        raise bad_argument("command", command, "is no list", "a program and its arguments")
    words = ["run"]
    sizes = {"local": parse_size("local", local), "block": parse_size("block", block)}
    for flag, size in sizes.items():
        if size != 0:
            words += [f"--{flag}", str(size)]
    if store is not None:
        words += ["--store", store if isinstance(store, str) else f"file:{os.fspath(store)}"]
    with tempfile.TemporaryDirectory(prefix="hanare-run-") as folder:
        figures = os.path.join(folder, "stats.json")
        words += ["--stats", figures, "--", *(os.fsdecode(word) for word in command)]
        whole = [path(), *with_interpreter(words)]
        ended = subprocess.run(whole, check=check, **options)
        stats = None
        if os.path.exists(figures):
            with open(figures, encoding="utf-8") as file:
                stats = json.load(file)
    return RunResult(whole, ended.returncode, ended.stdout, ended.stderr, stats)
