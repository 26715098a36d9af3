# SPDX-License-Identifier: Apache-2.0
"""`hanare bench numpy`: that it measures, compares results, and says what is wrong."""
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from hanare._bench import CASES

COMMAND = [sys.executable, "-m", "hanare", "bench", "numpy"]


def bench(folder, *arguments):
    return subprocess.run([*COMMAND, "--store", f"file:{folder}", *arguments],
                          capture_output=True, text=True, timeout=300)


def test_measures_all_systems(tmp_path):
    file = tmp_path / "results.json"
    ended = bench(tmp_path, "--size", "64M", "--rounds", "1", "--cases", "sum,update",
                  "--json", file)
    assert ended.returncode == 0, ended.stderr
    assert "all results of a case are the plain ones, bit by bit" in ended.stdout
    records = json.loads(file.read_text())
    times = {(record["case"], record["system"]) for record in records
             if record["metric"] == "time"}
    systems = ["plain", "hanare", "hanare_fits"]
    if os.geteuid() == 0:
        systems.append("memmap")
    else:
        assert "memmap is left out" in ended.stdout
    assert {(case, system) for case in ("sum", "update") for system in systems} <= times
    assert ("import", "hanare") in times
    assert all(record["params"]["local_bytes"] == 16 << 20 for record in records)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.json"]


@pytest.mark.parametrize("arguments, words", [
    (["--size", "1M"], "--size: '1M' is too little"),
    (["--size", "8T"], "--size 8 TiB needs"),
    (["--cases", "sum,some"], "there are sum,update,matmul"),
    (["--compare", "swap"], "there are plain,memmap"),
    (["--rounds", "0"], "--rounds"),
    (["--python", "/bin/there-is-none"], "there-is-none"),
    (["--python", "/bin/true", "--size", "64M", "--cases", "sum"], "no result"),
])
def test_says_what_is_wrong(tmp_path, arguments, words):
    ended = bench(tmp_path, *arguments)
    assert ended.returncode != 0
    errors = [line for line in ended.stderr.splitlines() if line.startswith("hanare: error: ")]
    assert len(errors) == 1 and words in errors[0], ended.stderr


@pytest.mark.parametrize("case", sorted(CASES))
def test_cases_compute_what_they_say(case):
    """Twice the same result, and another one than what they began with."""
    arrays = []

    def make(shape, dtype):
        arrays.append(np.zeros(shape, dtype))
        return arrays[-1]
    results = [np.array(CASES[case](make, 1 << 20)()) for _ in range(2)]
    np.testing.assert_array_equal(*results)
    assert results[0].size > 0 and np.isfinite(results[0]).all()
    assert 0.3 <= sum(array.nbytes for array in arrays) / (2 << 20) <= 1
