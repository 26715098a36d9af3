// SPDX-License-Identifier: Apache-2.0
//
// What the Tmk forms of the programs share beside form.h.
#ifndef HANARE_BENCH_DSM_FORM_TMK_H
#define HANARE_BENCH_DSM_FORM_TMK_H

#include <stddef.h>

#include "hanare/compat/Tmk.h"

// Programs' barriers and locks are below, but for those of fields of many locks, from
// FORM_LOCKS_MANY on.
#define FORM_IDS 100
#define FORM_LOCKS_MANY 1000

// Collective: shared memory of zeros that process 0 allocates, at the same address in all
// processes. Never freed.
void *form_share(size_t bytes);

#endif
