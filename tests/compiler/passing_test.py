# SPDX-License-Identifier: Apache-2.0
"""What is not about `dlm` arrays is as if the compiler had been called itself."""

import os
import pathlib
import signal
import subprocess
import time
import unittest

import drivers

PLAIN = "#include <stdio.h>\nint main(void) { puts(\"plain\"); return 3; }\n"
# What the driver adds to compilations, and the compiler alone is given here, too.
MODEL = ["-mcmodel=medium", "-fdata-sections"]


class PassingTest(drivers.InOwnFolder):
    def setUp(self):
        super().setUp()
        self.write("plain.c", PLAIN)

    def test_programs_without_arrays_are_the_compilers(self):
        for compiler, options in self.for_compilers("hanare-cc"):
            model = MODEL if compiler == "gcc" else ["-mcmodel=large", "-fdata-sections", "-fPIE"]
            for more in ([], ["-O2"], ["-static"], ["-Wl,-z,now", "-lm"]):
                kind = [] if more == ["-static"] else options
                self.build("hanare-cc", *kind, *more, "plain.c", "-o", "ours", cc=compiler)
                alone = self.run_any(compiler, *kind, *model, *more, "plain.c", "-o", "theirs")
                self.assertEqual(alone.returncode, 0, alone.stderr)
                self.assertEqual((self.folder / "ours").read_bytes(),
                                 (self.folder / "theirs").read_bytes(), (compiler, options, more))

    def test_answers(self):
        for arguments in (["--version"], ["-dumpversion"], ["-dumpmachine"], ["-print-prog-name=as"],
                          ["-print-file-name=libc.so"], ["-print-search-dirs"], ["-v"], [],
                          ["--help=common"], ["-Q", "--help=warnings"]):
            with self.subTest(arguments=arguments):
                ours = self.drive("dlmc", *arguments)
                alone = self.run_any("gcc", *arguments)
                self.assertEqual((ours.returncode, ours.stdout), (alone.returncode, alone.stdout))
                self.assertEqual(ours.stderr.replace("COLLECT_GCC=gcc\n", ""),
                                 alone.stderr.replace("COLLECT_GCC=gcc\n", ""))

    def test_stages(self):
        self.write("a b.c", "dlm int a[5];\nint f(void) { return a[0]; }\n")
        done = self.drive("hanare-cc", "-E", "a b.c")
        self.assertIn('__attribute__((section(".lbss"))) int a[5];', done.stdout)
        self.build("hanare-cc", "-S", "a b.c")
        self.assertIn(".lbss", (self.folder / "a b.s").read_text())
        self.build("hanare-cc", "-c", "a b.c", "-MMD", "-MF", "d", "-o", "o o.o")
        self.assertIn("a\\ b.c", (self.folder / "d").read_text())
        done = self.drive("hanare-cc", "-MM", "a b.c")
        self.assertTrue(done.stdout.startswith("a\\ b.o:"), done.stdout)
        done = self.drive("hanare-cc", "-###", "plain.c")
        self.assertIn("collect2", done.stderr)
        self.build("hanare-cc", "-fsyntax-only", "a b.c")

    def test_inputs(self):
        """Standard input, files of arguments, assembly, headers, several sources."""
        done = self.drive("hanare-cc", "-xc", "-", "-o", "from input",
                          input="dlm char a[9]; int main(void) { return a[8] + 3; }")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.run_any(self.folder / "from input", preexec_fn=None).returncode, 3)
        self.write("arguments", "-O1 'plain.c'\n -o \"an output\"")
        self.build("hanare-cc", "@arguments")
        self.assertEqual(self.run_any(self.folder / "an output").stdout, "plain\n")
        self.write("one.S", "#define NAME one\n.globl NAME\nNAME: mov $1, %eax\n ret\n"
                            ".section .note.GNU-stack,\"\",@progbits\n")
        self.write("two.c", "int one(void); dlm int a[9];\nint main(void) { return one() + a[1]; }\n")
        self.build("hanare-cc", "one.S", "two.c", "-o", "both")
        self.assertEqual(self.run_any(self.folder / "both", preexec_fn=None).returncode, 1)
        self.write("head.h", "extern dlm int a[9];\n")
        self.build("hanare-cc", "head.h")
        self.assertTrue((self.folder / "head.h.gch").exists())
        self.build("hanare-cc", "-r", "plain.c", "-o", "part.o")

    def test_words_that_look_like_its_own(self):
        done = self.drive("hanare-cc", "plain.c", "-Xlinker", "--verbose", "-o", "--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("GNU ld", done.stdout)
        self.assertTrue((self.folder / "--help").exists())

    def test_dry_run_and_verbose(self):
        done = self.drive("dlmc", "--dry-run", "a b.c", "-DX=it's", "-o", "none")
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertTrue(done.stderr.startswith("gcc -mcmodel=medium -fdata-sections -include "))
        self.assertTrue(done.stderr.endswith(" 'a b.c' '-DX=it'\\''s' -o none\n"), done.stderr)
        self.assertFalse((self.folder / "none").exists())
        self.write("far.c", "dlm int a[9]; int main(void) { return a[1]; }\n")
        done = self.drive("dlmc", "--verbose", "far.c")
        lines = [line.split() for line in done.stderr.splitlines()]
        self.assertEqual([line[0].rsplit("/", 1)[-1] for line in lines], ["gcc", "ld", "ld"])
        self.assertIn("hanare_dlm_start", lines[2])
        self.assertTrue((self.folder / "a.out").exists())

    def test_help(self):
        for driver in ("hanare-cc", "hanare-c++", "hanare-fortran", "dlmc"):
            done = self.drive(driver, "--help")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(done.stdout.startswith(f"usage: {driver} "))
            self.assertEqual("--dlm-list" in done.stdout, driver == "hanare-fortran")

    def test_status_and_messages(self):
        self.write("wrong.c", "int main(void) { return 0\n")
        for compiler, _ in self.for_compilers("hanare-cc"):
            ours = self.drive("hanare-cc", "-c", "wrong.c", cc=compiler)
            alone = self.run_any(compiler, "-c", "wrong.c")
            self.assertEqual((ours.returncode, ours.stderr), (alone.returncode, alone.stderr))
        self.write("open.c", "int missing(void);\nint main(void) { return missing(); }\n")
        done = self.drive("hanare-cc", "open.c", "-o", "open")
        self.assertEqual(done.returncode, 1)
        self.assertIn("undefined reference to `missing'", done.stderr)
        self.assertFalse((self.folder / "open").exists())

    def slow_compiler(self, last_words):
        """Answers as gcc, and then does this."""
        self.write("slow", f"""\
            #!/bin/sh
            case "$*" in *-dM*|*-print-*) exec gcc "$@" ;; esac
            {last_words}
        """)
        (self.folder / "slow").chmod(0o755)
        return f"{self.folder}/slow"

    def test_a_compiler_that_a_signal_ends(self):
        done = self.drive("hanare-cc", "-c", "plain.c", cc=self.slow_compiler("kill -SEGV $$"))
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        done = self.drive("hanare-cc", "-c", "plain.c", cc=self.slow_compiler("exit 42"))
        self.assertEqual(done.returncode, 42)

    def test_signals_go_to_the_compiler(self):
        os.mkfifo(self.folder / "started")
        compiler = self.slow_compiler(f"echo $$ >'{self.folder}/started'; exec sleep 100")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number=number), subprocess.Popen(
                    [self.drivers / "hanare-cc", "-c", "plain.c"], cwd=self.folder,
                    stderr=subprocess.PIPE, env={**self.environment, "HANARE_CC": compiler}) as run:
                child = int((self.folder / "started").read_text())
                run.send_signal(number)
                self.assertEqual(run.wait(drivers.TIMEOUT_S), -number)
                self.assertFalse(pathlib.Path(f"/proc/{child}").exists())

    def test_a_link_that_is_interrupted_leaves_nothing(self):
        """The linker is stopped by a script that it has to read from a pipe."""
        self.write("far.c", "dlm int a[9]; int main(void) { return a[1]; }\n")
        self.build("hanare-cc", "-c", "far.c")
        os.mkfifo(self.folder / "more.ld")
        with subprocess.Popen([self.drivers / "hanare-cc", "far.o", "more.ld", "-o", "far"],
                              cwd=self.folder, stderr=subprocess.PIPE, env=self.environment,
                              start_new_session=True) as run:
            deadline = time.monotonic() + drivers.TIMEOUT_S
            writer = None
            while writer is None and time.monotonic() < deadline:
                try:  # Opens only when somebody reads.
                    writer = os.open(self.folder / "more.ld", os.O_WRONLY | os.O_NONBLOCK)
                except OSError:
                    time.sleep(0.01)
            self.assertIsNotNone(writer)
            os.killpg(run.pid, signal.SIGTERM)
            self.assertNotEqual(run.wait(drivers.TIMEOUT_S), 0)
            os.close(writer)
        # The linker is the last to go.
        while (self.folder / "far").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(sorted(file.name for file in self.folder.iterdir()),
                         ["far.c", "far.o", "more.ld", "plain.c"])

    def test_preprocessed_text_has_nothing_of_ours(self):
        self.write("a.txt", "one dlm_word two\n")
        for compiler, _ in self.for_compilers("hanare-cc"):
            done = self.drive("hanare-cc", "-E", "-P", "-x", "c", "a.txt", cc=compiler)
            self.assertEqual((done.returncode, done.stdout.split(), done.stderr),
                             (0, ["one", "dlm_word", "two"], ""))

    def test_files_behind_two_hyphens(self):
        self.write("a.c", "int main(void) { return 0; }\n")
        for compiler, _ in self.for_compilers("hanare-cc"):
            if "clang" in compiler:
                self.build("hanare-cc", "-c", "-o", "a.o", "--", "a.c", cc=compiler)

    def test_a_script_of_ones_own(self):
        self.write("k.ld",
                   "SECTIONS { .text 0x1000 : { *(.text*) } .data : { *(.data*) *(.got*) }"
                   " /DISCARD/ : { *(.comment) *(.note*) *(.eh_frame*) } }\n")
        self.write("k.c", "void _start(void) { for (;;) {} }\n")
        self.build("hanare-cc", "-nostdlib", "-static", "-ffreestanding", "-Wl,--build-id=none,--no-warn-rwx-segments",
                   "-T", "k.ld", "k.c", "-o", "k")

    def test_without_the_c_library_nothing_is_linked(self):
        self.write("a.c", "int puts(const char *); void f(void) { puts(0); }\n")
        self.build("hanare-cc", "-shared", "-fPIC", "-nostdlib", "a.c", "-o", "a.so")
        self.assertNotIn("NEEDED", self.run_any("readelf", "-dW", "a.so").stdout)


if __name__ == "__main__":
    unittest.main()
