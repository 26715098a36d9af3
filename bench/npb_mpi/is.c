// SPDX-License-Identifier: Apache-2.0
//
// NPB IS under MPI: ranks integer keys ten times (RNR-94-007; the distributed form as in NPB 2).
// Every rank has an equal share of the keys.  A ranking counts the keys of all ranks by buckets,
// gives each rank neighbouring buckets with about as many keys as the others have, sends the keys
// there, and counts them there by value.  Two keys change before each, so that none can be left
// out; five keys' ranks are known for every class; and at the end the keys are put in order.
#include "is_official.h"
#include "npb_mpi.h"
#include "npb_random.h"

enum {
    kRanksMax = 64,
    kBucketsLog2 = 10,
    kBuckets = 1 << kBucketsLog2,
    kBucketShift = kMaxKeyLog2 - kBucketsLog2
};

// An array of `room` elements that grows when more are needed, and is not kept then.
struct buffer {
    int *data;
    int room;
};

static struct npb_world world;
static int share;  // keys per rank

static int *keys;               // the rank's share of them
static int *bucketed;           // their copy in the order of buckets
static struct buffer received;  // all ranks' keys of the rank's buckets

// For each value from first_value to before end_value, which are those of the rank's buckets, how
// many keys of all ranks are not above it.
static struct buffer not_above;
static int first_value, end_value;
static int keys_below;  // first_value

// Keys by bucket, followed by the values of the test keys, each 0 but on the rank that holds it: so
// one sum over the ranks tells all of them both.
static int own_counts[kBuckets + kTestKeys], all_counts[kBuckets + kTestKeys];

// Where the keys for, and those from, each rank begin in `bucketed` and `received`.
static int send_counts[kRanksMax], send_begins[kRanksMax];
static int receive_counts[kRanksMax], receive_begins[kRanksMax];

static void grow(struct buffer *buffer, int count) {
    if (count <= buffer->room) return;
    free(buffer->data);
    buffer->room = count + count / 8;  // the next ranking may need a few more
    buffer->data = npb_allocate(&world, (size_t)buffer->room, sizeof(int));
}

// Each key is the mean of four numbers of the generator, in units of the greatest key; every rank
// begins at its own place in the random sequence.
static void make_keys(void) {
    uint64_t seed = npb_random_jump(NPB_SEED, 4 * (uint64_t)world.rank * (uint64_t)share);
    for (int at = 0; at < share; ++at) {
        double sum = npb_random(&seed);
        for (int i = 1; i < 4; ++i) sum += npb_random(&seed);
        keys[at] = (int)(sum * (kMaxKey / 4));
    }
}

