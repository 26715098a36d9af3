# SPDX-License-Identifier: Apache-2.0
"""The functions that stencils may call, by their names in Python and in NumPy."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

# Name: name in C (with f for float), number of arguments, the same for constants.
FUNCTIONS: dict[str, tuple[str, int, Callable[..., Any]]] = {
    "sqrt": ("sqrt", 1, math.sqrt), "cbrt": ("cbrt", 1, lambda x: math.copysign(
        abs(x) ** (1 / 3), x)),
    "exp": ("exp", 1, math.exp), "expm1": ("expm1", 1, math.expm1),
    "log": ("log", 1, math.log), "log2": ("log2", 1, math.log2),
    "log10": ("log10", 1, math.log10), "log1p": ("log1p", 1, math.log1p),
    "sin": ("sin", 1, math.sin), "cos": ("cos", 1, math.cos), "tan": ("tan", 1, math.tan),
    "asin": ("asin", 1, math.asin), "acos": ("acos", 1, math.acos),
    "atan": ("atan", 1, math.atan), "atan2": ("atan2", 2, math.atan2),
    "sinh": ("sinh", 1, math.sinh), "cosh": ("cosh", 1, math.cosh),
    "tanh": ("tanh", 1, math.tanh), "erf": ("erf", 1, math.erf),
    "floor": ("floor", 1, math.floor), "ceil": ("ceil", 1, math.ceil),
    "fabs": ("fabs", 1, math.fabs), "hypot": ("hypot", 2, math.hypot),
    "fmod": ("fmod", 2, math.fmod), "copysign": ("copysign", 2, math.copysign),
}

OTHER_NAMES = {
    "abs": "fabs", "absolute": "fabs", "arcsin": "asin", "arccos": "acos", "arctan": "atan",
    "arctan2": "atan2", "minimum": "min", "maximum": "max", "fmin": "min", "fmax": "max",
    "power": "pow",
}

# What is no function of C: the reader knows what to make of them.
SPECIAL = ("min", "max", "pow", "where", "old", "sum", "float", "range", "len")

ALL_NAMES = sorted({*FUNCTIONS, *OTHER_NAMES, *SPECIAL})
