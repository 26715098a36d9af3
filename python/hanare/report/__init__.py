# SPDX-License-Identifier: Apache-2.0
"""``hanare report RUN.json... -o report.html``: runs and measurements as one page.

A file is what ``hanare run --stats FILE``, `hanare.Pool.recording` or ``hanare bench NAME --json
FILE`` has written; which of them is seen from it.  The page needs nothing besides itself: no network, and no JavaScript for what
it shows.  The figures are drawn by Matplotlib, which has to be there (``pip install
hanare[report]``).
"""
from __future__ import annotations

import argparse
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ._section import Section


class ReportError(Exception):
    """A file that cannot be shown, or a page that cannot be written; one line says why."""


def _read(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is no text"
        raise ReportError(f"{path}: {reason}") from None
    except RecursionError:
        raise ReportError(f"{path}: is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ReportError(f"{path}: is no JSON (line {error.lineno}: {error.msg})") from None


def _is_run(content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get("totals"), dict)


def _is_bench(content: Any) -> bool:
    wanted = {"bench", "case", "system", "metric", "median"}
    return isinstance(content, list) and len(content) > 0 and all(
        isinstance(record, dict) and wanted <= record.keys() for record in content)


def _made(path: str, make: Callable[[], Any]) -> Any:
    """What ``make`` returns.  Files are others' work: whatever is odd in one is said in a line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers that are none
            return make()
    except ModuleNotFoundError:
        raise
    except Exception as error:  # noqa: BLE001
        words = " ".join(str(error).split())[:200]
        raise ReportError(f"{path}: is incomplete or damaged ({type(error).__name__}: "
                          f"{words})") from None


def _measured(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that have a number, with all that figures look at."""
    names = ("bench", "case", "system", "metric")
    return [{**record, **{name: str(record[name]) for name in names},
             "params": record.get("params") or {}} for record in records
            if isinstance(record["median"], (int, float)) and math.isfinite(record["median"])]


def sections_of(paths: Sequence[str]) -> list[Section]:
    """What the files hold.  Measurements of several benches are shown together, since figures
    compare them; where two files are of the same bench, each by itself.

    Raises ReportError for the first file that is neither.
    """
    from . import _bench, _run
    sections: list[Section] = []
    groups: list[tuple[list[str], list[dict[str, Any]]]] = []
    for path in paths:
        content = _read(path)
        if _is_run(content):
            sections.append(_made(path, lambda: _run.section(content, Path(path).name)))
        elif _is_bench(content):
            records = _made(path, lambda: _measured(content))
            benches = {record["bench"] for record in records}
            group = next((group for group in groups
                          if not benches & {record["bench"] for record in group[1]}), None)
            if group is None:
                groups.append(([path], records))
            else:
                group[0].append(path)
                group[1].extend(records)
        else:
            raise ReportError(f"{path}: is neither of hanare run --stats nor of hanare bench "
                              "--json")
    for names, records in groups:
        shown = ", ".join(names)
        remark = f" ({', '.join(Path(name).name for name in names)})" if len(groups) > 1 else ""
        sections += _made(shown, lambda: _bench.sections(records, remark))
    return sections


def _title(sections: Sequence[Section]) -> str:
    more = f" and {len(sections) - 1} more" if len(sections) > 1 else ""
    return f"{sections[0].title}{more}" if sections else "Nothing to show"


def write(paths: Sequence[str], output: str | os.PathLike[str], title: str | None = None) -> None:
    """Writes the page of these files.  Raises ReportError, and leaves no part of a page then."""
    from ._page import page
    sections = sections_of(paths)
    text = _made(", ".join(paths), lambda: page(sections, title or _title(sections)))
    target = Path(output)
    was_there = os.path.lexists(target)
    try:
        with open(target, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        if not was_there:
            target.unlink(missing_ok=True)
        raise ReportError(f"{target}: cannot be written: {error.strerror}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns the exit status, after one line where it is not 0."""
    parser = argparse.ArgumentParser(
        prog="hanare report", description="Runs and measurements as one page that needs nothing "
        "besides itself: time line, residency, advice, figures.")
    parser.add_argument("files", nargs="+", metavar="FILE",
                        help="of `hanare run --stats FILE` or `hanare bench NAME --json FILE`")
    parser.add_argument("-o", "--output", default="report.html", metavar="PAGE",
                        help="the page (default report.html)")
    parser.add_argument("--title", help="of the page (default: what the files are of)")
    options = parser.parse_args(arguments)
    try:
        write(options.files, options.output, options.title)
    except ReportError as error:
        print(f"hanare: error: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        print(f"hanare: error: hanare report needs {error.name}: pip install 'hanare[report]'",
              file=sys.stderr)
        return 70
    print(f"{options.output}: written")
    return 0
