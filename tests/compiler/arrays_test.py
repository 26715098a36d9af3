# SPDX-License-Identifier: Apache-2.0
"""Where `dlm` arrays may stand, and what becomes of them."""

import os
import shutil
import unittest

import drivers
from drivers import GIB

# 40 GiB and 2 GiB in main.c, 3 GiB in other.c and, in a function, 1 GiB.
MAIN = """
    #include <stdio.h>
    dlm double a[%(elements)s];
    static dlm int b[1 << 29];
    extern dlm long other[];
    static char near[1 << 20];
    long fill(long step);
    int main(void) {
        const long n = %(elements)s, step = n / 1000;
        double sum = 0;
        for (long i = 0; i < n; i += step) a[i] = (double)i;
        for (long i = 0; i < n; i += step) sum += a[i];
        const long filled = fill(1 << 20);
        b[filled * 1000] = 7;
        near[filled] = 1;
        printf("%%.0f %%ld %%ld %%d\\n", sum, filled, other[1 << 20], b[fill(1 << 20) * 1000] + near[filled]);
        return 0;
    }
"""
OTHER = """
    dlm long other[3L << 27];
    long fill(long step) {
        static dlm long kept[1 << 27];
        long sum = 0;
        for (long i = 0; i < 3L << 27; i += step) other[i] = i;
        for (long i = 0; i < 1 << 27; i += step) kept[i] = 1;
        for (long i = 0; i < 1 << 27; i += step) sum += kept[i];
        return sum;
    }
"""


def output_of_main(elements):
    step = elements // 1000
    return f"{sum(range(0, elements, step))} {(1 << 27) >> 20} {1 << 20} 8\n"


class ArraysTest(drivers.InOwnFolder):
    def write_both(self, elements, ending):
        linkage = 'extern "C" ' if ending == "cpp" else ""
        self.write(f"main.{ending}", MAIN.replace("long fill(", linkage + "long fill(", 1) %
                   {"elements": f"{elements}L"})
        self.write(f"other.{ending}", OTHER.replace("long fill(", linkage + "long fill(", 1))

    def test_files_hold_no_bytes_of_arrays(self):
        for driver, ending in (("hanare-cc", "c"), ("hanare-c++", "cpp")):
            self.write_both(5 * GIB, ending)
            for compiler, options in self.for_compilers(driver):
                sources = [f"main.{ending}", f"other.{ending}"]
                self.build(driver, "-O2", *options[:1], "-c", *sources, cc=compiler)
                self.build(driver, *options, "main.o", "other.o", "-o", "program", cc=compiler)
                self.assert_small("main.o", "other.o", "program")
                sections = self.sections("program")
                self.assertGreaterEqual(sections[".dlm"], 46 * GIB)
                self.assertLess(sections[".dlm"], 46 * GIB + 4096)
                self.assertGreaterEqual(sections[".lbss"], 1 << 20, "other large arrays stay")

    def test_programs_compute(self):
        """6.5 GiB in all, touched here and there, with 64 MiB of memory."""
        elements = 1 << 26
        for driver, ending in (("hanare-cc", "c"), ("hanare-c++", "cpp")):
            self.write_both(elements, ending)
            for compiler, options in self.for_compilers(driver):
                self.build(driver, "-O2", *options, f"main.{ending}", f"other.{ending}", "-o",
                           "program", cc=compiler)
                self.assert_runs("program", output_of_main(elements))

    def test_larger_than_memory(self):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        elements = (memory + GIB) // 8
        free = shutil.disk_usage(self.folder).free
        if free < memory + 9 * GIB:
            self.skipTest(f"needs {memory // GIB + 9} GiB of disk, {free // GIB} are free")
        self.write_both(elements, "c")
        self.build("hanare-cc", "-O2", "main.c", "other.c", "-o", "program")
        self.assert_runs("program", output_of_main(elements))

    def test_constructors_and_destructors_use_them(self):
        self.write("before.cpp", """
            #include <cstdio>
            #include <thread>
            struct Cell { int value = 3; Cell() { ++value; } ~Cell(); };
            dlm Cell cells[1 << 20];
            thread_local int own = 5;
            Cell::~Cell() { if (this == cells) { std::printf("%d\\n", value); std::fflush(stdout); } }
            int main() { std::thread([] { cells[0].value += own; }).join(); }
        """)
        for compiler, options in self.for_compilers("hanare-c++"):
            self.build("hanare-c++", *options, "before.cpp", "-o", "before", cc=compiler)
            self.assert_runs("before", "9\n", local="16M")

    def test_programs_of_the_paper(self):
        """Figs. 3 (with a print in its end) and 4(a)."""
        self.write("matv.c", """
            #include <stdio.h>
            #define N 4096
            dlm double a[N][N], x[N], y[N];
            int main(int argc, char *argv[])
            { int i,j;
              double temp;
              for(i = 0; i < N; i++)
               for(j = 0; j < N; j++) a[i][j] = i;
              for(i = 0; i < N; i++) x[i] = i;
              for(i = 0; i < N; i++){
                 temp = 0;
                 for(j = 0; j < N; j++) temp += a[i][j]*x[j];
                 y[i] = temp;
              }
             printf("%.0f\\n", y[N - 1]);
             return 0;
            }
        """)
        self.write("sample.c", """
            #include <stdio.h>
            #define MAX 1000
            dlm int a[MAX];
            int main(int argc, char *argv[])
            { int i;
              for(i = 0; i < MAX; i++)  a[i] = i;
              for(i = 0; i < MAX; i++) printf("%d ", a[i]);
              return 0;
            }
        """)
        self.build("dlmc", "matv.c", "-ldlm", "-o", "matv")
        self.assert_runs("matv", f"{4095 * sum(range(4096))}\n", local="32M")
        self.build("dlmc", "sample.c", "-ldlm")
        self.assert_runs("a.out", "".join(f"{i} " for i in range(1000)))

    def test_memory_allocated_by_the_program(self):
        self.write("allocate.c", """
            #include <stdio.h>
            int main(void) {
                int *p = dlm_alloc(sizeof(int) * 40000000);
                p[39999999] = 4;
                printf("%d\\n", p[39999999] + p[0]);
                dlm_free(p);
                return 0;
            }
        """)
        self.build("dlmc", "allocate.c", "-ldlm", "-o", "allocate")
        self.assert_runs("allocate", "4\n")

    def test_optimisation_at_link_time(self):
        self.write_both(1 << 26, "c")
        self.build("hanare-cc", "-O2", "-flto=1", "-c", "main.c", "other.c")
        self.build("hanare-cc", "-O2", "-flto=1", "main.o", "other.o", "-o", "program")
        self.assert_small("main.o", "other.o", "program")
        self.assert_runs("program", output_of_main(1 << 26))

    def test_archives_and_gc(self):
        self.write_both(1 << 26, "c")
        self.build("hanare-cc", "-O1", "-g", "-c", "main.c", "other.c")
        self.assertEqual(self.run_any("ar", "rcs", "libother.a", "other.o").returncode, 0)
        self.build("hanare-cc", "main.o", "-L.", "-lother", "-Wl,--gc-sections", "-s", "-o",
                   "program")
        self.assert_runs("program", output_of_main(1 << 26))


if __name__ == "__main__":
    unittest.main()
