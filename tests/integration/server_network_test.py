# SPDX-License-Identifier: Apache-2.0
"""A program, its memory server on another machine, and the network between them.

The machines are network namespaces.  HANARE_MATV is a program of the C API whose result is known
(examples/matv.c).
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

import support
from networks import THERE, TwoNetworks

HANARE = os.environ["HANARE_BINARY"]
MATV = os.environ["HANARE_MATV"]
SECONDS = 100
PORT = 7077
# 2048 x 2048 doubles are 32 MiB, of which 8 MiB have room here.
SMALL = ("2048", "8")
LARGE = ("8192", "8")
TIMEOUT_MS = 1000


class Network(support.InOwnPlace):
    def setUp(self):
        super().setUp()
        self.networks = TwoNetworks(self)
        secret = pathlib.Path(self.directory, "secret")
        secret.write_bytes(os.urandom(32))
        secret.chmod(0o600)
        self.secret = str(secret)
        self.environment |= {"HANARE_STORE": f"tcp://{THERE}:{PORT}",
                             "HANARE_SECRET_FILE": self.secret,
                             "HANARE_SERVER_TIMEOUT_MS": str(TIMEOUT_MS)}
        self.server = self.begin(self.networks.in_there(
            HANARE, "server", "--memory", "640M", "--listen", f"0.0.0.0:{PORT}",
            "--secret-file", self.secret, "--metrics", "127.0.0.1:9077"))
        self.assertIn(" offers 640 MiB", self.server.stdout.readline())

    def tearDown(self):
        os.unlink(self.secret)
        super().tearDown()

    def begin(self, command):
        process = subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.environment)
        self.addCleanup(process.communicate, timeout=SECONDS)
        self.addCleanup(process.kill)
        return process

    def leased_bytes(self):
        """As the server has it, which is asked in its own network."""
        page = self.networks.run(*self.networks.in_there(
            "python3", "-c", "import urllib.request; print(urllib.request.urlopen("
            "'http://127.0.0.1:9077/status', timeout=20).read().decode())"))
        return json.loads(page.stdout)["leased_bytes"] if page.returncode == 0 else -1

    def test_link_down(self):
        """One line and SIGBUS after the time limit, and the server has its memory back."""
        program = self.begin(self.networks.in_here(MATV, *LARGE))
        self.assertTrue(support.eventually(lambda: self.leased_bytes() > 0))
        self.networks.cut(self)
        cut = time.monotonic()
        _, error = program.communicate(timeout=SECONDS)
        self.assertEqual(program.returncode, -signal.SIGBUS, error)
        self.assertEqual(error.count("\n"), 1, error)
        self.assertRegex(error, rf"memory server tcp://{re.escape(THERE)}:{PORT} has not answered "
                                rf"for {TIMEOUT_MS} ms")
        self.assertGreaterEqual(time.monotonic() - cut, TIMEOUT_MS / 1000 * 0.9)
        self.assertTrue(support.eventually(lambda: self.leased_bytes() == 0, 30))

    def test_slow_link(self):
        """Takes its time, and the result is right: nobody is silent."""
        self.networks.slow_down(self, "100mbit")
        program = self.begin(self.networks.in_here(MATV, *SMALL))
        output, error = program.communicate(timeout=SECONDS)
        self.assertEqual((program.returncode, error), (0, ""))
        self.assertIn("matv: 2048 x 2048, 32 MiB", output)
        self.assertTrue(support.eventually(lambda: self.leased_bytes() == 0))


if __name__ == "__main__":
    unittest.main()
