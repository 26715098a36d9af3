# SPDX-License-Identifier: Apache-2.0
"""Other packages take far arrays for what they are: NumPy's."""
import threading

import numpy as np
import pytest

N = 1500  # 17 MiB each, in a pool of 8


@pytest.fixture
def plain():
    return np.random.default_rng(3).normal(size=(N, N))


@pytest.fixture
def far(pool, plain):
    return pool.asarray(plain)


def same(far, plain):
    return np.array_equal(np.asarray(far), np.asarray(plain))


def test_numpy(pool, far, plain):
    assert far.sum() == plain.sum() and same(far.mean(axis=0), plain.mean(axis=0))
    assert same(far.T @ far[:, :10], plain.T @ plain[:, :10])
    out = pool.empty((N, N))
    np.matmul(far, far, out=out)
    assert same(out, plain @ plain)
    assert same(np.fft.fft(far), np.fft.fft(plain))
    assert same(far[np.argsort(far[:, 0])], plain[np.argsort(plain[:, 0])])
    far.sort(axis=1)
    plain.sort(axis=1)
    assert same(far, plain)


def test_scipy(far, plain):
    linalg = pytest.importorskip("scipy.linalg")
    sparse = pytest.importorskip("scipy.sparse")
    fft = pytest.importorskip("scipy.fft")
    assert same(linalg.lu_factor(far[:300, :300])[0], linalg.lu_factor(plain[:300, :300])[0])
    assert same(fft.dct(far, workers=2), fft.dct(plain, workers=2))
    matrix = sparse.csr_matrix(np.where(plain > 2, plain, 0))
    assert same(matrix @ far, matrix @ plain)


def test_pandas(pool, plain):
    pandas = pytest.importorskip("pandas")
    far = pool.asarray(np.asfortranarray(plain))  # as it keeps columns itself
    frame = pandas.DataFrame(far, copy=False)
    assert np.shares_memory(frame.to_numpy(), far)
    expected = pandas.DataFrame(plain)
    assert frame.describe().equals(expected.describe())
    assert frame[frame[0] > 0].mean().equals(expected[expected[0] > 0].mean())


def test_numba(far, plain):
    numba = pytest.importorskip("numba")

    @numba.njit(parallel=True)
    def smoothed(a, out):
        for i in numba.prange(1, a.shape[0] - 1):
            for k in range(1, a.shape[1] - 1):
                out[i, k] = a[i, k - 1] + a[i - 1, k] + a[i, k + 1] + a[i + 1, k]

    out_far = np.zeros_like(plain)
    out_plain = np.zeros_like(plain)
    smoothed(far, out_far)
    smoothed(plain, out_plain)
    assert same(out_far, out_plain)


def test_joblib_threads(far, plain):
    joblib = pytest.importorskip("joblib")
    sums = joblib.Parallel(n_jobs=4, backend="threading")(
        joblib.delayed(np.sum)(far[i::7]) for i in range(7))
    assert sums == [plain[i::7].sum() for i in range(7)]


def test_joblib_processes_get_copies(far, plain):
    joblib = pytest.importorskip("joblib")
    sums = joblib.Parallel(n_jobs=2, max_nbytes=None)(
        joblib.delayed(np.sum)(far[i::7]) for i in range(3))
    # A pickle lies in memory in another way, which changes the order of sums.
    assert sums == [np.ascontiguousarray(plain[i::7]).sum() for i in range(3)]


def test_threads_share_an_array(pool):
    a = pool.empty((8, 400_000))

    def work(row):
        for _ in range(5):
            a[row] += row
            a[row][::-1].sort()

    threads = [threading.Thread(target=work, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (a == 5 * np.arange(8)[:, None]).all()
