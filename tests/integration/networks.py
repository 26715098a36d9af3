# SPDX-License-Identifier: Apache-2.0
"""Two machines as far as a network goes: namespaces that a test makes, joined by a veth pair."""

import os
import subprocess

SECONDS = 60
# Addresses of documentation (RFC 5737), which are nobody's.
HERE, THERE = "192.0.2.1", "192.0.2.2"
DEVICE = "veth0"


class TwoNetworks:
    """Skips the test, with the reason, where they cannot be made.  Gone when the test ends."""

    def __init__(self, test):
        if os.geteuid() != 0:
            test.skipTest("only root can make network namespaces that have names")
        self.here, self.there = (f"hanare-{os.getpid()}-{i}" for i in (1, 2))
        for name in (self.here, self.there):
            made = self.run("ip", "netns", "add", name)
            if made.returncode != 0:
                test.skipTest(f"no network namespaces here: {made.stderr.strip()}")
            test.addCleanup(self.run, "ip", "netns", "del", name)
        joined = self.run("ip", "-n", self.here, "link", "add", DEVICE, "type", "veth", "peer",
                          "name", DEVICE, "netns", self.there)
        if joined.returncode != 0:
            test.skipTest(f"no veth pairs here: {joined.stderr.strip()}")
        for name, address in ((self.here, HERE), (self.there, THERE)):
            for words in (("addr", "add", address + "/24", "dev", DEVICE),
                          ("link", "set", DEVICE, "up"), ("link", "set", "lo", "up")):
                done = self.run("ip", "-n", name, *words)
                test.assertEqual(done.returncode, 0, done.stderr)

    @staticmethod
    def run(*words):
        return subprocess.run(words, check=False, timeout=SECONDS, capture_output=True, text=True)

    def cut(self, test):
        """The link is down, as a cable that was pulled out."""
        done = self.run("ip", "-n", self.there, "link", "set", DEVICE, "down")
        test.assertEqual(done.returncode, 0, done.stderr)

    def slow_down(self, test, rate):
        """Both ways; skips the test where the kernel cannot."""
        for name in (self.here, self.there):
            done = self.run("tc", "-n", name, "qdisc", "add", "dev", DEVICE, "root", "tbf", "rate",
                            rate, "burst", "256k", "latency", "100ms")
            if done.returncode != 0:
                test.skipTest(f"no slow links here (tc tbf): {done.stderr.strip()}")

    def in_here(self, *command):
        return ["ip", "netns", "exec", self.here, *command]

    def in_there(self, *command):
        return ["ip", "netns", "exec", self.there, *command]
