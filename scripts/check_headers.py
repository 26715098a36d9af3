#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Compiles every header alone: those under include/ (but .hpp) as C11, all of them as C++20, the
# library's own as C++23, those of bench/dlm and bench/dsm as C11, and so those of bench/npb_mpi and
# of PVM where these are there; warnings are errors.  The library's own which a
# source includes before anything else are compiled alone wherever that is built; of these only the
# guard is looked at.
#
# check_headers.py --cc CC --cxx CXX [--include DIR]... [--self-test]
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import checklib

WARNINGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]


GUARD = re.compile(r"^#pragma once$", re.M)
DIRECTIVE = re.compile(r'^#(include ["<](?P<header>[^">]+)[">]|.*)', re.M)


def included_first(root):
    """Names of headers that some source includes before anything else, whatever is built."""
    firsts = (DIRECTIVE.search(path.read_text(encoding="utf-8"))
              for path in checklib.sources(root, "src", "cli", "bench") if path.suffix == ".cpp")
    return {first["header"] for first in firsts if first and first["header"]}


def is_seen_alone(root, header, firsts):
    name = str(header.relative_to(root))
    return name.removeprefix("src/") in firsts and GUARD.search(header.read_text(encoding="utf-8"))


def mpi_includes():
    """Flags for the headers of an MPI, or None where there is none."""
    for wrapper in ("mpicc.openmpi", "mpicc.mpich"):
        if shutil.which(wrapper):
            shown = subprocess.run([wrapper, "-show"], capture_output=True, text=True).stdout
            return ["-isystem" + word[2:] for word in shlex.split(shown) if word.startswith("-I")]
    return None


def jobs(root, cc, cxx, includes):
    """(header, language, command) for every header and every language it must compile in."""
    flags = ["-fsyntax-only", *WARNINGS, f"-I{root}/include"]
    internal = [*flags, f"-I{root}/src", f"-I{root}", "-D_GNU_SOURCE", "-Wno-unused-function"]
    internal += [f"-I{folder}" for folder in includes]
    for header in checklib.sources(root, "include"):
        name = header.relative_to(root / "include")
        if header.suffix == ".h":
            yield name, "C11", [*cc, "-x", "c", "-std=c11", *flags, "-"]
        yield name, "C++20", [*cxx, "-x", "c++", "-std=c++20", *flags, "-"]
    far = [*cc, "-x", "c", "-std=gnu11", *internal, f"-I{root}/bench/dlm", "-Ddlm=", "-"]
    mpi = mpi_includes()
    npb = [*far[:-1], *(mpi or []), f"-I{root}/bench/dlm/npb", "-"]
    dsm = [*far[:-1], f"-I{root}/bench/dlm/npb", f"-I{root}/bench/dsm", "-"]
    has_pvm = pathlib.Path("/usr/include/pvm3.h").exists()
    firsts = included_first(root)
    for header in checklib.sources(root, "src", "cli", "bench"):
        name = header.relative_to(root)
        if name.parts[:2] == ("bench", "dlm"):
            if header.suffix == ".h":
                yield name, "C11", far  # the programs'
        elif name.parts[:2] == ("bench", "npb_mpi"):
            if header.suffix == ".h" and mpi is not None:
                yield name, "C11", npb
        elif name.parts[:2] == ("bench", "dsm"):
            if header.suffix == ".h" and (has_pvm or "pvm" not in header.stem):
                yield name, "C11", dsm
        elif header.suffix in (".h", ".hpp") and not is_seen_alone(root, header, firsts):
            yield name, "C++23", [*cxx, "-x", "c++", "-std=c++23", *internal, "-"]


def compile_alone(job):
    name, language, command = job
    # Twice: a header must also survive being included again.  The declaration is there because ISO
    # C forbids an empty unit.
    unit = f'#include "{name}"\n#include "{name}"\nextern int not_empty;\n'
    done = subprocess.run(command, input=unit, capture_output=True, text=True)
    if done.returncode == 0:
        return []
    return [f"{name} does not compile alone as {language}:\n{done.stderr.rstrip()}"]


def check(root, cc, cxx, includes):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = pool.map(compile_alone, jobs(root, cc, cxx, includes))
    return [finding for findings in found for finding in findings]


def self_test(cc, cxx):
    good = "#pragma once\n#include <stddef.h>\nstatic inline size_t one(void) { return 1; }\n"
    return checklib.self_test("the header check", lambda root: check(root, cc, cxx, []), [
        ("good", {"include/hanare/a.h": good, "src/base/b.hpp": good}, None),
        ("incomplete", {"include/hanare/a.h": "#pragma once\nsize_t one(void);\n"},
         "hanare/a.h does not compile alone as C11"),
        ("C++ in C", {"include/hanare/a.h": "#pragma once\n#include <stddef.h>\nenum class A { b };\n"},
         "hanare/a.h does not compile alone as C11"),
        ("C in C++", {"include/hanare/a.h": "#pragma once\nstruct a { int new; };\n"},
         "hanare/a.h does not compile alone as C++20"),
        ("no guard", {"include/hanare/a.h": "struct a { int b; };\n"}, "as C11"),
        ("newer C++ in public", {"include/hanare/a.hpp":
         "#pragma once\n#include <expected>\nusing A = std::expected<int, int>;\n"}, "as C++20"),
        ("internal", {"src/base/b.hpp": "#pragma once\nstd::string name();\n"},
         "src/base/b.hpp does not compile alone as C++23"),
        ("internal, not included first", {"src/base/b.hpp": "#pragma once\nstd::string name();\n",
         "src/base/b.cpp": "#include <string>\n#include \"base/b.hpp\"\n"},
         "src/base/b.hpp does not compile alone as C++23"),
        ("internal, no guard", {"src/base/b.hpp": "struct A { int b; };\n",
         "src/base/b.cpp": "#include \"base/b.hpp\"\n"},
         "src/base/b.hpp does not compile alone as C++23"),
        ("internal, its source sees to it", {"src/base/b.hpp": "#pragma once\nstd::string name();\n",
         "src/base/b.cpp": "#include \"base/b.hpp\"\n"}, None),
    ])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cc", default="cc", type=shlex.split)
    parser.add_argument("--cxx", default="c++", type=shlex.split)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test(args.cc, args.cxx)
    count = len(list(jobs(checklib.ROOT, args.cc, args.cxx, [])))
    findings = check(checklib.ROOT, args.cc, args.cxx, args.include)
    return checklib.report("headers", findings, f"{count} compilations of single headers")


if __name__ == "__main__":
    raise SystemExit(main())
