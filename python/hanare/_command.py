# SPDX-License-Identifier: Apache-2.0
"""The command `hanare`, which the package has brought with it."""
from __future__ import annotations

import os
import sys
from pathlib import Path


def path() -> str:
    """Of the program."""
    program = Path(__file__).parent / "bin" / "hanare"
    if not program.exists():
        raise FileNotFoundError(f"{program}: the package was installed without the command")
    return str(program)


def main() -> None:
    program = path()
    os.execv(program, ["hanare", *sys.argv[1:]])
