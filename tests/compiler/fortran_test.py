# SPDX-License-Identifier: Apache-2.0
"""Fortran: arrays and COMMON blocks by name, without a change of the source."""

import unittest

import drivers

# 3.2 GB in a, 1.6 MB in /blk/, 2.4 MB in the blank COMMON, 8 MB in a module, 4 MB kept.
SOURCE = """
    module store
      real(8), save :: held(1000000)
    end module
    subroutine work(x, y)
      use store
      real(8) :: x, y
      real(8), save :: kept(500000)
      real(8) :: block(200000), rest(300000)
      common /blk/ block
      common rest
      kept(7) = x; held(7) = x; block(7) = block(7) + x; rest(7) = x
      y = kept(7) + held(7) + block(7) + rest(7)
    end subroutine
    program main
      integer(8), parameter :: n = 400000000_8
      real(8) :: a(n), small(10), block(200000), y
      integer(8) :: i, total
      common /blk/ block
      do i = 1, n, 65536
         a(i) = i
      end do
      total = 0
      do i = 1, n, 65536
         total = total + int(a(i), 8)
      end do
      small = 1
      block = 2
      call work(a(1), y)
      print '(I0,A,I0,A,I0)', total, ' ', int(sum(small)), ' ', int(y)
    end program
"""
OUTPUT = f"{sum(range(1, 400000001, 65536))} 10 6\n"
A, BLOCK, BLANK, HELD, KEPT = 3200000000, 1600000, 2400000, 8000000, 4000000


@drivers.needs("gfortran")
class FortranTest(drivers.InOwnFolder):
    def far_bytes(self, *options):
        """Of a program made with them, which computes what it should."""
        self.build("hanare-fortran", *options, "main.f90", "-o", "main")
        self.assert_small("main")
        self.assert_runs("main", OUTPUT)
        return self.sections("main")[".dlm"]

    def about(self, number, wanted):
        self.assertTrue(wanted <= number < wanted + 2 * 4096, (number, wanted))

    def setUp(self):
        super().setUp()
        self.write("main.f90", SOURCE)

    def test_without_names_all_large_ones(self):
        for options in drivers.KINDS:
            with self.subTest(options=options):
                self.about(self.far_bytes(*options), A + BLOCK + BLANK + HELD + KEPT)

    def test_by_name(self):
        for names, wanted in (("a", A), ("A,held", A + HELD), ("kept", KEPT), ("blk", BLOCK),
                              ("/BLK/,//", BLOCK + BLANK), ("blk_,kept", BLOCK + KEPT)):
            with self.subTest(names=names):
                self.about(self.far_bytes("--dlm", names), wanted)
        self.about(self.far_bytes("--dlm=a", "-s"), A)

    def test_by_list(self):
        self.write("list", "# two\na  /blk/\n")
        self.about(self.far_bytes("--dlm-list", "list"), A + BLOCK)

    def test_objects_and_links_apart(self):
        self.build("hanare-fortran", "-c", "main.f90")
        self.assert_small("main.o")
        self.build("hanare-fortran", "--dlm", "a,blk", "main.o", "-o", "main")
        self.about(self.sections("main")[".dlm"], A + BLOCK)
        self.assert_runs("main", OUTPUT)

    def test_refusals(self):
        self.write("started.f90", """
            program main
              real(8), save :: started(100000) = 1
              print *, started(5)
            end program
        """)
        for options, source, says in (
                (["--dlm", "nosuch"], "main.f90", "there is no array and no COMMON block 'nosuch'"),
                (["--dlm", "a*"], "main.f90", "'a*' is no name of an array or COMMON block"),
                (["--dlm", "started"], "started.f90",
                 "'started' has initial values or less than 64 KiB"),
                (["--dlm-list", "nosuch"], "main.f90", "the list 'nosuch' cannot be read"),
                (["--dlm", ""], "main.f90", "--dlm needs names: --dlm a,b"),
                (["--dlm", "a", "-static"], "main.f90", "a statically linked program cannot"),
                (["--dlm", "a", "-shared", "-fPIC"], "main.f90",
                 "dlm arrays cannot be in a shared library")):
            with self.subTest(options=options):
                done = self.drive("hanare-fortran", *options, source, "-o", "main")
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"hanare-fortran: {says}", done.stderr)
                self.assertFalse((self.folder / "main").exists())


if __name__ == "__main__":
    unittest.main()
