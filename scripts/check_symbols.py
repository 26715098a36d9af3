#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Compares what libhanare.so exports with what it promises: the functions declared HANARE_API under
# include/hanare and the libc functions named in scripts/interposed_symbols.txt.  And nothing in it
# may ask the processor what it can do when a program starts (src/sys/processor.hpp).
#
# check_symbols.py LIBRARY | --self-test
import re
import subprocess

import checklib

DECLARATION = re.compile(r"\bHANARE_API\b[^;{}()]*?\b(\w+)\s*\(")


def declared(root):
    names = set()
    for header in checklib.sources(root, "include"):
        text = checklib.without_comments(header.read_text())
        names |= set(DECLARATION.findall(re.sub(r"^[ \t]*#.*", "", text, flags=re.M)))
    return names


def interposed(root):
    path = root / "scripts/interposed_symbols.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return {line.split("#")[0].strip() for line in lines} - {""}


# Of libgcc, behind __builtin_cpu_supports.
ASKS_AT_START = "__cpu_indicator_init"


def defined(library, *options):
    """Names, without versions and version nodes (type A)."""
    done = subprocess.run(["nm", *options, "--defined-only", library], capture_output=True,
                          text=True, check=True)
    entries = [line.split()[-2:] for line in done.stdout.splitlines()]
    return {name.split("@")[0] for kind, name in entries if kind != "A"}


def exported(library):
    return defined(library, "-D")


def check(root, library):
    promised, found = declared(root) | interposed(root), exported(library)
    return [f"{name}: promised, but {library} does not export it"
            for name in sorted(promised - found)] + [
            f"{name}: exported, but neither declared HANARE_API nor in interposed_symbols.txt"
            for name in sorted(found - promised)] + [
            f"{name}: a constructor that asks the processor; use sys/processor.hpp"
            for name in sorted({ASKS_AT_START} & defined(library))]


def self_test():
    header = ("#define HANARE_API __attribute__((unused))\n/* HANARE_API int hanare_gone(void); */\n"
              "HANARE_API int hanare_one(int);\nHANARE_API const char *\nhanare_two(void);\n")

    def build_and_check(root):
        library = root / "lib.so"
        source = root / "lib.c"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        return check(root, library)

    def with_body(body):
        return {"include/hanare/a.h": header, "scripts/interposed_symbols.txt": "# libc\nsignal\n",
                "lib.c": body}

    good = "int hanare_one(int a) { return a; } int hanare_two(void) { return 2; }\n"
    good += "int signal(void) { return 0; }\n"
    return checklib.self_test("the symbol check", build_and_check, [
        ("good", with_body(good), None),
        ("missing", with_body(good.replace("hanare_two", "hanare_twa")), "hanare_two: promised"),
        ("interposed missing", with_body(good.replace("signal", "static_signal")), "signal: promised"),
        ("leaked", with_body(good + "int helper(void) { return 3; }\n"), "helper: exported"),
        ("asks", with_body(good.replace("return a;", 'return a + !!__builtin_cpu_supports("avx2");')),
         ASKS_AT_START),
    ])


def run(arguments):
    library = arguments[0]
    return checklib.report("symbols", check(checklib.ROOT, library),
                           f"{len(exported(library))} exported, all promised")


if __name__ == "__main__":
    checklib.main("symbols", run, self_test)
