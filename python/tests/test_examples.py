# SPDX-License-Identifier: Apache-2.0
"""The examples end in a picture, and their results are those of numpy.memmap."""
import pathlib
import subprocess
import sys

import numpy as np
import pytest

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
STENCILS = pathlib.Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("name", "size"), [("pca", 200_000), ("mosaic", 2500),
                                            ("pagerank", 200_000)])
def test_examples(tmp_path, name, size):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    picture = tmp_path / "picture.png"
    ended = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", "--size", str(size), "--local", "16MiB",
         "--folder", tmp_path, "--output", picture],
        capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    first, second, last = ended.stdout.splitlines()
    assert first.startswith("hanare ") and second.startswith("numpy.memmap ")
    written = int(first.split()[-3])
    assert written > 0 and last.endswith(str(picture))
    pixels = pyplot.imread(picture)
    assert min(pixels.shape[:2]) > 300 and np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0
                                                     ).shape[0] > 20
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]


@pytest.mark.parametrize(("name", "size", "steps"), [("heat", 48, 300), ("gray_scott", 96, 2000),
                                                     ("acoustic", 64, 400)])
def test_stencils(tmp_path, name, size, steps):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    picture = tmp_path / "picture.png"
    options = ["--memory", "12MiB"] if name == "acoustic" else []
    ended = subprocess.run(
        [sys.executable, STENCILS / f"stencil_{name}.py", "--size", str(size), "--steps",
         str(steps), "--folder", tmp_path, "--output", picture, *options],
        capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith(f"{picture}\n") and f"{steps} steps in" in ended.stdout
    pixels = pyplot.imread(picture)
    assert min(pixels.shape[:2]) > 250 and np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0
                                                     ).shape[0] > 20
    assert [path.name for path in tmp_path.iterdir()] == ["picture.png"]
