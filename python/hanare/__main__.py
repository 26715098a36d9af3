# SPDX-License-Identifier: Apache-2.0
"""``python -m hanare ...`` is the command ``hanare ...``, but that ``run`` takes Python scripts:

    python -m hanare run --local 2GiB script.py ARGUMENTS
"""
from __future__ import annotations

import sys

from ._command import become
from ._run import with_interpreter

become(with_interpreter(sys.argv[1:]))
