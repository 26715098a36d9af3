/* SPDX-License-Identifier: Apache-2.0 */
#include "far_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hanare/hanare.h"

/* Of what follows; held while the pool is opened and closed only. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hanare_pool *pool = NULL;
static bool is_open = false;
static bool is_below_run = false;

/* What far_memory_map has returned for any address, so that nothing else is given back. */
struct mapped {
    void *address;
    size_t bytes;
    struct mapped *next;
};
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapped *list = NULL; /* under list_lock */

static _Thread_local char error_text[512];

static void say(const char *format, va_list arguments) {
    char line[1024];
    int bytes = snprintf(line, sizeof line, "%s: ", program_invocation_short_name);
    if (bytes < 0 || (size_t)bytes >= sizeof line) bytes = 0;
    const int more = vsnprintf(line + bytes, sizeof line - (size_t)bytes, format, arguments);
    if (more > 0) bytes += more;
    if ((size_t)bytes > sizeof line - 2) bytes = (int)sizeof line - 2;
    line[bytes++] = '\n';
    /* Whoever cannot be told learns it by the status. */
    if (write(STDERR_FILENO, line, (size_t)bytes) < 0) errno = 0;
}

void far_memory_say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void far_memory_die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    _exit(FAR_MEMORY_FAILED);
}

const char *far_memory_error(void) { return error_text; }

static void note_error(void) {
    if (hanare_last_error(error_text, sizeof error_text) == 0) error_text[0] = '\0';
}

static hanare_status open_pool(uint32_t flags) {
    const hanare_pool_options options = {.struct_size = sizeof options, .flags = flags};
    return hanare_pool_open(&options, &pool);
}

/* `hanare run` has set these, and has its library in this process. */
bool far_memory_is_below_run(void) {
    const char *preloaded = getenv("LD_PRELOAD");
    return getenv("HANARE_RUN_PAGE") != NULL && preloaded != NULL &&
           strstr(preloaded, "libhanare-run") != NULL;
}

/* Where system calls cannot be served, for instance because the program has threads already, its
 * own accesses still can. */
static hanare_status open_locked(void) {
    if (is_open) return HANARE_STATUS_OK;
    is_below_run = far_memory_is_below_run();
    if (!is_below_run) {
        hanare_status status = open_pool(HANARE_POOL_SYSCALLS);
        if (status == HANARE_STATUS_BUSY || status == HANARE_STATUS_NOT_SUPPORTED) {
            status = open_pool(0);
        }
        if (status != HANARE_STATUS_OK) {
            note_error();
            return status;
        }
    }
    is_open = true;
    return HANARE_STATUS_OK;
}

static bool open_once(void) {
    pthread_mutex_lock(&lock);
    const hanare_status status = open_locked();
    pthread_mutex_unlock(&lock);
    return status == HANARE_STATUS_OK;
}

void far_memory_open(void) {
    if (!open_once()) far_memory_die("far memory cannot be had: %s", error_text);
}

static void *map_plain(void *address, size_t bytes) {
    const int flags =
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (address == NULL ? 0 : MAP_FIXED_NOREPLACE);
    void *const mapped = mmap(address, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (mapped != MAP_FAILED) return mapped;
    snprintf(error_text, sizeof error_text, "cannot map %zu bytes: %s", bytes, strerror(errno));
    return NULL;
}

static void *map_far(void *address, size_t bytes) {
    void *mapped = NULL;
    const hanare_alloc_options options = {.struct_size = sizeof options, .address = address};
    if (hanare_alloc(pool, bytes, &options, &mapped) == HANARE_STATUS_OK) return mapped;
    note_error();
    return NULL;
}

static int unmap(void *address, size_t bytes) {
    if (is_below_run) return munmap(address, bytes);
    if (hanare_free(pool, address) == HANARE_STATUS_OK) return 0;
    note_error();
    return -1;
}

void *far_memory_map(void *address, size_t bytes) {
    if (!open_once()) return NULL;
    if (address != NULL) return is_below_run ? map_plain(address, bytes) : map_far(address, bytes);
    struct mapped *const entry = malloc(sizeof *entry);
    void *const mapped = is_below_run ? map_plain(NULL, bytes) : map_far(NULL, bytes);
    if (entry == NULL || mapped == NULL) {
        if (mapped != NULL) unmap(mapped, bytes);
        if (entry == NULL) snprintf(error_text, sizeof error_text, "%s", strerror(ENOMEM));
        free(entry);
        return NULL;
    }
    *entry = (struct mapped){.address = mapped, .bytes = bytes};
    pthread_mutex_lock(&list_lock);
    entry->next = list;
    list = entry;
    pthread_mutex_unlock(&list_lock);
    return mapped;
}

static struct mapped *take_entry(const void *address) {
    pthread_mutex_lock(&list_lock);
    struct mapped **place = &list;
    while (*place != NULL && (*place)->address != address) place = &(*place)->next;
    struct mapped *const found = *place;
    if (found != NULL) *place = found->next;
    pthread_mutex_unlock(&list_lock);
    return found;
}

int far_memory_unmap(void *address) {
    struct mapped *const entry = take_entry(address);
    if (entry == NULL) {
        snprintf(error_text, sizeof error_text, "dlm_alloc has not returned that");
        return -1;
    }
    const size_t bytes = entry->bytes;
    free(entry);
    return unmap(address, bytes);
}

int far_memory_flush(void) {
    if (pool == NULL || hanare_flush(pool, NULL, 0) == HANARE_STATUS_OK) return 0;
    note_error();
    return -1;
}

void far_memory_close(void) {
    pthread_mutex_lock(&lock);
    if (pool != NULL && hanare_pool_close(pool) == HANARE_STATUS_OK) pool = NULL;
    is_open = pool != NULL;
    pthread_mutex_unlock(&lock);
    if (is_open || is_below_run) return;
    pthread_mutex_lock(&list_lock);
    while (list != NULL) {
        struct mapped *const next = list->next;
        free(list);
        list = next;
    }
    pthread_mutex_unlock(&list_lock);
}
