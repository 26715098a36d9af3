#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Checks what each folder includes:
#   - project headers only from the folders that scripts/layers.txt allows, named from the src root
#     ("sys/futex.hpp"), never with "../";
#   - <sys/...>, <linux/...> and the like only in src/sys, except for KERNEL_HEADER_EXCEPTIONS;
#   - hanare/hanare.hpp, which is for users, never in the library and its programs.
#
# check_layers.py [--self-test]
import fnmatch
import re

import checklib

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]+)[">]', re.M)
KERNEL_HEADERS = ("sys/", "linux/", "asm/", "liburing")

# (file, header, why): shell patterns.
KERNEL_HEADER_EXCEPTIONS = [
    ("*_test.cpp", "*", "tests act as the programs that use Hanare"),
    ("src/*", "sys/types.h", "plain POSIX types, no system call"),
    ("src/pager/*", "sys/mman.h", "the MADV_* constants that sys/memory.hpp takes"),
    ("src/server/*", "sys/mman.h", "the same"),
    ("src/base/assert.cpp", "sys/syscall.h", "the last words of a process, below every layer"),
    ("src/hook/*", "sys/syscall.h", "wraps what libc offers for the same system calls"),
    ("src/space/*", "sys/*", "does what the kernel does at exec, and answers tasks' system calls"),
    ("src/space/*", "linux/*", "the same, before there is a libc"),
    ("include/hanare/space.h", "sys/types.h", "pid_t, which kill(2) takes"),
    ("src/task/*", "sys/*", "what a process hands to its task, and where the kernel told it of its space"),
    ("src/intercept/*", "sys/*", "answers the program's system calls: their numbers and layouts"),
    ("compiler/*", "sys/*", "programs on POSIX alone, without the library's layers"),
    ("bench/compared/space_mpi.cpp", "sys/wait.h", "a program of MPI, without the library"),
    ("bench/dlm/mapped_arrays.c", "sys/mman.h", "the kernel's own way, without the library"),
    ("bench/dlm/final_flush.c", "sys/mman.h", "the same"),
    ("src/intercept/forks.cpp", "linux/sched.h", "the layout of clone3's arguments"),
]


def read_layers(root):
    """{folder: folders it may include from}, and findings about the list itself."""
    layers, findings = {}, []
    for line in (root / "scripts/layers.txt").read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            folder, _, allowed = line.partition(":")
            # Bottom-up, so that a cycle cannot be written down.
            findings += [
                f"scripts/layers.txt: {folder} names {name}, which is not above it"
                for name in allowed.split()
                if name not in layers
            ]
            layers[folder.strip()] = set(allowed.split())
    return layers, findings


def folder_of_include(name, layers):
    first = name.split("/")[0]
    if first == "hanare":
        return "public"
    for folder in ("src/" + first, first):
        if folder in layers:
            return folder
    return None


def check_include(path, folder, quote, name, layers):
    """The text of the finding, or None."""
    kernel = name.startswith(KERNEL_HEADERS)
    if quote == "<" and kernel:
        if folder in ("src/sys", "examples") or any(
            fnmatch.fnmatch(path, file) and fnmatch.fnmatch(name, header)
            for file, header, _ in KERNEL_HEADER_EXCEPTIONS
        ):
            return None
        return f"<{name}> belongs into src/sys"
    if name == "hanare/hanare.hpp" and folder not in ("public", "examples") and "_test." not in path:
        return "hanare.hpp is for users; use hanare.h or the layer itself"
    if quote == "<" and not name.startswith("hanare/"):
        return None
    if ".." in name.split("/"):
        return f'"{name}": name it from the src root'
    if "/" not in name:
        return None if not folder.startswith("src/") else f'"{name}": name it from the src root'
    target = folder_of_include(name, layers)
    if target is None:
        return f'"{name}" is in no folder of scripts/layers.txt'
    if target != folder and target not in layers[folder]:
        return f'"{name}": {folder} may not include from {target}'
    return None


def check(root):
    layers, findings = read_layers(root)
    declared = {"include" if folder == "public" else folder for folder in layers}
    for child in sorted((root / "src").iterdir()) if (root / "src").is_dir() else []:
        if child.is_dir() and f"src/{child.name}" not in declared:
            findings.append(f"src/{child.name}: not in scripts/layers.txt")
    for folder in layers:
        for file in checklib.sources(root, "include" if folder == "public" else folder):
            path = str(file.relative_to(root))
            text = file.read_text()
            for match in INCLUDE.finditer(text):
                finding = check_include(path, folder, *match.groups(), layers)
                if finding:
                    line = text.count("\n", 0, match.start()) + 1
                    findings.append(f"{path}:{line}: {finding}")
    return findings


def self_test():
    layers = {
        "scripts/layers.txt": "public:\nsrc/base: public\nsrc/sys: public src/base\n"
        "examples: public\n"
    }

    def with_file(name, text):
        return {**layers, name: text + "\n"}

    return checklib.self_test("the layer check", check, [
        ("good", with_file("src/sys/a.cpp", '#include "base/b.hpp"\n#include <sys/mman.h>'), None),
        ("upward", with_file("src/base/a.cpp", '#include "sys/b.hpp"'), "src/base may not include from src/sys"),
        ("upward in a subfolder", with_file("src/base/x/a.hpp", '#include "sys/b.hpp"'), "src/base/x/a.hpp:1"),
        ("public upward", with_file("include/hanare/a.h", '#include "base/b.hpp"'), "public may not include"),
        ("parent", with_file("src/sys/a.cpp", '#include "../base/b.hpp"'), "from the src root"),
        ("no folder", with_file("src/sys/a.cpp", '#include "b.hpp"'), "from the src root"),
        ("kernel header", with_file("src/base/a.cpp", "\n#include <linux/futex.h>"), "src/base/a.cpp:2: <linux/futex.h> belongs"),
        ("undeclared folder", with_file("src/odd/a.cpp", ""), "src/odd: not in"),
        ("undeclared include", with_file("src/sys/a.cpp", '#include "odd/b.hpp"'), "in no folder"),
        ("internal in example", with_file("examples/a.cpp", '#include "base/b.hpp"'), "examples may not include"),
        ("C++ API inside", with_file("src/sys/a.cpp", '#include "hanare/hanare.hpp"'), "is for users"),
        ("undeclared layer", {"scripts/layers.txt": "src/base: public\n"}, "names public, which is not above it"),
    ])


def run(_):
    count = len(checklib.sources(checklib.ROOT, "include", "src", "cli", "bench", "examples"))
    return checklib.report("layers", check(checklib.ROOT), f"{count} files in order")


if __name__ == "__main__":
    checklib.main("layers", run, self_test)
