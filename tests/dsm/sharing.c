/* SPDX-License-Identifier: Apache-2.0
 *
 * What tasks do with memory that they share, for the report of HANARE_DSM_REPORT:
 *
 *     sharing false     each counts in a word of its own, all words in one block
 *     sharing true      all count in the same word, under a lock
 *     sharing apart     each counts in a block of its own
 *     sharing copied    as false, but the words are copied by the C library */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hanare/dsm.h"

enum { kRounds = 30, kBlockWords = 512 };

static hanare_dsm *dsm;
static uint64_t *shared;
static uint64_t own[64]; /* as the last round has left it */

static void must(hanare_status status) {
    char text[300];
    if (status == HANARE_STATUS_OK) return;
    hanare_last_error(text, sizeof text);
    fprintf(stderr, "%s\n", text);
    exit(1);
}

__attribute__((noinline)) static void count(uint64_t *word) { *word += 1; /* counting */ }

__attribute__((noinline)) static void copy(uint64_t *words, size_t bytes) {
    memcpy(words, own, bytes); /* copying */
}

int main(int argc, char **argv) {
    const char *const how = argc > 1 ? argv[1] : "";
    uint32_t rank = 0;
    uint32_t size = 0;
    must(hanare_dsm_start(NULL, &dsm));
    must(hanare_dsm_rank(dsm, &rank));
    must(hanare_dsm_size(dsm, &size));
    if (rank == 0) {
        void *first = NULL;
        void *address = NULL;
        must(hanare_dsm_allocate(dsm, 100, &first));
        must(hanare_dsm_allocate(dsm, (size_t)size * 4096, &address));
        shared = address;
        must(hanare_dsm_distribute(dsm, &shared, sizeof shared));
    }
    must(hanare_dsm_barrier(dsm, 1));
    for (uint64_t round = 1; round <= kRounds; ++round) {
        if (strcmp(how, "true") == 0) {
            must(hanare_dsm_lock(dsm, 1));
            count(shared);
            must(hanare_dsm_unlock(dsm, 1));
        } else if (strcmp(how, "copied") == 0) {
            for (size_t i = 0; i < 64; ++i) own[i] = round;
            copy(shared + (size_t)rank * 64, (size_t)argc * 256);
        } else {
            count(shared + (strcmp(how, "apart") == 0 ? rank * kBlockWords : rank));
        }
        must(hanare_dsm_barrier(dsm, 2));
    }
    must(hanare_dsm_finish(dsm));
    return 0;
}
