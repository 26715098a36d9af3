// SPDX-License-Identifier: Apache-2.0
//
// QSort: the kernels, and their verification: the keys are in order, and they are those from
// before, by their sum and by that of their squares and of a hash of each.
#include "quicksort.h"

#include "npb_random.h"

static const uint64_t kSeed = 314159265;

void quicksort_fill(const struct quicksort *sort, int *keys) {
    uint64_t seed = kSeed;
    for (long at = 0; at < sort->keys; ++at) keys[at] = (int)(npb_random(&seed) * 0x7fffffff);
}

static void swap(int *a, int *b) {
    const int key = *a;
    *a = *b;
    *b = key;
}

static int median(int a, int b, int c) {
    const int low = a < b ? a : b, high = a < b ? b : a;
    return c < low ? low : c > high ? high : c;
}

// Hoare's: with a median of three that are there, neither pointer leaves the range.
long quicksort_divide(int *keys, struct share range) {
    const long last = range.end - 1;
    const int pivot =
        median(keys[range.begin], keys[range.begin + (last - range.begin) / 2], keys[last]);
    long left = range.begin, right = last;
    for (;;) {
        while (keys[left] < pivot) ++left;
        while (keys[right] > pivot) --right;
        if (left >= right) break;
        swap(&keys[left++], &keys[right--]);
    }
    // keys[left] is the pivot or above, and all before are the pivot or below.
    return left == range.begin ? left + 1 : left > last ? last : left;
}

static void bubble_sort(int *keys, struct share range) {
    for (long end = range.end - 1; end > range.begin;) {
        long last_swap = range.begin;
        for (long at = range.begin; at < end; ++at) {
            if (keys[at] <= keys[at + 1]) continue;
            swap(&keys[at], &keys[at + 1]);
            last_swap = at;
        }
        end = last_swap;
    }
}

static void insertion_sort(int *keys, struct share range) {
    for (long next = range.begin + 1; next < range.end; ++next) {
        const int key = keys[next];
        long at = next;
        for (; at > range.begin && keys[at - 1] > key; --at) keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

static void sort_range(int *keys, struct share range) {
    enum { kFew = 16 };
    while (range.end - range.begin > kFew) {
        const long middle = quicksort_divide(keys, range);
        const struct share low = {range.begin, middle}, high = {middle, range.end};
        const bool low_is_short = middle - range.begin < range.end - middle;
        sort_range(keys, low_is_short ? low : high);  // no deeper than log2 of the keys
        range = low_is_short ? high : low;
    }
    insertion_sort(keys, range);
}

void quicksort_leaf(const struct quicksort *sort, int *keys, struct share range) {
    if (sort->bubble) {
        bubble_sort(keys, range);
    } else {
        sort_range(keys, range);
    }
}

void range_push(struct range_stack *stack, struct share range) {
    if (stack->count == stack->room) {
        stack->room = 2 * stack->room + 16;
        stack->ranges = realloc(stack->ranges, (size_t)stack->room * sizeof(struct share));
        if (stack->ranges == NULL) form_abort("no memory");
    }
    stack->ranges[stack->count++] = range;
}

bool range_pop(struct range_stack *stack, struct share *range) {
    if (stack->count == 0) return false;
    *range = stack->ranges[--stack->count];
    return true;
}

struct multiset {
    uint64_t sum, squares, hashes;
};

static struct multiset multiset_of(const int *keys, long count) {
    struct multiset set = {0, 0, 0};
    for (long at = 0; at < count; ++at) {
        const uint64_t key = (uint64_t)keys[at];
        set.sum += key;
        set.squares += key * key;
        set.hashes += dsm_mix(key, key);
    }
    return set;
}

static const char *verify(const struct quicksort *sort, const int *keys) {
    for (long at = 1; at < sort->keys; ++at) {
        if (keys[at - 1] > keys[at]) return "the keys are not sorted";
    }
    int *const before = dsm_allocate((size_t)sort->keys, sizeof(int));
    quicksort_fill(sort, before);
    const struct multiset wanted = multiset_of(before, sort->keys);
    const struct multiset found = multiset_of(keys, sort->keys);
    free(before);
    const bool same = memcmp(&wanted, &found, sizeof(found)) == 0;
    return same ? NULL : "the sorted keys are not those from before";
}

int main(int argc, char **argv) {
    struct quicksort sort = {.keys = 512 << 10, .leaf = 1024, .bubble = 0};
    const struct bench_option options[] = {{"--bubble", &sort.bubble, 0, 1},
                                           {"--keys", &sort.keys, 1, 1 << 30},
                                           {"--leaf", &sort.leaf, 1, 1 << 20}};
    dsm_begin(argc, argv, options, sizeof(options) / sizeof(options[0]));
    int *keys = NULL;
    const double seconds = quicksort_run(&sort, &keys);
    char details[64];
    snprintf(details, sizeof(details), "keys=%ld leaf=%ld", sort.keys, sort.leaf);
    struct dsm_result result = {sort.bubble ? "qsort-bubble" : "qsort-quick", seconds, details, 0,
                                NULL};
    if (form_process == 0) {
        if (dsm_spoil) ++keys[sort.keys - 1];
        for (long at = 0; at < sort.keys; ++at) {
            result.digest += dsm_mix((uint64_t)at, (uint64_t)keys[at]);
        }
        result.wrong = verify(&sort, keys);
    }
    dsm_finish(&result);
}
