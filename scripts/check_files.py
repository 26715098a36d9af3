#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Checks what every folder and file must have: a README.md of at most 40 lines in each folder of
# FOLDERS that holds sources, the SPDX line at the top of each source, no tabs, no line above 100
# columns, no trailing blanks.
#
# check_files.py [--self-test]
import checklib

FOLDERS = ("src", "cli", "bench", "examples")
README_LINES_MAX = 40
COLUMNS_MAX = 100
SPDX = "SPDX-License-Identifier: Apache-2.0"


def check_readme(root, folder):
    path = folder.relative_to(root)
    readme = folder / "README.md"
    if not readme.exists():
        return [f"{path}: no README.md (what lives here, what may not, where to start reading)"]
    count = readme.read_text().count("\n")
    if count > README_LINES_MAX:
        return [f"{path}/README.md: {count} lines, at most {README_LINES_MAX} are allowed"]
    return []


def check_lines(path, text):
    findings = []
    lines = text.splitlines()
    if not lines or SPDX not in lines[0]:
        findings.append(f"{path}:1: does not begin with '{SPDX}'")
    for number, line in enumerate(lines, 1):
        if "\t" in line or line != line.rstrip():
            findings.append(f"{path}:{number}: tab or trailing blank")
        if len(line) > COLUMNS_MAX:
            findings.append(f"{path}:{number}: {len(line)} columns, at most {COLUMNS_MAX}")
    return findings


def check(root):
    findings = []
    for folder in sorted({file.parent for file in checklib.sources(root, *FOLDERS)}):
        findings += check_readme(root, folder)
    for file in checklib.sources(root, "include", "tests", *FOLDERS):
        findings += check_lines(file.relative_to(root), file.read_text())
    return findings


def self_test():
    head = f"// {SPDX}\n"
    readme = {"src/base/README.md": "# base\n"}
    return checklib.self_test("the file check", check, [
        ("good", {**readme, "src/base/a.cpp": head + "int a;\n"}, None),
        ("no README", {"src/base/a.cpp": head}, "src/base: no README.md"),
        ("no README in a subfolder", {**readme, "src/base/x/a.cpp": head}, "src/base/x: no README"),
        ("long README", {"src/base/README.md": "a\n" * 41, "src/base/a.cpp": head}, "41 lines"),
        ("no SPDX", {**readme, "src/base/a.cpp": "int a;\n"}, "src/base/a.cpp:1: does not begin"),
        ("empty", {**readme, "src/base/a.cpp": ""}, "does not begin"),
        ("long line", {**readme, "src/base/a.cpp": head + "//" + "a" * 99 + "\n"}, "101 columns"),
        ("tab", {**readme, "src/base/a.cpp": head + "\tint a;\n"}, "src/base/a.cpp:2: tab"),
    ])


def run(_):
    return checklib.report("files", check(checklib.ROOT), "every file and folder in order")


if __name__ == "__main__":
    checklib.main("files", run, self_test)
