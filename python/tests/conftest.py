# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys

import pytest

import hanare

LOCAL = 8 << 20


@pytest.fixture(scope="session", autouse=True)
def compiled_stencils(tmp_path_factory):
    """They are not kept among the user's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def store(tmp_path_factory):
    return f"file:{tmp_path_factory.getbasetemp()}"


@pytest.fixture
def pool(store):
    """A pool of 8 MiB, of which nothing is left afterwards."""
    with hanare.Pool(local=LOCAL, store=store) as opened:
        yield opened


@pytest.fixture
def script():
    """Runs a program text in a fresh interpreter; its standard output."""
    def run(text, *arguments, environment=None, fails=False):
        ended = subprocess.run([sys.executable, "-c", text, *arguments], env=environment,
                               capture_output=True, text=True, timeout=120)
        assert (ended.returncode != 0) == fails, ended.stderr
        return ended.stderr if fails else ended.stdout
    return run
