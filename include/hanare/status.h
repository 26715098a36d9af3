/* SPDX-License-Identifier: Apache-2.0
 *
 * Status codes of the public API, grouped by what an error costs the caller:
 * one operation, a region, a peer, or the process.  The list is one X-macro, so
 * that C, C++, Python and the documentation cannot disagree.
 */
#ifndef HANARE_STATUS_H
#define HANARE_STATUS_H

#include <stddef.h>

#include "hanare/export.h"

/* XX(NAME, value, text) */
#define HANARE_STATUS_MAP(XX)                                      \
    XX(OK, 0, "success")                                           \
    /* the operation: it did not happen, nothing else changed */   \
    XX(INVALID_ARGUMENT, -1, "an argument is not allowed")         \
    XX(NO_MEMORY, -2, "the operating system refused memory")       \
    XX(BUSY, -3, "the object is in use")                           \
    XX(NOT_SUPPORTED, -4, "not supported on this system")          \
    XX(LIMIT, -5, "a limit of the pool would be exceeded")         \
    XX(NOT_FOUND, -6, "no such object")                            \
    XX(PERMISSION, -7, "not permitted")                            \
    XX(STORE_UNAVAILABLE, -8, "the store cannot be opened")        \
    XX(SYSTEM, -9, "a system call failed")                         \
    XX(BAD_KEY, -10, "the capability does not hold")               \
    XX(OUT_OF_RANGE, -11, "beyond the end of the region")          \
    XX(FULL, -12, "the queue has no room")                         \
    XX(EMPTY, -13, "the queue is empty")                           \
    /* the region: some of its blocks cannot be read or written */ \
    XX(STORE_FULL, -100, "the store has no room left")             \
    XX(STORE_IO, -101, "the store failed to read or write")        \
    XX(CORRUPT, -102, "a block does not match its checksum")       \
    /* the peer: what was asked of it may have happened, also in part */ \
    XX(PEER_LOST, -200, "the peer is gone")                        \
    XX(TIMEOUT, -201, "the deadline has passed")                   \
    /* the process: its handles are of no more use */              \
    XX(FORKED, -300, "the handle belongs to the parent process")   \
    XX(INTERNAL, -301, "internal error, please report it")

typedef enum hanare_status {
#define HANARE_STATUS_ENUM(name, value, text) HANARE_STATUS_##name = (value),
    HANARE_STATUS_MAP(HANARE_STATUS_ENUM)
#undef HANARE_STATUS_ENUM
} hanare_status;

#ifdef __cplusplus
extern "C" {
#endif

/* Name ("STORE_FULL") and text of a status; for an unknown value "UNKNOWN" and a text that says so.
 * Never NULL, static storage, any thread. */
HANARE_API const char *hanare_status_name(hanare_status status);
HANARE_API const char *hanare_status_text(hanare_status status);

/* Copies the text of the calling thread's last failed call into `buffer` (always terminated when
 * `bytes` > 0) and returns its full length without the terminator, 0 when no call failed yet. */
HANARE_API size_t hanare_last_error(char *buffer, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
