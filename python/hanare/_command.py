# SPDX-License-Identifier: Apache-2.0
"""The command `hanare`, which the package has brought with it."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn


def path() -> str:
    """Of the program."""
    program = Path(__file__).parent / "bin" / "hanare"
    if not program.exists():
        raise FileNotFoundError(f"{program}: the package was installed without the command")
    return str(program)


def become(arguments: Sequence[str]) -> NoReturn:
    """The command, for which this interpreter runs what is written in Python."""
    os.environ["HANARE_PYTHON"] = sys.executable
    os.execv(path(), ["hanare", *arguments])


def main() -> NoReturn:
    become(sys.argv[1:])
