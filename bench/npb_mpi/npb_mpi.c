// SPDX-License-Identifier: Apache-2.0
//
// Beginning, clock, memory and end of the programs.
#include "npb_mpi.h"

// Ends all ranks in order: MPI_Abort() would have the launcher print more than rank 0's line.
static void end_all_ranks(int status) {
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    exit(status);
}

struct npb_world npb_begin(const char *program, int argc, char **argv) {
    struct npb_world world = {.program = program};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world.ranks);
    if (argc <= 1) return world;
    if (world.rank == 0)
        fprintf(stderr, "%s: unknown argument %s; known: none\n", program, argv[1]);
    end_all_ranks(2);
    return world;
}

bool npb_is_power_of_two(int number) { return number > 0 && (number & (number - 1)) == 0; }

void npb_require_ranks(const struct npb_world *world, bool allowed, const char *allowed_ranks) {
    if (allowed) return;
    if (world->rank == 0) {
        fprintf(stderr, "%s: class %s runs on %s, not on %d ranks\n", world->program,
                BENCH_TEXT(NPB_CLASS), allowed_ranks, world->ranks);
    }
    end_all_ranks(2);
}

void *npb_allocate(const struct npb_world *world, size_t count, size_t size) {
    void *const memory = calloc(count, size);
    if (memory != NULL) return memory;
    fprintf(stderr, "%s: rank %d: no memory for %zu elements of %zu bytes\n", world->program,
            world->rank, count, size);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();  // not reached; MPI_Abort() is not declared as not returning
}

double npb_start(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Wtime();
}

double npb_stop(double start) {
    const double own = MPI_Wtime() - start;
    double slowest = 0;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int npb_finish(const struct npb_world *world, const struct npb_result *result) {
    int status = 0;
    const int own = result->wrong == NULL ? 0 : 1;
    MPI_Allreduce(&own, &status, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (own != 0) {
        fprintf(stderr, "%s: rank %d: wrong result: %s\n", world->program, world->rank,
                result->wrong);
    }
    if (world->rank == 0) {
        printf("result: program=%s class=%s ranks=%d seconds=%.6f mops=%.6g verified=%s\n",
               world->program, BENCH_TEXT(NPB_CLASS), world->ranks, result->seconds, result->mops,
               status == 0 ? "yes" : "no");
        if (fflush(stdout) != 0) status = 1;
    }
    MPI_Finalize();
    return status;
}
