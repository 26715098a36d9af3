// SPDX-License-Identifier: Apache-2.0
//
// The form for PVM (PVM: Parallel Virtual Machine, 1994): the program that is started by hand is
// process 0, and starts the others, as many as `-n N` behind `--` says.  Tasks talk to each other
// directly and not through the daemons.  Process 0 collects and answers in sums and barriers.
#include "form_pvm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kProcessesMax = 256, kStartTag = FORM_TAGS, kSumTag, kSumAnswerTag };

const char form_name[] = "pvm";
const char *const form_count_names[] = {"messages", "bytes"};
const unsigned form_count_total = 2;
static uint64_t messages, bytes_sent;
unsigned form_process;
unsigned form_processes = 1;

static int tasks[kProcessesMax];

int form_task(unsigned process) { return tasks[process]; }

int form_pvm(int result) {
    if (result < 0) {
        char line[32];
        snprintf(line, sizeof(line), "PVM error %d", result);
        form_abort(line);
    }
    return result;
}

void form_count(uint64_t counts[FORM_COUNTS_MAX]) {
    counts[0] = messages;
    counts[1] = bytes_sent;
}

void form_send(unsigned process, int tag, size_t bytes) {
    ++messages;
    bytes_sent += bytes;
    form_pvm(pvm_send(tasks[process], tag));
}

static unsigned wanted_processes(int argc, char **argv) {
    int at = 0;
    while (at < argc && strcmp(argv[at], "--") != 0) ++at;
    if (at == argc) return 1;
    const int count = at + 3 == argc && strcmp(argv[at + 1], "-n") == 0 ? atoi(argv[at + 2]) : 0;
    if (count >= 1 && count <= kProcessesMax) return (unsigned)count;
    fprintf(stderr, "%s: what follows -- is -n N, N from 1 to %d\n", argv[0], kProcessesMax);
    exit(2);
}

static void start_others(char **argv) {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length < 0) form_abort("/proc/self/exe cannot be read");
    path[length] = '\0';
    const int others = (int)form_processes - 1;
    if (pvm_spawn(path, argv + 1, PvmTaskDefault, NULL, others, tasks + 1) != others) {
        form_abort("PVM has not started all processes");
    }
    for (unsigned process = 1; process < form_processes; ++process) {
        pvm_initsend(PvmDataRaw);
        form_pvm(pvm_pkuint(&process, 1, 1));
        form_pvm(pvm_pkint(tasks, (int)form_processes, 1));
        form_pvm(pvm_send(tasks[process], kStartTag));
    }
}

void form_begin(int argc, char **argv) {
    form_processes = wanted_processes(argc, argv);
    tasks[0] = form_pvm(pvm_mytid());
    pvm_setopt(PvmRoute, PvmRouteDirect);
    const int parent = pvm_parent();
    if (parent == PvmNoParent || parent == PvmParentNotSet) {
        if (form_processes > 1) start_others(argv);
        return;
    }
    form_pvm(pvm_recv(parent, kStartTag));
    form_pvm(pvm_upkuint(&form_process, 1, 1));
    form_pvm(pvm_upkint(tasks, (int)form_processes, 1));
}

static void send_number(unsigned process, int tag, uint64_t number) {
    unsigned halves[2] = {(unsigned)number, (unsigned)(number >> 32)};
    pvm_initsend(PvmDataRaw);
    form_pvm(pvm_pkuint(halves, 2, 1));
    form_pvm(pvm_send(tasks[process], tag));
}

static uint64_t receive_number(unsigned process, int tag) {
    unsigned halves[2];
    form_pvm(pvm_recv(tasks[process], tag));
    form_pvm(pvm_upkuint(halves, 2, 1));
    return halves[0] | (uint64_t)halves[1] << 32;
}

uint64_t form_sum(uint64_t own) {
    if (form_process != 0) {
        send_number(0, kSumTag, own);
        return receive_number(0, kSumAnswerTag);
    }
    uint64_t all = own;
    for (unsigned other = 1; other < form_processes; ++other) all += receive_number(other, kSumTag);
    for (unsigned other = 1; other < form_processes; ++other) {
        send_number(other, kSumAnswerTag, all);
    }
    return all;
}

void form_barrier(void) { (void)form_sum(0); }

void form_end(int status) {
    form_barrier();
    pvm_exit();
    exit(form_process == 0 ? status : 0);
}

void form_abort(const char *what) {
    fprintf(stderr, "process %u: %s\n", form_process, what);
    for (unsigned other = 0; other < form_processes; ++other) {
        if (other != form_process && tasks[other] > 0) pvm_kill(tasks[other]);
    }
    pvm_exit();
    exit(1);
}
