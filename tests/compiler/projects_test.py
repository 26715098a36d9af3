# SPDX-License-Identifier: Apache-2.0
"""In the place of a compiler: configure scripts, CMake, installed, moved, as an ordinary user."""

import os
import pathlib
import shutil
import subprocess
import unittest

import drivers

BUILD = os.environ["HANARE_TEST_BUILD"]
CMAKE = os.environ["HANARE_TEST_CMAKE"]
NOBODY = 65534

MAIN = """
    #include <stdio.h>
    extern dlm double shared_array[1 << 22];
    double sum_of(const double *values, long count);
    int main(void) {
        for (long i = 0; i < 1 << 22; ++i) shared_array[i] = 1;
        printf("%.0f\\n", sum_of(shared_array, 1 << 22));
        return 0;
    }
"""
ARRAY = "dlm double shared_array[1 << 22];\n"
SUM = """
    static double table[100000];
    double sum_of(const double *values, long count) {
        for (long i = 0; i < count; ++i) table[i % 100000] += values[i];
        double sum = 0;
        for (long i = 0; i < 100000; ++i) sum += table[i];
        return sum;
    }
"""
OUTPUT = f"{1 << 22}\n"


class ProjectsTest(drivers.InOwnFolder):
    def setUp(self):
        super().setUp()
        self.write("main.c", MAIN)
        self.write("array.c", ARRAY)
        self.write("sum.c", SUM)

    @drivers.needs("autoconf")
    @drivers.needs("make")
    def test_configure(self):
        self.write("configure.ac", """\
            AC_INIT([far], [1])
            AC_PROG_CC
            AC_PROG_CPP
            AC_CHECK_HEADERS([unistd.h no_such_header.h])
            AC_CHECK_FUNCS([mmap no_such_function])
            AC_CHECK_SIZEOF([void *])
            AC_SEARCH_LIBS([cos], [m])
            AC_CONFIG_HEADERS([config.h])
            AC_CONFIG_FILES([Makefile])
            AC_OUTPUT
        """)
        self.write("config.h.in", "#undef HAVE_UNISTD_H\n#undef HAVE_NO_SUCH_HEADER_H\n"
                                  "#undef HAVE_MMAP\n#undef HAVE_NO_SUCH_FUNCTION\n"
                                  "#undef SIZEOF_VOID_P\n")
        self.write("Makefile.in", "far: main.o array.o sum.o\n"
                                  "\t@CC@ @CFLAGS@ -o $@ $^ @LIBS@\n"
                                  "%.o: %.c\n\t@CC@ @CFLAGS@ -c $<\n")
        self.assertEqual(self.run_any("autoconf").returncode, 0)
        # In names with blanks configure scripts do not work, whatever the compiler.
        link = pathlib.Path(f"/var/tmp/hanare-configure-{os.getpid()}")
        link.symlink_to(self.folder)
        self.addCleanup(link.unlink)
        done = self.run_any("sh", "-c", f"cd {link} && ./configure CC={self.drivers}/dlmc && make")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for answer in ("whether the C compiler works... yes", "cross compiling... no",
                       "accepts -g... yes", "default output file name... a.out",
                       "for unistd.h... yes", "for no_such_header.h... no", "for mmap... yes",
                       "for no_such_function... no", "size of void *... 8"):
            self.assertIn(answer, done.stdout)
        self.assert_runs("far", OUTPUT)

    def test_cmake(self):
        self.write("CMakeLists.txt", """\
            cmake_minimum_required(VERSION 3.25)
            project(far LANGUAGES C CXX)
            include(CheckFunctionExists)
            check_function_exists(no_such_function IS_THERE)
            if(IS_THERE OR NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
              message(FATAL_ERROR "wrong answers")
            endif()
            add_library(sum SHARED sum.c)
            add_executable(far main.c array.c)
            target_link_libraries(far sum)
            add_executable(more more.cpp)
        """)
        self.write("more.cpp", """
            #include <iostream>
            dlm long values[1 << 20];
            int main() { values[7] = 5; std::cout << values[7] + values[8] << std::endl; }
        """)
        done = self.run_any(CMAKE, "-S", ".", "-B", "b", "-DCMAKE_BUILD_TYPE=Release",
                            f"-DCMAKE_C_COMPILER={self.drivers}/hanare-cc",
                            f"-DCMAKE_CXX_COMPILER={self.drivers}/hanare-c++")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = self.run_any(CMAKE, "--build", "b")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assert_runs("b/far", OUTPUT)
        self.assert_runs("b/more", "5\n")
        self.assertNotIn(".dlm", self.sections("b/libsum.so"))

    def install(self):
        """Into a folder with a blank, and moved from there; its drivers are used from then on."""
        done = self.run_any(CMAKE, "--install", BUILD, "--component", "compiler", "--prefix",
                            self.folder / "first")
        self.assertEqual(done.returncode, 0, done.stderr)
        (self.folder / "first").rename(self.folder / "the second")
        place = self.folder / "the second"
        self.drivers = place / "bin"
        # The headers and the library are of another component, which a partial build may not have.
        shutil.copytree(pathlib.Path(__file__).parents[2] / "include", place / "include",
                        dirs_exist_ok=True)
        for library in pathlib.Path(BUILD).glob("libhanare.so*"):
            archive = next(place.glob("lib*/**/libdlm.a"))
            shutil.copy(library, archive.parent, follow_symlinks=False)

    def test_installed_and_moved(self):
        self.install()
        self.assertTrue((self.drivers / "dlmc").is_symlink())
        for compiler, options in self.for_compilers("hanare-cc"):
            self.build("hanare-cc", *options, "main.c", "array.c", "sum.c", "-o", "far",
                       cc=compiler)
            self.assert_runs("far", OUTPUT)
        dynamic = self.run_any("readelf", "-d", "far").stdout
        self.assertIn(f"[{self.folder}/the second/", dynamic)

    @unittest.skipIf(os.geteuid() != 0, "needs root, to become an ordinary user")
    def test_as_an_ordinary_user(self):
        self.install()
        os.chmod(self.folder, 0o777)
        as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        self.build("dlmc", "main.c", "array.c", "sum.c", "-o", "far", **as_nobody)
        self.assertEqual((self.folder / "far").stat().st_uid, NOBODY)
        self.assert_runs("far", OUTPUT, **as_nobody)

    def test_its_variables_are_known_at_run_time(self):
        self.build("hanare-cc", "main.c", "array.c", "sum.c", "-o", "far", cc="gcc")
        done = subprocess.run([self.folder / "far"], capture_output=True, text=True, check=True,
                              timeout=drivers.TIMEOUT_S,
                              env={**self.environment, "HANARE_CC": "gcc", "HANARE_CXX": "g++",
                                   "HANARE_FC": "gfortran", "HANARE_LOCAL": "64M"})
        self.assertEqual((done.stdout, done.stderr), (OUTPUT, ""))


if __name__ == "__main__":
    unittest.main()
