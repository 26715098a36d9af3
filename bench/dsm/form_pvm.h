// SPDX-License-Identifier: Apache-2.0
//
// What the PVM forms of the programs share beside form.h: tasks by process number.  Message tags
// below FORM_TAGS are the programs'.
#ifndef HANARE_BENCH_DSM_FORM_PVM_H
#define HANARE_BENCH_DSM_FORM_PVM_H

#include <pvm3.h>
#include <stddef.h>

#include "form.h"

#define FORM_TAGS 100

int form_task(unsigned process);

// Sends what is packed, `bytes` of it.
void form_send(unsigned process, int tag, size_t bytes);

// Ends the job if PVM says that something went wrong; returns the result.
int form_pvm(int result);

#endif
