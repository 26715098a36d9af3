# SPDX-License-Identifier: Apache-2.0
"""A matrix that is 1.27 times as large as the machine's memory, in a third of it, the rest first on
a memory server and then in a file; what comes out is compared with the closed form (examples/matv.c).

    python3 larger_than_memory.py --hanare HANARE --matv MATV [--directory DIR] [--share PERCENT]

--share: of the machine's memory, for a trial; 127 is what the test is about.
"""

import argparse
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time

GIB = 1 << 30


def memory_bytes(name):
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith(name + ":"):
                return int(line.split()[1]) << 10
    raise KeyError(name)


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hanare", required=True)
    parser.add_argument("--matv", required=True)
    parser.add_argument("--directory", default="/var/tmp")
    parser.add_argument("--share", type=float, default=127)
    return parser.parse_args()


def main():
    given = parse()
    total = memory_bytes("MemTotal")
    data = int(total * given.share / 100)
    rows = math.isqrt(data // 8) + 1
    part = data // 4 if given.share < 100 else total // 3
    on_disk = data - part
    free = shutil.disk_usage(given.directory).free
    if free < on_disk + 2 * GIB or memory_bytes("MemAvailable") < 2 * part + GIB:
        print(f"skipped: {on_disk / GIB:.1f} GiB of {given.directory} and "
              f"{2 * part / GIB:.1f} GiB of memory have to be free", file=sys.stderr)
        return 77
    command = [given.hanare, "server", "--memory", str(part), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = re.match(r"hanare server: (tcp://\S+) offers", server.stdout.readline())[1]
            # What the server keeps of it is for others.
            size = part - 64 * (1 << 20) if part > GIB else part // 2
            store = f"tier({url}?size={size >> 20}M,file:{given.directory})"
            print(f"{rows * rows * 8 / GIB:.1f} GiB in a machine of {total / GIB:.1f} GiB: "
                  f"{part / GIB:.1f} GiB local, then {store}", flush=True)
            begin = time.monotonic()
            result = subprocess.run([given.matv, str(rows), str(part >> 20)], check=False,
                                    env={**os.environ, "HANARE_STORE": store})
            print(f"exit status {result.returncode} after {time.monotonic() - begin:.0f} s")
            return 0 if result.returncode == 0 else 1
        finally:
            server.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
