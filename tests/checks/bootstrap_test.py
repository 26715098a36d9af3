#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# scripts/bootstrap on machines that do not exist: PATH holds nothing but stand-ins for the package
# tools, which record how they were called.
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import checklib  # noqa: E402

BASE = ["cmake", "ninja-build", "g++", "pkg-config", "python3", "libgtest-dev", "libgmock-dev",
        "libbenchmark-dev", "libcli11-dev", "nlohmann-json3-dev", "libfmt-dev",
        "libtomlplusplus-dev", "libxxhash-dev", "libssl-dev",
        "libipsec-mb-dev", "libmicrohttpd-dev", "openmpi-bin", "libpmix2", "mpich", "libopenmpi-dev", "libmpich-dev",
        "libucx-dev", "iproute2", "spin"]
PROGRAMS = ["python3-venv", "gfortran", "gcc", "gawk", "perl", "sqlite3", "xz-utils",
            "redis-server", "memcached", "octave", "r-base-core", "bwa", "minimap2", "samtools",
            "velvet", "jellyfish", "nodejs", "openjdk-17-jdk-headless"]
CLANG = ["clang-19", "libclang-rt-19-dev", "llvm-19", "clang-format-19"]
PYTHON = ["python3-dev", "python3-venv"]
BROWSER = ["chromium"]
MPI = ["gfortran", "gdb", "libpython3.11-dev", "hpcc"]
SLURM = ["slurmctld", "slurmd", "slurm-client"]

DPKG_QUERY = """#!/bin/bash
shift 2
status=0
for package in "$@"; do
    if [[ " $INSTALLED " == *" $package "* ]]; then echo "$package installed"; else status=1; fi
done
exit $status
"""
RECORD = '#!/bin/bash\necho "${0##*/} $*" >>"$CALLS"\nexit %s\n'
# Fails if a package might start a daemon.
APT_GET = """#!/bin/bash
echo "${0##*/} $*" >>"$CALLS"
[[ " $* " == *" install "* ]] || exit 0
"$HANARE_POLICY" munge start
[[ $? == 101 ]]
"""
# `sudo -n true` and `sudo -n env ...`
SUDO = '#!/bin/bash\necho "sudo $*" >>"$CALLS"\nshift\nexec "$@"\n'


def run(arguments, installed, uid="0", sudo=None, os_release="ID=debian\n", policy=None,
        **environment):
    """(exit status, stderr, calls) of the script on such a machine.

    `policy` is its policy-rc.d, if it has one; a change of that, too, is said in stderr."""
    with tempfile.TemporaryDirectory(prefix=f"hanare-check-{os.getpid()}-") as folder:
        folder = pathlib.Path(folder)
        (folder / "os-release").write_text(os_release)
        calls = folder / "calls"
        calls.touch()
        policy_file = folder / "policy-rc.d"
        if policy:
            policy_file.write_text(policy)
            policy_file.chmod(0o755)
        commands = {"dpkg-query": DPKG_QUERY, "apt-get": APT_GET,
                    "id": f"#!/bin/bash\necho {uid}\n"}
        if sudo:
            commands["sudo"] = sudo
        checklib.write_tree(folder / "bin", commands)
        for command in commands:
            (folder / "bin" / command).chmod(0o755)
        for command in ("bash", "env", "install", "rm", "true"):
            (folder / "bin" / command).symlink_to(shutil.which(command))
        done = subprocess.run(
            ["/bin/bash", ROOT / "scripts/bootstrap", *arguments], stdin=subprocess.DEVNULL,
            capture_output=True, text=True,
            env={"PATH": str(folder / "bin"), "INSTALLED": " ".join(installed),
                 "CALLS": str(calls), "HANARE_OS_RELEASE": str(folder / "os-release"),
                 "HANARE_POLICY": str(policy_file), **environment})
        left = policy_file.read_text() if policy_file.exists() else None
        error = done.stderr + ("" if left == policy else f"policy-rc.d is {left} now\n")
        return done.returncode, error, calls.read_text().splitlines()


def main():
    failures = []

    def expect(what, condition, result):
        if not condition:
            failures.append(f"{what}: {result}")

    result = run([], BASE)
    expect("nothing missing: silent, no apt-get", result == (0, "", []), result)

    status, error, calls = result = run([], [])
    expect("fresh machine: update, then install of everything, and no daemon meanwhile",
           status == 0 and "policy" not in error
           and len(calls) == 2 and calls[0].endswith(" update")
           and calls[1].endswith("install " + " ".join(BASE)), result)

    status, _, calls = result = run([], BASE[1:-1])
    expect("only what is missing", calls[1:] and calls[1].endswith("install cmake spin"), result)

    status, _, calls = result = run(["--all"], BASE)
    expect("--all", calls[1:] and calls[1].endswith("install " + " ".join(CLANG + PYTHON + BROWSER + SLURM)), result)

    own_policy = "#!/bin/sh\n# Mine.\nexit 101\n"
    status, error, _ = result = run(["--all"], BASE, policy=own_policy)
    expect("policy-rc.d of its own stays", status == 0 and "policy" not in error, result)

    status, _, calls = result = run(["--programs"], BASE)
    expect("--programs", calls[1:] and calls[1].endswith(
        "install " + " ".join(PROGRAMS)), result)

    status, _, calls = result = run(["--mpi"], BASE)
    expect("--mpi", calls[1:] and calls[1].endswith("install " + " ".join(MPI)), result)

    status, error, calls = result = run([], BASE[1:], uid="1000")
    expect("user without sudo: the list, the command, status 1",
           status == 1 and not calls and "missing: cmake\n" in error
           and "apt-get install -y --no-install-recommends cmake" in error, result)

    status, error, calls = result = run([], BASE[1:], uid="1000", sudo=SUDO)
    expect("user with sudo", status == 0 and calls[0] == "sudo -n true" and "policy" not in error
           and any(call.startswith("apt-get") and call.endswith("install cmake")
                   for call in calls), result)

    status, error, calls = result = run([], BASE[1:], uid="1000", sudo=RECORD % 1)
    expect("sudo that wants a password", status == 1 and calls == ["sudo -n true"]
           and "missing: cmake" in error, result)

    status, error, calls = result = run([], [], os_release="ID=fedora\n")
    expect("not Debian: one line, status 1", status == 1 and not calls
           and error.count("\n") == 1 and " ".join(BASE) in error, result)

    result = run([], [], os_release="ID=fedora\n", HANARE_NO_BOOTSTRAP="1")
    expect("HANARE_NO_BOOTSTRAP", result == (0, "", []), result)

    status, error, _ = result = run(["--everything"], BASE)
    expect("unknown flag", status == 2 and "usage" in error, result)

    return checklib.report("bootstrap", failures, "12 machines as expected")


if __name__ == "__main__":
    sys.exit(main())
