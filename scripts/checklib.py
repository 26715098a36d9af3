# SPDX-License-Identifier: Apache-2.0
#
# What the checkers share: how findings are reported, and how a checker proves that it can fail.
#
# A checker is a function from a project root (and what else it needs) to a list of findings, one
# line each.  Its self-test builds small projects in a temporary directory, one good and one per
# kind of violation, and compares the findings with what each must contain.
import os
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE_SUFFIXES = {".c", ".cpp", ".h", ".hpp"}


def sources(root, *folders):
    """C and C++ files below the folders that exist, sorted."""
    return sorted(
        path
        for folder in folders
        for path in (root / folder).rglob("*")
        if path.suffix in SOURCE_SUFFIXES and path.is_file()
    )


def without_comments(text):
    """The text with comments and the contents of string literals blanked; lines keep their places."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"'
        r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*'",
        re.S,
    )

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    return token.sub(blank, text)


def report(what, findings, passed):
    """Prints the findings, or what was found in order; returns the exit status."""
    for finding in findings:
        print(finding)
    if findings:
        print(f"{what}: {len(findings)} finding(s)")
        return 1
    print(f"{what}: {passed}")
    return 0


def write_tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def self_test(what, check, cases):
    """cases: (name, files, expected), expected a substring of one finding or None for none.

    `check` gets the root of the temporary project.
    """
    failures = []
    for name, files, expected in cases:
        with tempfile.TemporaryDirectory(prefix=f"hanare-check-{os.getpid()}-") as folder:
            root = pathlib.Path(folder)
            write_tree(root, files)
            findings = check(root)
        if expected is None and findings:
            failures.append(f"{name}: must pass, but: {findings}")
        elif expected is not None and not any(expected in finding for finding in findings):
            failures.append(f"{name}: must report '{expected}', but: {findings}")
    return report(f"self-test of {what}", failures, f"{len(cases)} cases as expected")


def main(what, run, run_self_test):
    """Runs the self-test when it is asked for, else the check."""
    sys.exit(run_self_test() if "--self-test" in sys.argv[1:] else run(sys.argv[1:]))
