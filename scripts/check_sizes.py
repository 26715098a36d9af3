#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Lists files above 300 lines and functions above 70; files above 800 lines fail.  Function ends are
# found by counting braces, which is good enough for code that clang-format has seen and not good
# enough to fail on.
#
# check_sizes.py [--self-test]
import re

import checklib

FILE_TARGET, FILE_MAX = 300, 800
FUNCTION_MAX = 70
FOLDERS = ("include", "src", "cli", "bench", "examples", "tests")

# What may open a brace without being a function body.
NOT_A_FUNCTION = re.compile(
    r"^\s*(#|namespace\b|(inline )?namespace\b|extern\b|class\b|struct\b|union\b|enum\b|template\b.*"
    r"(class|struct)\b|typedef\b|using\b|if\b|else\b|for\b|while\b|do\b|switch\b|try\b|catch\b|\})"
)


def functions(text):
    """(first line, name, lines) of every function body; nested ones count with the outer one."""
    lines = checklib.without_comments(text).splitlines()
    depth, first, at_depth, header = 0, None, 0, []
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#"):
            continue
        header = (header + [(number, line)])[-8:]
        opened = line.count("{") - line.count("}")
        if first is None and opened > 0:
            start, statement = statement_before_brace(header)
            if "(" in statement and not NOT_A_FUNCTION.match(statement):
                first, at_depth = start, depth
                name = re.search(r"(operator\s*\S+?|[\w~:]+)\s*\(|$", statement).group(1) or "?"
        depth += opened
        if first is not None and depth <= at_depth:
            yield first, name, number - first + 1
            first = None
        if re.search(r"([;}]|\w:)\s*$", line) or opened > 0:
            header = []


def statement_before_brace(header):
    text = " ".join(line.strip() for _, line in header)
    start = next((number for number, line in header if line.strip()), header[0][0])
    return start, text.split("{")[0]


def check(root):
    """(findings, warnings)."""
    findings, warnings = [], []
    for file in checklib.sources(root, *FOLDERS):
        path = file.relative_to(root)
        text = file.read_text()
        count = text.count("\n")
        if count > FILE_MAX:
            findings.append(f"{path}: {count} lines, at most {FILE_MAX} are allowed")
        elif count > FILE_TARGET:
            warnings.append(f"warning: {path}: {count} lines, the target is {FILE_TARGET}")
        for line, name, length in functions(text):
            if length > FUNCTION_MAX:
                warnings.append(f"warning: {path}:{line}: {name}() has {length} lines, at most "
                                f"{FUNCTION_MAX} are wanted")
    return findings, warnings


def self_test():
    def everything(root):
        findings, warnings = check(root)
        return findings + warnings

    body = "    if (a) { a++; }\n" * 70
    return checklib.self_test("the size check", everything, [
        ("good", {"src/a.cpp": "int f(int a) {\n" + body[:-40] + "}\n" + "// }{\n" * 200}, None),
        ("file fails", {"src/a.cpp": "// a\n" * 801}, "801 lines, at most 800"),
        ("file warned of", {"src/a.cpp": "// a\n" * 301}, "301 lines, the target is 300"),
        ("function", {"src/a.cpp": "namespace a {\nint f(int a,\n      int b) {\n" + body + "}\n}\n"},
         "src/a.cpp:2: f() has 73 lines"),
        ("member", {"src/a.hpp": "class A {\npublic:\n    void g() const {\n" + body + "    }\n};\n"},
         "g() has 72 lines"),
        ("test", {"src/a_test.cpp": "TEST(Suite, case) {\n" + body + "}\n"}, "TEST() has 72 lines"),
    ])


def run(_):
    findings, warnings = check(checklib.ROOT)
    print("\n".join(warnings + [f"{len(warnings)} warnings"]))
    return checklib.report("sizes", findings, f"no file above {FILE_MAX} lines")


if __name__ == "__main__":
    checklib.main("sizes", run, self_test)
