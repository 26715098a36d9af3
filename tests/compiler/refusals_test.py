# SPDX-License-Identifier: Apache-2.0
"""What is refused, with which words, and that nothing stays behind."""

import shutil
import unittest

import drivers

ARRAY = "dlm double a[1L << 32];\nint main(int n, char **v) { (void)v; a[n] = 1; return 0; }\n"


class RefusalsTest(drivers.InOwnFolder):
    def refused(self, *arguments, says, driver="hanare-cc", status=1, **more):
        before = sorted(self.folder.iterdir())
        done = self.drive(driver, *arguments, **more)
        own = [line for line in done.stderr.splitlines() if line.startswith(driver + ": ")]
        self.assertEqual((done.returncode, done.stdout, len(own)), (status, "", 1), done.stderr)
        self.assertIn(says, own[0])
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def each_compiler(self):
        for compiler, options in self.for_compilers("hanare-cc"):
            if options == drivers.KINDS[0]:
                yield compiler

    def test_initialised(self):
        self.write("a.c", "dlm double a[5L << 30] = {1.0};\nint main(void) { return 0; }\n")
        for compiler in self.each_compiler():
            for options in (["-c"], ["-O2"], ["-flto", "-c"]):
                if options[0] == "-flto" and compiler != "gcc":
                    continue  # Its bitcode has no sections yet: below.
                self.refused(*options, "a.c", cc=compiler,
                             says="a dlm array cannot be initialised: it would be as large a file; "
                                  "take the initialiser out and set the elements in the program")

    def test_initialised_with_zeros_is_none(self):
        self.write("a.c", "dlm double a[5L << 30] = {0};\nint main(void) { return 0; }\n")
        for compiler in self.each_compiler():
            self.build("hanare-cc", "-c", "a.c", cc=compiler)
            self.assert_small("a.o")

    def test_local(self):
        self.write("a.c", "int main(void) { dlm int a[9]; return a[0]; }\n")
        for compiler in self.each_compiler():
            self.refused("-c", "a.c", cc=compiler,
                         says="a dlm array in a function must be static: write 'static dlm'")

    def test_sanitizers_that_need_its_addresses(self):
        self.write("a.c", ARRAY)
        for compiler in self.each_compiler():
            for sanitizer in ("address", "thread"):
                self.refused(f"-fsanitize={sanitizer}", "a.c", "-o", "a", cc=compiler,
                             says="the sanitizers of addresses, threads and memory need")

    def test_static(self):
        self.write("a.c", ARRAY)
        for compiler in self.each_compiler():
            for option in ("-static", "-static-pie"):
                self.refused("-fPIE", option, "a.c", cc=compiler,
                             says="a statically linked program cannot have dlm arrays: far memory "
                                  "is in libhanare.so; leave out -static")

    def test_shared(self):
        self.write("a.c", ARRAY)
        for compiler in self.each_compiler():
            self.refused("-fPIC", "-shared", "a.c", "-o", "liba.so", cc=compiler,
                         says="dlm arrays cannot be in a shared library; define them in the "
                              "executable, and in the library declare them 'extern dlm'")

    def test_other_linkers(self):
        self.write("a.c", ARRAY)
        for compiler in self.each_compiler():
            for linker in ("gold", "lld", "mold"):
                self.refused(f"-fuse-ld={linker}", "a.c", cc=compiler,
                             says="cannot place dlm arrays, only GNU ld can; leave out -fuse-ld")

    @drivers.needs("ld.gold")
    def test_other_linkers_without_arrays(self):
        self.write("a.c", "int main(void) { return 0; }\n")
        self.build("hanare-cc", "-fuse-ld=gold", "a.c")
        self.assertIn(".note.gnu.gold-version", self.sections("a.out"))

    def test_other_processors(self):
        self.write("a.c", ARRAY)
        for compiler in self.each_compiler():
            self.refused("-m32", "a.c", cc=compiler,
                         says="with -m32 does not make 64-bit programs for x86-64, and only they "
                              "can have dlm arrays; build this with that compiler itself")
        if shutil.which("clang-19") is not None:
            self.refused("--target=aarch64-linux-gnu", "-c", "a.c", cc="clang-19",
                         says="does not make 64-bit programs for x86-64")

    def test_code_models(self):
        self.write("a.c", ARRAY)
        says = "cannot reach dlm arrays; leave it out: hanare-cc chooses the code model"
        for compiler in self.each_compiler():
            self.refused("-mcmodel=small", "a.c", cc=compiler, says=says)
        if shutil.which("clang-19") is not None:
            self.refused("-mcmodel=medium", "a.c", cc="clang-19", says=says)
        self.build("hanare-cc", "-mcmodel=large", "a.c")
        self.build("hanare-cc", "-fno-data-sections", "a.c")

    def test_compilers(self):
        self.write("a.c", ARRAY)
        self.write("of their own", "#!/bin/sh\necho mine\n")
        (self.folder / "of their own").chmod(0o755)
        self.refused("a.c", cc="no-such-compiler",
                     says="there is no compiler 'no-such-compiler'; install it, or name another "
                          "one in HANARE_CC")
        self.refused("a.c", cc="/bin/false", says="does not say what it is")
        self.refused("a.c", cc=f"{self.folder}/of their own",
                     says="is neither gcc nor clang; name one of them in HANARE_CC")
        self.refused("a.c", cc=str(self.drivers / "hanare-cc"),
                     says="which is this program itself; name the compiler behind it, such as gcc")

    def test_words_of_fortran(self):
        self.write("a.c", ARRAY)
        self.refused("--dlm", "a", "a.c", says="--dlm is for Fortran; here the word dlm before a "
                                               "declaration says the same")


if __name__ == "__main__":
    unittest.main()
