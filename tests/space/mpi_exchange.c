/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of 1 B to 4 MiB around a ring, an exchange of all with all, a shared window, and loads
 * from the heaps of others where MPI's ranks are tasks of one space (argument "space").  Rank 0
 * prints "right".  Argument "wait": each prints its process and does nothing for ever; "abort": so
 * it does until one aborts the job. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES_MAX = 4 << 20 };

static int rank, ranks;

static unsigned char value(int of, int round, size_t i) {
    return (unsigned char)((size_t)of * 13 + (size_t)round * 5 + i * 3);
}

static void fail(const char *what) {
    printf("rank %d: %s\n", rank, what);
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void go_round(void) {
    unsigned char *out = malloc(BYTES_MAX);
    unsigned char *in = malloc(BYTES_MAX);
    int round = 0;
    for (size_t bytes = 1; bytes <= BYTES_MAX; bytes *= 4, round++) {
        for (size_t i = 0; i < bytes; i++) out[i] = value(rank, round, i);
        memset(in, 0, bytes);
        const int before = (rank + ranks - 1) % ranks;
        MPI_Sendrecv(out, (int)bytes, MPI_BYTE, (rank + 1) % ranks, round, in, (int)bytes, MPI_BYTE,
                     before, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (size_t i = 0; i < bytes; i++) {
            if (in[i] != value(before, round, i)) fail("a message is wrong");
        }
    }
    free(out);
    free(in);
}

static void exchange(void) {
    const int words = 8192;
    uint64_t *out = malloc((size_t)(words * ranks) * sizeof *out);
    uint64_t *in = malloc((size_t)(words * ranks) * sizeof *in);
    for (int i = 0; i < words * ranks; i++) out[i] = (uint64_t)rank << 32 | (uint64_t)i;
    MPI_Alltoall(out, words, MPI_UINT64_T, in, words, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++) {
        for (int i = 0; i < words; i++) {
            const uint64_t expected = (uint64_t)from << 32 | (uint64_t)(rank * words + i);
            if (in[from * words + i] != expected) fail("an exchange is wrong");
        }
    }
    free(out);
    free(in);
}

static void share(void) {
    uint64_t *own = NULL;
    MPI_Win window;
    MPI_Win_allocate_shared(1 << 20, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
    MPI_Win_fence(0, window);
    for (int i = 0; i < 1 << 17; i++) own[i] = (uint64_t)rank * 1000 + (uint64_t)i;
    MPI_Win_fence(0, window);
    MPI_Aint bytes;
    int unit;
    uint64_t *theirs = NULL;
    const int next = (rank + 1) % ranks;
    MPI_Win_shared_query(window, next, &bytes, &unit, &theirs);
    for (int i = 0; i < 1 << 17; i++) {
        if (theirs[i] != (uint64_t)next * 1000 + (uint64_t)i) fail("a window is wrong");
    }
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
}

static void look_into_heaps(void) {
    uint64_t *own = malloc(1000 * sizeof *own);
    for (uint64_t i = 0; i < 1000; i++) own[i] = i * (uint64_t)(rank + 2);
    uint64_t **all = malloc((size_t)ranks * sizeof *all);
    MPI_Allgather(&own, sizeof own, MPI_BYTE, all, sizeof own, MPI_BYTE, MPI_COMM_WORLD);
    for (int other = 0; other < ranks; other++) {
        for (uint64_t i = 0; i < 1000; i++) {
            if (all[other][i] != i * (uint64_t)(other + 2)) fail("another's heap is wrong");
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(own);
    free(all);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1 && strcmp(argv[1], "wait") == 0) {
        printf("%d\n", (int)getpid());
        fflush(stdout);
        for (;;) pause();
    }
    if (argc > 1 && strcmp(argv[1], "abort") == 0) {
        printf("%d\n", (int)getpid());
        fflush(stdout);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 33);
        for (;;) pause();
    }
    go_round();
    exchange();
    share();
    if (argc > 1 && strcmp(argv[1], "space") == 0) look_into_heaps();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) puts("right");
    MPI_Finalize();
    return 0;
}
