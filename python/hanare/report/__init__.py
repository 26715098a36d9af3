# SPDX-License-Identifier: Apache-2.0
"""``hanare report RUN.json... -o report.html``: runs and measurements as one page.

A file is what ``hanare run --stats FILE`` or ``hanare bench NAME --json FILE`` has written; which of
both is seen from it.  The page needs nothing besides itself: no network, and no JavaScript for what
it shows.  The figures are drawn by Matplotlib, which has to be there (``pip install
hanare[report]``).
"""
from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
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
    except json.JSONDecodeError as error:
        raise ReportError(f"{path}: is no JSON (line {error.lineno}: {error.msg})") from None


def _is_run(content: Any) -> bool:
    return isinstance(content, dict) and isinstance(content.get("totals"), dict)


def _is_bench(content: Any) -> bool:
    wanted = {"bench", "case", "system", "metric", "median"}
    return isinstance(content, list) and len(content) > 0 and all(
        isinstance(record, dict) and wanted <= record.keys() for record in content)


def sections_of(paths: Sequence[str]) -> list[Section]:
    """What the files hold; those of measurements together, since figures compare them.

    Raises ReportError for the first file that is neither.
    """
    from . import _bench, _run
    sections: list[Section] = []
    records: list[dict[str, Any]] = []
    for path in paths:
        content = _read(path)
        try:
            if _is_run(content):
                sections.append(_run.section(content, Path(path).name))
            elif _is_bench(content):
                records += content
            else:
                raise ReportError(f"{path}: is neither of hanare run --stats nor of hanare bench "
                                  "--json")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ReportError(f"{path}: is incomplete or damaged "
                              f"({type(error).__name__}: {error})") from None
    try:
        return sections + _bench.sections(records)
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError(f"a file of hanare bench is incomplete or damaged "
                          f"({type(error).__name__}: {error})") from None


def _title(sections: Sequence[Section]) -> str:
    more = f" and {len(sections) - 1} more" if len(sections) > 1 else ""
    return f"{sections[0].title}{more}"


def write(paths: Sequence[str], output: str | os.PathLike[str], title: str | None = None) -> None:
    """Writes the page of these files; what was at ``output`` is replaced when it is complete.

    Raises ReportError.
    """
    from ._page import page
    sections = sections_of(paths)
    text = page(sections, title or _title(sections))
    target = Path(output)
    try:
        # Beside it, so that nobody ever sees half of a page.
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=target.parent, delete=False,
                                         prefix=f".{target.name}.") as file:
            try:
                file.write(text)
                file.flush()
                mask = os.umask(0)
                os.umask(mask)
                os.fchmod(file.fileno(), 0o666 & ~mask)
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
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
