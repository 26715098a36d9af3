/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of hanare/compat/dlm.h. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "far_memory.h"
#include "hanare/compat/dlm.h"

/* Tells dlm_start.c that this is here. */
extern const char hanare_dlm_functions;
const char hanare_dlm_functions = 1;

enum { kDimensionsMax = 32 };
int __dlm_dim[kDimensionsMax];
int __dlm_div[kDimensionsMax];
int dlm_nproc = 1;

static void *fail(const char *reason, size_t bytes) {
    far_memory_say("no far memory for %zu bytes: %s", bytes, reason);
    errno = ENOMEM;
    return NULL;
}

void *dlm_alloc(size_t bytes) {
    if (bytes == 0) return fail("an array has one byte at least", bytes);
    void *const address = far_memory_map(NULL, bytes);
    return address != NULL ? address : fail(far_memory_error(), bytes);
}

void dlm_free(void *address) {
    if (address == NULL || far_memory_unmap(address) == 0) return;
    far_memory_die("dlm_free(%p): %s", address, far_memory_error());
}

int dlm_init(int argc, char **argv) {
    (void)argc, (void)argv;
    far_memory_open();
    return 0;
}

int dlm_flush(void) {
    if (far_memory_flush() == 0) return 0;
    far_memory_say("dlm_flush: %s", far_memory_error());
    errno = EIO;
    return -1;
}

void dlm_exit(void) { far_memory_close(); }

static bool multiply(size_t *product, int factor) {
    return factor > 0 && !__builtin_mul_overflow(*product, (size_t)factor, product);
}

void *dlm_mapalloc(const int *dimensions, const int *division, size_t element_bytes, int kind,
                   int processes) {
    (void)division, (void)kind, (void)processes;
    size_t bytes = element_bytes;
    for (int i = 0; i < kDimensionsMax && dimensions[i] != -1; ++i) {
        if (!multiply(&bytes, dimensions[i])) return fail("a dimension is not possible", bytes);
    }
    return dlm_alloc(bytes);
}
