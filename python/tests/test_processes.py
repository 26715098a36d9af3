# SPDX-License-Identifier: Apache-2.0
"""Order of imports, signals, children, pickles, and programs under `hanare run`."""
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import hanare

USES_FAR_ARRAYS = """
import os, sys, tempfile
pool = hanare.Pool(local="8MiB")
a = pool.ones(4 << 20)
a[1000:2000] = 5
assert a.sum() == (4 << 20) + 4000
if hanare.system_calls_are_caught():
    with tempfile.TemporaryFile() as file:
        a.tofile(file)
        assert os.fstat(file.fileno()).st_size == a.nbytes
"""


@pytest.mark.parametrize("imports", [
    "import hanare", "import numpy as np, hanare", "import hanare, numpy as np",
    "import faulthandler; faulthandler.enable(); import hanare",
    "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    "import hanare",
    "import scipy.linalg, pandas, hanare",
])
def test_orders_of_imports(script, imports):
    if "pandas" in imports:
        pytest.importorskip("pandas")
    caught = script(imports + "\n" + USES_FAR_ARRAYS + "print(hanare.system_calls_are_caught())")
    # In whatever order: the threads that there are stop for a moment.
    assert caught.strip() == str(hanare.system_calls_are_caught())


def test_system_calls_are_caught():
    status = open("/proc/self/status", encoding="ascii").read()
    if "Seccomp:\t0" not in status or os.path.exists("/proc/sys/kernel/yama/ptrace_scope"):
        pytest.skip("ptrace may be refused here")
    if os.environ.get("HANARE_SYSCALLS", "on") != "on":
        pytest.skip("HANARE_SYSCALLS says no")
    assert hanare.system_calls_are_caught()


def test_who_handles_faults_comes_second(script):
    if not hanare.system_calls_are_caught():
        pytest.skip("system calls cannot be caught here")
    script("import hanare, faulthandler, signal\n" + USES_FAR_ARRAYS +
           "faulthandler.enable()\n"
           "signal.signal(signal.SIGBUS, lambda *_: None)\n"
           "assert (a * 2).sum() == 2 * a.sum()\n")


def test_faults_of_others_are_told(script):
    text = script("import hanare, faulthandler\n" + USES_FAR_ARRAYS +
                  "faulthandler.enable()\nimport ctypes\nctypes.string_at(8)\n", fails=True)
    assert "Segmentation fault" in text and "ctypes" in text


def test_system_calls_can_be_left_alone(script):
    environment = {**os.environ, "HANARE_SYSCALLS": "off"}
    script("import hanare\n" + USES_FAR_ARRAYS +
           "assert not hanare.system_calls_are_caught()\n", environment=environment)


def test_import_is_quick(script):
    """Nothing large comes with it, but NumPy."""
    modules = script("import sys, numpy\nbefore = set(sys.modules)\nimport hanare\n"
                     "print(*sorted(set(sys.modules) - before))\n").split()
    assert not {"rich", "pandas", "scipy", "matplotlib", "asyncio"} & set(modules)


def test_pickles_are_copies(pool):
    a = pool.full(1_000_000, 3.25)
    b = pickle.loads(pickle.dumps(a, protocol=5))
    assert (a == b).all() and b not in pool
    buffers = []
    head = pickle.dumps(a, protocol=5, buffer_callback=buffers.append)
    assert (pickle.loads(head, buffers=buffers) == a).all()


def _sum_of(values):
    return float(np.sum(values))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing(pool, method):
    a = pool.full(300_000, 2.0)
    with multiprocessing.get_context(method).Pool(2) as children:
        assert children.map(_sum_of, [a[:1000], a]) == [2000.0, 600_000.0]
    assert (a == 2).all()


def test_children_of_fork_have_no_far_memory(script):
    text = """
import hanare, os
pool = hanare.Pool(local="8MiB")
a = pool.ones(4 << 20)
child = os.fork()
if child == 0:
    for make in (lambda: hanare.Pool(local="8MiB"), lambda: pool.ones(10)):
        try:
            make()
            os._exit(3)
        except hanare.Error as error:
            assert error.status == "FORKED" and "fork" in str(error)
    {touch}
    os._exit(0)
status = os.waitpid(child, 0)[1]
assert a.sum() == 4 << 20
print(os.waitstatus_to_exitcode(status))
"""
    assert script(text.format(touch="")).strip() == "0"
    assert int(script(text.format(touch="a[0]"))) < 0  # by a signal, and a line that says why


def test_run(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys\nvalues = list(range(3_000_000))\n"
                       "print(sum(values), sys.argv[1:])\n", encoding="utf-8")
    result = hanare.run([program, "a b", b"-c"], local="32MiB", store=tmp_path,
                        capture_output=True, text=True)
    assert result.returncode == 0 and result.stdout.split()[0] == str(4499998500000)
    assert "['a b', '-c']" in result.stdout
    assert result.stats["totals"]["written_bytes"] > 0
    with pytest.raises(subprocess.CalledProcessError):
        hanare.run([sys.executable, "-c", "raise SystemExit(3)"], capture_output=True)
    assert hanare.run(["/bin/false"], check=False, capture_output=True).returncode == 1
    with pytest.raises(ValueError, match="command: 'ls' is no list"):
        hanare.run("ls")


def test_one_of_the_two(tmp_path):
    """Below `hanare run` all memory is far before the package is loaded."""
    program = tmp_path / "program.py"
    program.write_text("memory = bytearray(20 << 20)\nimport hanare\ntry:\n    hanare.Pool()\n"
                       "except hanare.Error as error:\n    print(error)\n", encoding="utf-8")
    result = hanare.run([program], local="64MiB", store=f"file:{tmp_path}", capture_output=True,
                        text=True)
    assert result.stdout.startswith("all of the program's memory is far already, below hanare run")


def test_the_module_is_the_command(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("print(sum(range(10)))\n", encoding="utf-8")
    ended = subprocess.run([sys.executable, "-m", "hanare", "run", "--local", "64MiB", program],
                           capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and ended.stdout == "45\n", ended.stderr
    version = subprocess.run([sys.executable, "-m", "hanare", "--version"], capture_output=True,
                             text=True, timeout=60)
    assert hanare.__version__ in version.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="is run as an ordinary user already")
def test_ordinary_users():
    text = "import hanare\n" + USES_FAR_ARRAYS + "print(hanare.system_calls_are_caught())\n"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o777)
        ended = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                                sys.executable, "-c", text], capture_output=True, text=True,
                               timeout=60, env={**os.environ, "TMPDIR": folder}, cwd="/")
    if ended.returncode != 0 and any(reason in ended.stderr for reason in (
            "No module named", "failed to execute")):
        pytest.skip("the environment cannot be read by others")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"{hanare.system_calls_are_caught()}\n"
