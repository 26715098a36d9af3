#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Checks that the object files of src/pager/fault, which run inside signal handlers, do not even
# refer to what may not run there: memory allocation, exceptions, mutexes, formatted output,
# cancellation points.  Neither they nor src/sys/uffd.cpp, which they use, may refer to libc's calls
# on memory: `hanare run` catches them (sys/raw_call.hpp).
#
# check_fault_path.py OBJECT... | --self-test
# Of the objects only those whose paths name these are looked at.
import pathlib
import re
import subprocess

import checklib

# (symbol pattern, what it is)
FORBIDDEN = [
    (r"(malloc|calloc|realloc|reallocarray|free|posix_memalign|aligned_alloc|strn?dup)",
     "allocates"),
    (r"_Zn[wa].*", "operator new"),
    (r"_Zd[la].*", "operator delete"),
    (r"__cxa_(throw|rethrow|allocate_exception|throw_bad_array_new_length|bad_cast)", "throws"),
    (r"_ZSt\d+__throw_.*", "throws"),
    (r"(pthread_(mutex|rwlock|cond|spin|once|barrier)_?.*|_ZNSt5mutex.*|__cxa_guard_acquire)",
     "takes a lock"),
    (r"(__)?(v?[fsd]?n?printf|vs?n?printf|vasprintf|asprintf|puts|fputs|fwrite|perror|syslog)(_chk)?",
     "formats or buffers output"),
    (r"_Z(NSo|StlsI|NSt1[0-9]basic_(o|i)?stream|NKSt7__cxx11|NSt7__cxx11).*",
     "streams or allocating strings"),
    (r"_ZSt4c(out|err|log|in)", "a stream"),
    (r"(p?read|p?write|p?readv|p?writev)(64)?(v2)?|open(at)?(64)?|close|fsync|fdatasync|p?poll|p?select"
     r"|epoll_p?wait|(clock_)?nanosleep|u?sleep|msync|recv(from|msg)?|send(to|msg)?|connect|accept4?"
     r"|sem_(timed)?wait|sigwait(info)?|sigtimedwait|wait(pid|id)?|pthread_(join|testcancel)",
     "is a cancellation point"),
]
CAUGHT = [
    (r"(mmap|munmap|mprotect|madvise|mremap|mincore|mlock|munlock|brk|sbrk)(64)?",
     "is caught under `hanare run`"),
]


def undefined_symbols(path):
    done = subprocess.run(["nm", "--undefined-only", "--format=posix", path], capture_output=True,
                          text=True, check=True)
    return [line.split()[0].split("@")[0] for line in done.stdout.splitlines() if line.strip()]


def check(objects, rules):
    findings = []
    for path in objects:
        for symbol in undefined_symbols(path):
            for pattern, what in rules:
                if re.fullmatch(pattern, symbol):
                    findings.append(f"{pathlib.Path(path).name}: refers to {symbol} ({what})")
                    break
    return findings


def self_test():
    def build_and_check(root):
        source = root / "a.cpp"
        subprocess.run(["c++", "-std=c++20", "-O1", "-c", "-o", root / "a.o", source], check=True)
        return check([root / "a.o"], FORBIDDEN + CAUGHT)

    def case(name, text, expected):
        return (name, {"a.cpp": text}, expected)

    return checklib.self_test("the fault path check", build_and_check, [
        case("good", "#include <atomic>\n#include <unistd.h>\n#include <string.h>\nvoid f(char* p, "
             "std::atomic<int>& a) { memcpy(p, p + 64, 64); a.fetch_add(1); syscall(1, 2, p, 9); }", None),
        case("cancellation", "#include <unistd.h>\nvoid f(char* p) { write(2, p, 9); }", "write"),
        case("memory", "#include <sys/mman.h>\nint f(char* p, unsigned char* q) "
             "{ return mincore(p, 4096, q); }", "mincore"),
        case("malloc", "#include <stdlib.h>\nvoid* f(int n) { return malloc(n); }", "malloc"),
        case("new", "int* f(int n) { return new int[n]; }", "operator new"),
        case("delete", "void f(int* p) { delete p; }", "operator delete"),
        case("throw", "void f() { throw 1; }", "__cxa_throw"),
        case("vector", "#include <vector>\nvoid f(std::vector<int>& v) { v.reserve(v.size() * 9); }",
             "__throw_length_error"),
        case("mutex", "#include <mutex>\nvoid f(std::mutex& m) { m.lock(); }", "pthread_mutex_lock"),
        case("static", "int g();\nint f() { static int a = g(); return a; }", "__cxa_guard_acquire"),
        case("printf", '#include <stdio.h>\nvoid f(int a) { printf("%d", a); }', "printf"),
        case("snprintf", '#include <stdio.h>\nvoid f(char* p, int a) { snprintf(p, 9, "%d", a); }',
             "snprintf"),
        case("stream", "#include <iostream>\nvoid f(int a) { std::cerr << a; }", "stream"),
        case("string", "#include <string>\nvoid f(std::string& s) { s += 'a'; }", "_Znwm"),
    ])


def run(arguments):
    handlers = [path for path in arguments if "/pager/fault/" in path and "_test." not in path]
    used = [path for path in arguments if "/sys/uffd." in path]
    findings = check(handlers, FORBIDDEN + CAUGHT) + check(used, CAUGHT)
    return checklib.report("fault path", findings,
                           f"{len(handlers) + len(used)} object files in order")


if __name__ == "__main__":
    checklib.main("fault path", run, self_test)
