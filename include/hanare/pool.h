/* SPDX-License-Identifier: Apache-2.0
 *
 * Pools and regions: memory larger than the local budget, used with plain loads and stores
 * (DLM: Midorikawa, Kurokawa, Himeno, 2009, sections 2.2 and 3.3).
 *
 * Conventions of the whole C API
 *   1. Every function that can fail returns hanare_status; hanare_last_error() has the text.
 *   2. Outputs come last and are written only on success.
 *   3. Option structs begin with struct_size; set it to sizeof the struct.  Zero means "default"
 *      for every other field.
 *   4. Any function may be called from any thread at any time, except that hanare_pool_close and
 *      hanare_free must not run while another thread uses what they end.
 *   5. Sizes and addresses are in bytes.
 *
 * Limits to know: a system call that is given far memory fails with EFAULT where it is absent, and
 * where it would write to memory that has not been written since it was fetched or flushed.  Open
 * the pool with HANARE_POOL_SYSCALLS, or pin the range first, with the access that the call needs
 * (hanare_pin).  A child of fork() does not inherit far memory: every call there returns FORKED,
 * and touching far memory ends the child with SIGBUS and one line of explanation.
 */
#ifndef HANARE_POOL_H
#define HANARE_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "hanare/export.h"
#include "hanare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A local byte budget plus a store.  Opaque. */
typedef struct hanare_pool hanare_pool;

typedef struct hanare_pool_options {
    size_t struct_size;
    /* Local memory for frames and tables: at least 16 blocks and a little.  Default: 80 % of the
     * cgroup limit or of MemAvailable, whichever is smaller. */
    uint64_t local_bytes;
    /* Where absent blocks live: "file:DIR[?size=SIZE]"; in DIR "%3F" stands for '?' and "%25" for
     * '%'.  Or "tcp://HOST[:PORT][?size=SIZE]", a memory server (`hanare server`).  With option
     * `secret_file` (HANARE_SECRET_FILE) the two recognise each other by its secret, and blocks are
     * sealed: the server can neither read nor change nor replay them.  Without, only a server on
     * this machine is spoken to.  With a size that much is reserved at once, and no more later.
     * Or several stores as one: "tier(A,B)", "mirror(A,B)", "parity(4+1;A,B,C,D,E)"
     * (docs/servers.md, "Several servers").
     * Default: a file in $TMPDIR, else /var/tmp. */
    const char *store;
    /* Block size of regions that do not name their own: a power of two from 4 KiB to 4 MiB.
     * Default 256 KiB; 128 KiB in pools below 16 MiB, 64 KiB below 4 MiB. */
    uint64_t block_bytes;
    /* "auto" (default), "sigbus-move", "sigbus-copy", "segv-remap", "thread" or
     * "shared". */
    const char *engine;
    /* Blocks fetched ahead of a stream at most; default 256, HANARE_READ_AHEAD_OFF for none.  How
     * many it takes, up to 64 MiB or a quarter of the budget, is measured while the program
     * runs. */
    uint32_t read_ahead_blocks;
    /* HANARE_POOL_* flags, or'ed. */
    uint32_t flags;
    /* Which block is evicted: "second_chance" (default) or "round_robin", the DLM paper's
     * scheme; exactly that with HANARE_READ_AHEAD_OFF. */
    const char *replacement;
    /* Whether the keeper thread works ahead of need (cleans and frees, and reads what faulting
     * threads cannot): "on" (default) or "off". */
    const char *background;
} hanare_pool_options;

#define HANARE_READ_AHEAD_OFF UINT32_MAX

/* Accept a store directory on tmpfs (its blocks then occupy memory after all). */
#define HANARE_POOL_ALLOW_TMPFS 0x1u
/* The program's system calls may be given memory of this pool, absent or not, without a pin.  They
 * are intercepted in the whole process from the first such pool on: other threads are stopped for
 * a moment by ptrace(2), if there are any.  Option `syscalls` does the same. */
#define HANARE_POOL_SYSCALLS 0x2u

/* Opens a pool.  `options` may be NULL.  Options left at zero come from HANARE_* variables, the
 * configuration file and the built-in defaults, in this order.
 * Errors: INVALID_ARGUMENT, LIMIT (budget below 16 blocks), STORE_UNAVAILABLE (missing, read-only,
 * on tmpfs; a memory server that cannot be used), STORE_FULL, NOT_SUPPORTED (no engine works here),
 * NO_MEMORY; of the secret's file NOT_FOUND, PERMISSION. */
HANARE_API hanare_status hanare_pool_open(const hanare_pool_options *options, hanare_pool **pool);

/* Ends the pool and every region of it; the handle is invalid afterwards.  BUSY, and nothing is
 * ended, while anything is pinned. */
HANARE_API hanare_status hanare_pool_close(hanare_pool *pool);

typedef struct hanare_alloc_options {
    size_t struct_size;
    /* A power of two from 4 KiB to 4 MiB; default: the pool's.  Engine segv-remap takes larger
     * ones, and says so, where the kernel allows too few mappings. */
    uint64_t block_bytes;
    /* Where the region has to begin, a multiple of its block size, where nothing is mapped; NULL
     * (default): anywhere. */
    void *address;
} hanare_alloc_options;

/* Reserves `bytes` of far memory, zero-filled, aligned to the block size; room for it in the store
 * is reserved as well.  `options` may be NULL.
 * Errors: INVALID_ARGUMENT (zero or absurd size, bad block size or address), LIMIT (budget below
 * 16 blocks of this size; vm.max_map_count), STORE_FULL, STORE_IO (a memory server is lost),
 * NO_MEMORY (address space; something is mapped at the address). */
HANARE_API hanare_status hanare_alloc(hanare_pool *pool, size_t bytes,
                                      const hanare_alloc_options *options, void **address);

