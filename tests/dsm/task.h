/* SPDX-License-Identifier: Apache-2.0
 *
 * What the programs of these tests have in common: the task they are, and how one says what is
 * wrong.  `begin` and `get_shared` are called by all tasks. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "hanare/dsm.h"

static hanare_dsm *dsm;
static uint32_t rank;
static uint32_t size;
static uint64_t *shared;

static void wrong(const char *what, hanare_status status) {
    char text[300];
    hanare_last_error(text, sizeof text);
    fprintf(stderr, "task %u: %s: %s (%s)\n", rank, what, hanare_status_name(status), text);
    exit(1);
}

static inline void expect(hanare_status wanted, hanare_status is, const char *what) {
    if (wanted != is) wrong(what, is);
}

static void must(hanare_status status, const char *what) {
    if (status != HANARE_STATUS_OK) wrong(what, status);
}

static void begin(void) {
    must(hanare_dsm_start(NULL, &dsm), "start");
    must(hanare_dsm_rank(dsm, &rank), "rank");
    must(hanare_dsm_size(dsm, &size), "size");
}

/* `shared` in every task, zeroes. */
static void get_shared(size_t bytes) {
    if (rank == 0) {
        void *address = NULL;
        must(hanare_dsm_allocate(dsm, bytes, &address), "allocate");
        shared = address;
        must(hanare_dsm_distribute(dsm, &shared, sizeof shared), "distribute");
    }
    must(hanare_dsm_barrier(dsm, 0), "barrier");
}
