# SPDX-License-Identifier: Apache-2.0
"""``python -m hanare ...`` is the command ``hanare ...``, but that ``run`` takes Python scripts:

    python -m hanare run --local 2GiB script.py ARGUMENTS
"""
from __future__ import annotations

import os
import sys

from ._command import path
from ._run import with_interpreter

os.execv(path(), ["hanare", *with_interpreter(sys.argv[1:])])
