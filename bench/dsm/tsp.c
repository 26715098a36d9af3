// SPDX-License-Identifier: Apache-2.0
//
// TSP: branch and bound.  The bound of a partial tour is its length and half the sum of the two
// shortest edges of all cities to come, since a tour has two edges at each city; of the path's ends
// one edge is left.
#include "tsp.h"

#include <limits.h>

#include "tsp_exact.h"

static uint32_t visited_by(const struct tour *tour) {
    uint32_t visited = 0;
    for (int i = 0; i < tour->count; ++i) visited |= 1u << tour->path[i];
    return visited;
}

static int shortest_to_come(const struct tsp *tsp, int from, uint32_t visited) {
    int shortest = INT_MAX;
    for (int city = 0; city < tsp->cities; ++city) {
        const int distance = tsp->distance[from][city];
        if ((visited & 1u << city) == 0 && distance < shortest) shortest = distance;
    }
    return shortest;
}

static int bound_of(const struct tsp *tsp, const struct tour *tour) {
    const int first = tour->path[0], last = tour->path[tour->count - 1];
    if (tour->count == tsp->cities) return tour->length + tsp->distance[last][first];
    const uint32_t visited = visited_by(tour);
    int twice = tour->count == 1
                    ? tsp->least_two[first]
                    : shortest_to_come(tsp, first, visited) + shortest_to_come(tsp, last, visited);
    for (int city = 0; city < tsp->cities; ++city) {
        if ((visited & 1u << city) == 0) twice += tsp->least_two[city];
    }
    return tour->length + (twice + 1) / 2;
}

static void append(const struct tsp *tsp, struct tour *tour, int city) {
    tour->length += tsp->distance[tour->path[tour->count - 1]][city];
    tour->path[tour->count++] = (unsigned char)city;
}

size_t tsp_queue_bytes(const struct tsp *tsp) {
    long tours = 1;
    for (long i = 1; i < tsp->depth; ++i) tours *= tsp->cities - i;
    return sizeof(struct tour_queue) + (size_t)(tours + tsp->cities) * sizeof(struct tour);
}

static bool is_before(const struct tour *a, const struct tour *b) {
    return a->bound != b->bound ? a->bound < b->bound : a->count > b->count;
}

static void push(struct tour_queue *queue, const struct tour *tour) {
    if (queue->count == queue->room) form_abort("the queue of tours is full");
    long at = queue->count++;
    for (; at > 0 && is_before(tour, &queue->tours[(at - 1) / 2]); at = (at - 1) / 2) {
        queue->tours[at] = queue->tours[(at - 1) / 2];
    }
    queue->tours[at] = *tour;
}

static struct tour pop(struct tour_queue *queue) {
    const struct tour first = queue->tours[0];
    const struct tour last = queue->tours[--queue->count];
    long at = 0;
    for (long child; (child = 2 * at + 1) < queue->count; at = child) {
        if (child + 1 < queue->count && is_before(&queue->tours[child + 1], &queue->tours[child])) {
            ++child;
        }
        if (!is_before(&queue->tours[child], &last)) break;
        queue->tours[at] = queue->tours[child];
    }
    queue->tours[at] = last;
    return first;
}

// Cities that are not in the path, the nearest to its end first; returns how many.
static int cities_to_come(const struct tsp *tsp, const struct tour *tour, int *cities) {
    const uint32_t visited = visited_by(tour);
    const int *const distance = tsp->distance[tour->path[tour->count - 1]];
    int count = 0;
    for (int city = 0; city < tsp->cities; ++city) {
        if ((visited & 1u << city) != 0) continue;
        int at = count++;
        for (; at > 0 && distance[cities[at - 1]] > distance[city]; --at) {
            cities[at] = cities[at - 1];
        }
        cities[at] = city;
    }
    return count;
}

void tsp_begin(const struct tsp *tsp, struct tour_queue *queue, struct tour *best) {
    struct tour tour = {.count = 1};
    tour.bound = bound_of(tsp, &tour);
    queue->count = 0;
    queue->room = (long)((tsp_queue_bytes(tsp) - sizeof(*queue)) / sizeof(struct tour));
    push(queue, &tour);
    while (tour.count < tsp->cities) {
        int cities[kCitiesMax];
        (void)cities_to_come(tsp, &tour, cities);
        append(tsp, &tour, cities[0]);
    }
    tour.length += tsp->distance[tour.path[tour.count - 1]][0];
    *best = tour;
}

bool tsp_take(const struct tsp *tsp, struct tour_queue *queue, int best_length, struct tour *tour) {
    while (queue->count > 0) {
        *tour = pop(queue);
        if (tour->bound >= best_length) {  // and so are all others
            queue->count = 0;
            return false;
        }
        if (tour->count >= tsp->depth) return true;
        int cities[kCitiesMax];
        const int count = cities_to_come(tsp, tour, cities);
        for (int i = 0; i < count; ++i) {
            struct tour longer = *tour;
            append(tsp, &longer, cities[i]);
            longer.bound = bound_of(tsp, &longer);
            if (longer.bound < best_length) push(queue, &longer);
        }
    }
    return false;
}

bool tsp_solve(const struct tsp *tsp, const struct tour *tour, struct tour *best) {
    if (tour->count == tsp->cities) {
        const int length = tour->length + tsp->distance[tour->path[tour->count - 1]][0];
        if (length >= best->length) return false;
        *best = *tour;
        best->length = length;
        return true;
    }
    int cities[kCitiesMax];
    const int count = cities_to_come(tsp, tour, cities);
    bool better = false;
    for (int i = 0; i < count; ++i) {
        struct tour longer = *tour;
        append(tsp, &longer, cities[i]);
        if (bound_of(tsp, &longer) < best->length) better |= tsp_solve(tsp, &longer, best);
    }
    return better;
}

static const char *verify(const struct tsp *tsp, const struct tour *best) {
    uint32_t visited = 0;
    int length = 0;
    for (long i = 0; i < tsp->cities; ++i) {
        visited |= 1u << best->path[i];
        length += tsp->distance[best->path[i]][best->path[(i + 1) % tsp->cities]];
    }
    if (best->count != tsp->cities || visited != (1u << tsp->cities) - 1) return "this is no tour";
    if (length != best->length) return "the tour is not as long as it is said to be";
    return length == tsp_exact_length(tsp) ? NULL : "the tour is not the shortest";
}

int main(int argc, char **argv) {
    struct tsp tsp = {.cities = 19, .depth = 4};
    long seed = 1;
    const struct bench_option options[] = {{"--cities", &tsp.cities, 3, kCitiesMax},
                                           {"--depth", &tsp.depth, 1, 6},
                                           {"--seed", &seed, 1, 1 << 30}};
    dsm_begin(argc, argv, options, sizeof(options) / sizeof(options[0]));
    dsm_require(tsp.depth <= tsp.cities, "a --depth of at most --cities");
    tsp_make(&tsp, (uint64_t)seed);
    struct tour best;
    const double seconds = tsp_run(&tsp, &best);
    char details[64];
    snprintf(details, sizeof(details), "cities=%ld length=%d", tsp.cities, best.length);
    struct dsm_result result = {"tsp", seconds, details, (uint64_t)best.length, NULL};
    if (form_process == 0) {
        if (dsm_spoil) ++best.length;
        result.wrong = verify(&tsp, &best);
    }
    dsm_finish(&result);
}