static void count_buckets(void) {
    memset(own_counts, 0, sizeof(own_counts));
    for (int at = 0; at < share; ++at) ++own_counts[keys[at] >> kBucketShift];
    for (int i = 0; i < kTestKeys; ++i) {
        const int index = test_keys[i].index;
        if (index / share == world.rank) own_counts[kBuckets + i] = keys[index % share];
    }
    MPI_Allreduce(own_counts, all_counts, kBuckets + kTestKeys, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void fill_buckets(void) {
    int next[kBuckets];
    int before = 0;
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
        next[bucket] = before;
        before += own_counts[bucket];
    }
    for (int at = 0; at < share; ++at) bucketed[next[keys[at] >> kBucketShift]++] = keys[at];
}

// Each rank takes buckets until it and those before it have their shares of the keys.
static void assign_buckets(void) {
    int bucket = 0, below = 0, sent = 0;
    for (int rank = 0; rank < world.ranks; ++rank) {
        if (rank == world.rank) {
            first_value = bucket << kBucketShift;
            keys_below = below;
        }
        send_begins[rank] = sent;
        const bool is_last = rank == world.ranks - 1;
        while (bucket < kBuckets && (is_last || below < (rank + 1) * share)) {
            below += all_counts[bucket];
            sent += own_counts[bucket++];
        }
        send_counts[rank] = sent - send_begins[rank];
        if (rank == world.rank) end_value = bucket << kBucketShift;
    }
}

static int received_count(void) {
    return receive_begins[world.ranks - 1] + receive_counts[world.ranks - 1];
}

static void exchange_keys(void) {
    MPI_Alltoall(send_counts, 1, MPI_INT, receive_counts, 1, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 1; rank < world.ranks; ++rank) {
        receive_begins[rank] = receive_begins[rank - 1] + receive_counts[rank - 1];
    }
    grow(&received, received_count());
    MPI_Alltoallv(bucketed, send_counts, send_begins, MPI_INT, received.data, receive_counts,
                  receive_begins, MPI_INT, MPI_COMM_WORLD);
}

static void count_values(void) {
    const int values = end_value - first_value;
    const int count = received_count();
    grow(&not_above, values);
    memset(not_above.data, 0, (size_t)values * sizeof(int));
    for (int at = 0; at < count; ++at) ++not_above.data[received.data[at] - first_value];
    int below = keys_below;
    for (int at = 0; at < values; ++at) not_above.data[at] = below += not_above.data[at];
}

// Returns how many of the known ranks are met, of the keys whose values are the rank's.
static int check_known_ranks(int iteration) {
    int met = 0;
    for (int i = 0; i < kTestKeys; ++i) {
        const struct test_key *const test = &test_keys[i];
        const int value = all_counts[kBuckets + i];
        if (value < first_value || value >= end_value) continue;
        const int rank =
            value == first_value ? keys_below : not_above.data[value - 1 - first_value];
        met += rank == test->rank + test->step * (iteration - test->origin);
    }
    return met;
}

static int rank_keys(int iteration) {
    if (world.rank == 0) {
        keys[iteration] = iteration;
        keys[iteration + kIterations] = kMaxKey - iteration;
    }
    count_buckets();
    fill_buckets();
    assign_buckets();
    exchange_keys();
    count_values();
    return check_known_ranks(iteration);
}

// The rank's part of all keys in order, in memory that the caller frees.
static int *sort_keys(void) {
    const int count = received_count();
    int *const sorted = npb_allocate(&world, (size_t)count + 1, sizeof(int));
    for (int at = 0; at < count; ++at) {
        const int key = received.data[at];
        sorted[--not_above.data[key - first_value] - keys_below] = key;
    }
    return sorted;
}

static bool are_sorted(const int *sorted, int count) {
    const int own_last = count == 0 ? -1 : sorted[count - 1];
    int last_before = -1;
    MPI_Exscan(&own_last, &last_before, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (world.rank == 0) last_before = -1;  // MPI leaves it undefined
    int descents = count > 0 && last_before > sorted[0];
    for (int at = 1; at < count; ++at) descents += sorted[at - 1] > sorted[at];
    return descents == 0;
}

// Whether there are as many keys of all ranks as before, and their sum is the same: order alone
// would not tell that keys were lost, or are there twice.
static bool are_complete(const int *sorted, int count) {
    int64_t own[2] = {count - share, 0};
    int64_t all[2];
    for (int at = 0; at < count; ++at) own[1] += sorted[at];
    for (int at = 0; at < share; ++at) own[1] -= keys[at];
    MPI_Allreduce(own, all, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all[0] == 0 && all[1] == 0;
}

// What is wrong, or NULL; `met` is of all rankings and of this rank's values.
static const char *verify(int met) {
    int *const sorted = sort_keys();
    const bool in_order = are_sorted(sorted, received_count());
    const bool complete = are_complete(sorted, received_count());
    free(sorted);
    int met_by_all = 0;
    MPI_Allreduce(&met, &met_by_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (world.rank == 0) {
        printf("NPB IS class %s: %d keys up to %d, %d iterations\n", BENCH_TEXT(NPB_CLASS), kKeys,
               kMaxKey, kIterations);
        printf("known ranks met: %d of %d\n", met_by_all, kTestKeys * kIterations);
    }
    if (!in_order) return "the keys are not sorted";
    if (!complete) return "the sorted keys are not those from before";
    return met_by_all == kTestKeys * kIterations ? NULL : "ranks differ from the known ones";
}

int main(int argc, char **argv) {
    world = npb_begin("is", argc, argv);
    npb_require_ranks(&world, npb_is_power_of_two(world.ranks) && world.ranks <= kRanksMax,
                      "a power of two from 1 to 64");
    share = kKeys / world.ranks;
    keys = npb_allocate(&world, (size_t)share, sizeof(int));
    bucketed = npb_allocate(&world, (size_t)share, sizeof(int));
    make_keys();
    (void)rank_keys(1);  // untimed: touches all memory

    int met = 0;
    const double start = npb_start();
    for (int iteration = 1; iteration <= kIterations; ++iteration) met += rank_keys(iteration);
    const double seconds = npb_stop(start);

    const struct npb_result result = {
        .seconds = seconds, .mops = 1e-6 * kIterations * kKeys / seconds, .wrong = verify(met)};
    free(not_above.data);
    free(received.data);
    free(bucketed);
    free(keys);
    return npb_finish(&world, &result);
}
