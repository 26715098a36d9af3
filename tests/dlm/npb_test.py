# SPDX-License-Identifier: Apache-2.0
"""NPB FT, IS and CG in class S: plain, as dlm programs and plain below `hanare run`, with local
memory far below their arrays and a file as store; and that they find what is wrong.

HANARE_BINARY is the program `hanare`, DLM_PROGRAMS the folder of `plain` and `dlm`, CC a compiler.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

HANARE = os.environ["HANARE_BINARY"]
PROGRAMS = pathlib.Path(os.environ["DLM_PROGRAMS"])
COMPILER = os.environ["CC"]
SOURCES = pathlib.Path(__file__).resolve().parents[2] / "bench" / "dlm" / "npb"
SECONDS = 60
KIB = 1 << 10

# Sources and libraries; block and local memory in KiB.  FT wants room for a block of every plane.
NAMES = {
    "npb_ft": (["ft.c", "ft_lines.c", "npb_random.c", "-lm"], 16, 2048),
    "npb_is": (["is.c", "npb_random.c"], 8, 256),
    "npb_cg": (["cg.c", "cg_matrix.c", "npb_random.c", "-lm"], 16, 1024),
}


def settings(name, place):
    _, block, local = NAMES[name]
    return {"local": f"{local}K", "block": f"{block}K", "store": f"file:{place}"}


def run(command, **variables):
    """Status, output, errors and the fields of the last line."""
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith("HANARE_") and key != "LD_PRELOAD"}
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**kept, **variables}, start_new_session=True)
    try:
        output, errors = process.communicate(timeout=SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    last = (output.splitlines() or [""])[-1]
    fields = dict(re.findall(r"(\w+)=(\S+)", last)) if last.startswith("result: ") else {}
    return process.returncode, output, errors, fields


class Npb(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory(prefix=f"hanare-npb-{os.getpid()}-", dir="/var/tmp")
        self.addCleanup(place.cleanup)
        self.place = pathlib.Path(place.name)

    def assert_verified(self, name, outcome):
        status, output, errors, fields = outcome
        self.assertEqual(status, 0, output + errors)
        self.assertEqual((fields.get("program"), fields.get("class"), fields.get("verified")),
                         (name, "S", "yes"), output)
        return fields

    def plain(self, name):
        return self.assert_verified(name, run([PROGRAMS / "plain" / name]))

    def test_dlm_programs_with_little_local_memory(self):
        for name in NAMES:
            with self.subTest(name):
                plain = self.plain(name)
                variables = {f"HANARE_{key.upper()}": value
                             for key, value in settings(name, self.place).items()}
                fields = self.assert_verified(name, run([PROGRAMS / "dlm" / name], **variables))
                self.assertGreater(int(fields["bytes"]), 2 * NAMES[name][2] * KIB)
                self.assertEqual(fields["digest"], plain["digest"])

    def test_dlm_programs_take_their_settings(self):
        """So what they ran in before was far memory of that size, and not their own."""
        for name in NAMES:
            with self.subTest(name):
                status, output, errors, _ = run([PROGRAMS / "dlm" / name],
                                                HANARE_STORE=f"file:{self.place}/missing")
                self.assertEqual((status, output), (70, ""), errors)
                self.assertIn("missing", errors)

    def test_plain_programs_below_hanare_run(self):
        for name in NAMES:
            with self.subTest(name):
                plain = self.plain(name)
                flags = [word for key, value in settings(name, self.place).items()
                         for word in ("--" + key.replace("_", "-"), value)]
                statistics = self.place / "statistics"
                fields = self.assert_verified(name, run(
                    [HANARE, "run", *flags, "--stats", statistics, "--",
                     PROGRAMS / "plain" / name]))
                self.assertEqual(fields["digest"], plain["digest"])
                totals = json.loads(statistics.read_text())["totals"]
                self.assertGreaterEqual(totals["far_bytes_peak"], int(fields["bytes"]))
                self.assertLessEqual(totals["local_bytes_peak"], NAMES[name][2] * KIB)
                self.assertGreater(totals["read_bytes"], int(fields["bytes"]))

    def test_what_is_wrong_is_found(self):
        for name, (words, _, _) in NAMES.items():
            for define in ("NPB_ITERATIONS=5", "NPB_ITERATIONS=16", "NPB_SEED=314159267"):
                with self.subTest(name, define=define):
                    program = self.place / "wrong"
                    subprocess.run([COMPILER, "-Ddlm=", "-O1", "-std=gnu11", "-I..", "-D" + define,
                                    *words, "-o", program], cwd=SOURCES, check=True,
                                   timeout=SECONDS)
                    status, output, errors, fields = run([program])
                    self.assertEqual((status, fields.get("verified")), (1, "no"), output + errors)
                    self.assertIn("wrong result", errors)


if __name__ == "__main__":
    unittest.main()
