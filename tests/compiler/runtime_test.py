# SPDX-License-Identifier: Apache-2.0
"""What is linked into programs: below `hanare run`, and what dlm_free is given."""

import os
import pathlib
import unittest

import drivers

HANARE = pathlib.Path(os.environ["HANARE_TEST_BUILD"]) / "cli" / "hanare"

LARGE = """
    #include <stdio.h>
    #include <string.h>
    dlm char a[160 << 20];
    int main(void) {
        char line[200];
        long sum = 0;
        for (long i = 0; i < sizeof a; i += 4096) a[i] = (char)(i >> 12);
        for (long i = 0; i < sizeof a; i += 4096) sum += a[i];
        FILE *status = fopen("/proc/self/status", "r");
        while (fgets(line, sizeof line, status)) {
            if (strncmp(line, "RssAnon:", 8) == 0) printf("%ld %ld\\n", sum, strtol(line + 8, NULL, 10));
        }
        return 0;
    }
    """
FREED = """
    #include <stdio.h>
    dlm double a[100000];
    int main(int count, char **arguments) {
        char *first = dlm_alloc(1 << 20), *second = dlm_alloc(3 << 20);
        first[9] = second[9] = 1;
        a[5] = 1;
        if (dlm_flush() != 0) return 1;
        dlm_free(NULL);
        dlm_free(first);
        if (count > 1) dlm_free(arguments[1][0] == 'a' ? (void *)a : (void *)(second + 4096));
        dlm_free(second);
        puts("freed");
        return 0;
    }
    """


class RuntimeTest(drivers.InOwnFolder):
    def settings(self):
        return {"HANARE_LOCAL": "32M", "HANARE_STORE": f"file:{self.folder}"}

    def test_below_run_the_budget_is_that_of_the_run(self):
        self.write("a.c", "#include <stdlib.h>\n" + LARGE)
        for _, options in drivers.KINDS[0], drivers.KINDS[1]:
            self.build("hanare-cc", options, "a.c", "-o", "a")
            for command in ([self.folder / "a"], [HANARE, "run", self.folder / "a"]):
                done = self.run_any(*command, environment=self.settings(), preexec_fn=None)
                self.assertEqual(done.returncode, 0, done.stderr)
                total, resident_kib = map(int, done.stdout.split())
                self.assertEqual(total, -20480)
                self.assertLess(resident_kib, 48 << 10)
            self.assertIn("peak far memory 1", done.stderr)  # of `hanare run`

    def test_only_what_was_allocated_is_freed(self):
        self.write("a.c", FREED)
        self.build("hanare-cc", "-no-pie", "a.c", "-o", "a")
        for run in [], [HANARE, "run"]:
            for argument in [], ["array"], ["inside"]:
                done = self.run_any(*run, self.folder / "a", *argument,
                                    environment=self.settings(), preexec_fn=None)
                if not argument:
                    self.assertEqual((done.returncode, done.stdout), (0, "freed\n"), done.stderr)
                    continue
                self.assertEqual((done.returncode, done.stdout), (70, ""), done.stderr)
                self.assertIn("dlm_alloc has not returned that", done.stderr)


if __name__ == "__main__":
    unittest.main()
