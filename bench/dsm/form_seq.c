// SPDX-License-Identifier: Apache-2.0
//
// The sequential form: one process, and nobody to wait for.
#include <stdio.h>
#include <stdlib.h>

#include "form.h"

const char form_name[] = "seq";
const char *const form_count_names[] = {NULL};
const unsigned form_count_total = 0;
unsigned form_process = 0;
unsigned form_processes = 1;

void form_begin(int argc, char **argv) {
    (void)argc;
    (void)argv;
}

void form_count(uint64_t counts[FORM_COUNTS_MAX]) { (void)counts; }

void form_barrier(void) {}

uint64_t form_sum(uint64_t own) { return own; }

void form_end(int status) { exit(status); }

void form_abort(const char *what) {
    fprintf(stderr, "%s\n", what);
    exit(1);
}