/* Gives a region back.  `address` is what hanare_alloc returned.  BUSY while blocks are pinned.
 * The local memory that its blocks were in stays with the pool, for other regions (engines that
 * move pages).
 * A thread that is in a fault meanwhile gets SIGBUS with one line; one that touches the region
 * later gets SIGSEGV, or SIGBUS in the moment between. */
HANARE_API hanare_status hanare_free(hanare_pool *pool, void *address);

typedef enum hanare_advice {
    HANARE_ADVICE_NORMAL = 0,       /* find sequential streams by itself (default) */
    HANARE_ADVICE_SEQUENTIAL = 1,   /* read ahead from the first fault, drop behind */
    HANARE_ADVICE_RANDOM = 2,       /* never read ahead */
    HANARE_ADVICE_WILLNEED = 3,     /* start fetching the range now, return at once */
    HANARE_ADVICE_DONTNEED = 4,     /* write the range back if dirty and release its frames */
    HANARE_ADVICE_DISCARD = 5,      /* forget what the range holds: zeros from now on */
    HANARE_ADVICE_INT_ = 0x7fffffff /* not an advice: makes every int a value of the type */
} hanare_advice;

/* SEQUENTIAL, RANDOM and NORMAL hold for the whole region that contains the range, until changed;
 * the others act once on the blocks of [address, address + bytes).  DONTNEED keeps the data (unlike
 * madvise) and skips pinned blocks.  DISCARD is for what will be overwritten as a whole: its blocks
 * are neither written back nor read again.  It concerns the blocks that lie wholly in the range
 * (the last block of a region ends with it) and are not pinned; the others keep their data, and so
 * do those that the kernel holds at the moment: BUSY or NO_MEMORY. */
HANARE_API hanare_status hanare_advise(hanare_pool *pool, const void *address, size_t bytes,
                                       hanare_advice advice);

/* Starts fetching the blocks of a range and returns at once; the same as WILLNEED. */
HANARE_API hanare_status hanare_prefetch(hanare_pool *pool, const void *address, size_t bytes);

typedef enum hanare_access {
    HANARE_ACCESS_READ = 1,
    HANARE_ACCESS_WRITE = 2,
    HANARE_ACCESS_INT_ = 0x7fffffff /* not an access: makes every int a value of the type */
} hanare_access;

/* Makes every block of the range resident with the given right and keeps it so until hanare_unpin
 * of the same range; pins nest.  Pinned memory may be handed to system calls and devices.
 * Errors: LIMIT when less than 16 unpinned frames would remain, STORE_IO, CORRUPT. */
HANARE_API hanare_status hanare_pin(hanare_pool *pool, const void *address, size_t bytes,
                                    hanare_access access);
HANARE_API hanare_status hanare_unpin(hanare_pool *pool, const void *address, size_t bytes);

/* Writes dirty blocks of the range to the store and returns when they are there; address NULL and
 * bytes 0 mean the whole pool.  The blocks stay in local memory.  BUSY, after everything else was
 * written, when dirty blocks are pinned.  Errors: STORE_IO, STORE_FULL. */
HANARE_API hanare_status hanare_flush(hanare_pool *pool, const void *address, size_t bytes);

/* Sharing a region with other processes, which map it for reading (engine "shared").
 *
 * The descriptor that hanare_region_export makes can be sent to another process (SCM_RIGHTS, or
 * inherited); there hanare_view_open maps it.  It does not allow to write, though one process of a
 * user can always get at another's memory.  What a view shows:
 *  - A block that is mapped in the exporting process, as it is now: the same memory, with the rules
 *    of shared memory between threads for whoever reads while the other writes.  Blocks that are
 *    pinned there (hanare_pin) stay so until they are unpinned.
 *  - Everything else (blocks that have left local memory, were never touched, or whose region was
 *    freed) is a hole: an access raises SIGBUS with one line, a system call fails with EFAULT.
 *    Never zeros, and never another block.  The same address can be read once the exporting process
 *    has the block in local memory again.
 * A view outlives the region, the pool and the exporting process; what was in local memory when the
 * exporting process ended stays readable.  Children of fork() do not get views.  To map the
 * descriptor by mmap(2) instead, or to read it by read(2), is a mistake: holes are zeros there.
 *
 * hanare_region_export: `address` is what hanare_alloc returned; the descriptor is the caller's to
 * close, and closed on exec.  Errors: NOT_FOUND, NOT_SUPPORTED (another engine), SYSTEM. */
HANARE_API hanare_status hanare_region_export(hanare_pool *pool, const void *address,
                                              int *descriptor);
/* Needs no pool, and userfaultfd; `bytes` is the region's size in whole blocks.  The descriptor may
 * be closed afterwards.  Errors: INVALID_ARGUMENT (not such a descriptor), NOT_SUPPORTED (no
 * userfaultfd for shared memory), NO_MEMORY. */
HANARE_API hanare_status hanare_view_open(int descriptor, const void **address, size_t *bytes);
/* Unmaps a view; no thread may use it any more.  NOT_FOUND unless hanare_view_open gave it. */
HANARE_API hanare_status hanare_view_close(const void *address);

/* System calls of the whole process are intercepted from now on, as by the first pool with
 * HANARE_POOL_SYSCALLS.  Once they are, it does nothing.  Errors: NOT_SUPPORTED (the system lets no
 * code be written, or no threads be stopped; below `hanare run`), TIMEOUT (a thread does not stop
 * within a second), LIMIT (more than 1024 threads), NO_MEMORY. */
HANARE_API hanare_status hanare_catch_system_calls(void);

/* Version of the library at run time, "major.minor.patch"; static storage. */
HANARE_API const char *hanare_version(void);

#ifdef __cplusplus
}
#endif

#endif
