/* SPDX-License-Identifier: Apache-2.0
 *
 * Stencil computations on grids that may be larger than memory (Midorikawa, Tan: An Evaluation of
 * Flash-based Temporal Blocking Algorithms for Large-scale Stencil Computations, 2014).  A grid
 * lies in memory if it fits in its budget, else in a file that is read and written once for many
 * time steps while kernels run on what is in memory; method and cost: docs/stencil.md.
 *
 * What is computed is given by kernels: functions of the program's own that update a box of cells
 * of one plane.  They are called by several threads at once, each for other cells, and in an order
 * of planes and steps that is not that of a plain program; what they read is the same.
 *
 * Coordinates are written slowest first: (z, y, x) in three dimensions, (y, x) in two.  "Planes"
 * are the planes z of a grid with three dimensions and the rows y of one with two.
 *
 * Conventions as in pool.h.  A grid is used by one thread at a time.  A child of fork() has none of
 * its parent's grids: FORKED.
 */
#ifndef HANARE_STENCIL_H
#define HANARE_STENCIL_H

#include <stddef.h>
#include <stdint.h>

#include "hanare/export.h"
#include "hanare/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- grids */

/* Fields on one grid of cells, at one time step.  Opaque. */
typedef struct hanare_grid hanare_grid;

typedef enum hanare_element {
    HANARE_ELEMENT_DOUBLE = 0,
    HANARE_ELEMENT_FLOAT = 1,
    HANARE_ELEMENT_INT_ = 0x7fffffff /* none: makes every int a value of the type */
} hanare_element;

/* What lies beyond the first and the last cell of an axis. */
typedef enum hanare_boundary {
    /* Nothing: the outermost `radius` cells on both sides are never updated. */
    HANARE_BOUNDARY_FIXED = 0,
    /* The mirror image, u[-1] = u[0], u[-2] = u[1]. */
    HANARE_BOUNDARY_REFLECT = 1,
    /* The other end.  Along the slowest axis this takes twice the memory for each plane, since the
     * grid is passed through from both ends at once. */
    HANARE_BOUNDARY_PERIODIC = 2,
    HANARE_BOUNDARY_INT_ = 0x7fffffff
} hanare_boundary;

typedef enum hanare_field_kind {
    /* One time level. */
    HANARE_FIELD_STATE = 0,
    /* Two: where a kernel writes, it finds what the field was before the last write, as
     * second-order schemes in time need it (u_new = 2 u - u_old + ...). */
    HANARE_FIELD_TWO_LEVELS = 1,
    /* Coefficients: read, never written by kernels. */
    HANARE_FIELD_CONSTANT = 2,
    HANARE_FIELD_INT_ = 0x7fffffff
} hanare_field_kind;

typedef enum hanare_place {
    HANARE_PLACE_AUTO = 0,   /* memory if the grid fits in the budget and has no path, else file */
    HANARE_PLACE_MEMORY = 1, /* LIMIT where it does not fit */
    HANARE_PLACE_FILE = 2,
    HANARE_PLACE_INT_ = 0x7fffffff
} hanare_place;

typedef enum hanare_durability {
    /* The file holds each field once and is changed in place: what a crash or an error of the
     * device leaves of a run cannot be used, and says so when it is opened. */
    HANARE_DURABILITY_IN_PLACE = 0,
    /* The file holds states twice: whatever happens, it can be opened at the last pass that was
     * finished (hanare_grid_info.step).  Twice the room, the same traffic. */
    HANARE_DURABILITY_PING_PONG = 1,
    HANARE_DURABILITY_INT_ = 0x7fffffff
} hanare_durability;

typedef enum hanare_method {
    /* Time-skewed streaming: one read and one write of the fields in a pass of many steps, no cell
     * computed twice; wavefronts of diamonds in cache. */
    HANARE_METHOD_STREAM = 0,
    /* The paper's (sections 2.2 and 3.2), for comparison: slabs of planes with halos of which the
     * outer parts are computed again and again; two buffers for the domain, two for a slab.  States
     * and constants; no reductions, no snapshots.  A crash within a run leaves what cannot be used
     * (CORRUPT), whatever the file was made for: durability PING_PONG goes with STREAM alone. */
    HANARE_METHOD_TRAPEZOID = 1,
    /* The same with spatial blocks within a slab for the cache. */
    HANARE_METHOD_TRAPEZOID_TWO_LEVEL = 2,
    HANARE_METHOD_INT_ = 0x7fffffff
} hanare_method;

/* How planes come from the file and go there (paper, section 4). */
typedef enum hanare_grid_io {
    HANARE_GRID_IO_AUTO = 0, /* io_uring, else aio */
    HANARE_GRID_IO_URING = 1,
    HANARE_GRID_IO_AIO = 2,  /* io_submit(2), O_DIRECT */
    HANARE_GRID_IO_MMAP = 3, /* copies to and from a shared mapping, by way of the page cache */
    /* There is no file: anonymous memory, which the system may swap, and mlock'ed windows. */
    HANARE_GRID_IO_SWAP = 4,
    HANARE_GRID_IO_INT_ = 0x7fffffff
} hanare_grid_io;

/* The layout of this struct is final: arrays of it have no struct_size. */
typedef struct hanare_field {
    const char *name; /* 1 to 31 bytes; of no meaning here, kept in the file */
    hanare_field_kind kind;
} hanare_field;

typedef struct hanare_grid_options {
    size_t struct_size;
    uint32_t dimensions;         /* 2 or 3 */
    hanare_element element;      /* of all fields */
    uint64_t shape[3];           /* cells, slowest first; 2-D: the first two */
    hanare_boundary boundary[3]; /* the same order */
    uint32_t radius;             /* 0 to 4 (0 means 1): the largest that stencils will have */
    uint32_t field_count;        /* up to 64; 0: one state named "u" */
    const hanare_field *fields;
    /* Memory for everything that the grid needs, at least one window.  Default: 80 % of the cgroup
     * limit or of MemAvailable, whichever is smaller (option `local`). */
    uint64_t memory_bytes;
    hanare_place place;
    /* A file that does not exist yet and stays when the grid is closed.  NULL: a file without a
     * name, which vanishes with the grid. */
    const char *path;
    /* Where that is; default: that of option `store`, which is $TMPDIR, else /var/tmp. */
    const char *directory;
    hanare_durability durability;
    hanare_method method;
    hanare_grid_io io;
    uint32_t flags; /* HANARE_GRID_*, or'ed */
} hanare_grid_options;

/* Accept a file on tmpfs (which then is in memory after all). */
#define HANARE_GRID_ALLOW_TMPFS 0x1u

/* Makes a grid whose cells are all zero, at step 0.  All room in the file is allocated now.
 * Errors: INVALID_ARGUMENT (names what; a shape too small for the radius: 2 radius + 1 cells along
 * fixed axes, `radius` along the others), LIMIT (memory_bytes too small for one window: says how
 * much is needed; RLIMIT_FSIZE is STORE_FULL), STORE_FULL (says how much room is missing),
 * STORE_UNAVAILABLE (directory missing, not writable, tmpfs), BUSY (path exists), NO_MEMORY,
 * NOT_SUPPORTED (no io_uring where it is asked for). */
HANARE_API hanare_status hanare_grid_create(const hanare_grid_options *options, hanare_grid **grid);

typedef struct hanare_grid_open_options {
    size_t struct_size;
    uint64_t memory_bytes;
    hanare_method method;
    hanare_grid_io io;
    uint32_t flags; /* HANARE_GRID_READ_ONLY */
} hanare_grid_open_options;

/* The file is neither changed nor locked against other readers: no runs, no writes. */
#define HANARE_GRID_READ_ONLY 0x2u

/* Opens a grid that lies in a file, at the step where its last finished pass has left it (after a
 * crash only with HANARE_DURABILITY_PING_PONG).  `options` may be NULL.
 * Errors: NOT_FOUND, PERMISSION, BUSY (another process has it), CORRUPT (not a grid, cut off, or
 * left within a run in place), NOT_SUPPORTED (of a newer version), LIMIT, NO_MEMORY. */
HANARE_API hanare_status hanare_grid_open(const char *path, const hanare_grid_open_options *options,
                                          hanare_grid **grid);

/* Ends the grid.  A file with a name holds all of it then, in case of an error (STORE_IO) not; the
 * handle is invalid in any case. */
HANARE_API hanare_status hanare_grid_close(hanare_grid *grid);

typedef struct hanare_grid_info {
    size_t struct_size;
    uint32_t dimensions;
    hanare_element element;
    uint64_t shape[3];
    hanare_boundary boundary[3];
    uint32_t radius;
    uint32_t field_count;
    hanare_durability durability;
    hanare_place place;    /* MEMORY or FILE */
    uint64_t step;         /* steps that were computed since the grid was made */
    uint64_t memory_bytes; /* the budget */
    uint64_t file_bytes;   /* 0 in memory */
    uint64_t domain_bytes; /* cells times size of an element, one level of each field */
} hanare_grid_info;

/* Set info->struct_size before the call. */
HANARE_API hanare_status hanare_grid_describe(const hanare_grid *grid, hanare_grid_info *info);

/* Number, name and kind of a field; the name is valid as long as the grid.  NOT_FOUND. */
HANARE_API hanare_status hanare_grid_field_at(const hanare_grid *grid, uint32_t field,
                                              const char **name, hanare_field_kind *kind);
HANARE_API hanare_status hanare_grid_find_field(const hanare_grid *grid, const char *name,
                                                uint32_t *field);

/* Copies a box of cells between the grid and `cells`, which is packed (x fastest, no gaps) and of
 * the grid's element type.  `offset` and `extent` have as many entries as the grid has dimensions;
 * both NULL: all cells.  `level` is 0, or 1 for the level before of a field that has two.  Whole
 * planes are the fast way.  Writing all levels of all states may be left to zeros.
 * Errors: INVALID_ARGUMENT, OUT_OF_RANGE, STORE_IO, PERMISSION (read-only), CORRUPT (a run in place
 * has failed). */
HANARE_API hanare_status hanare_grid_write(hanare_grid *grid, uint32_t field, uint32_t level,
                                           const uint64_t *offset, const uint64_t *extent,
                                           const void *cells);
HANARE_API hanare_status hanare_grid_read(hanare_grid *grid, uint32_t field, uint32_t level,
                                          const uint64_t *offset, const uint64_t *extent,
                                          void *cells);

/* Called once for each plane, in order, by the calling thread: puts the plane's cells to `cells`
 * (y times x of them; in 2-D x), which are not set before.  Nonzero ends it: INVALID_ARGUMENT. */
typedef int (*hanare_grid_fill_function)(uint64_t plane, void *cells, void *user);
HANARE_API hanare_status hanare_grid_fill(hanare_grid *grid, uint32_t field, uint32_t level,
                                          hanare_grid_fill_function function, void *user);

/* ---- stencils */

/* What a kernel is called for: `rows` times `columns` cells of one plane.  The cell at row i and
 * column j of the box is pointer[i * row_stride + j] for each of the pointers, which point to
 * elements of the grid's type; those of `in` may be read up to their radius beyond the box in both
 * directions.
 *   `in`: for each field that the stage reads, in this order and with its radius r, 2 r + 1
 *   pointers, to the planes -r to r next to the box's own, which is the one in the middle.
 *   `out`: for each field that the stage writes, in this order.  All cells of the box have to be
 *   written.  Unless the stage reads the field at a radius > 0, out may be the same memory as in;
 *   else what is there before is that of kind TWO_LEVELS.
 * In two dimensions planes are rows: `rows` is 1 and the pointers of `in` are for y - r to y + r.
 * Rows begin at any alignment that the element's type has; where boxes begin at the first cell of a
 * row, in three dimensions, that is aligned to 64 bytes.  The layout of this struct is final. */
typedef struct hanare_stencil_box {
    const void *const *in;
    void *const *out;
    int64_t row_stride; /* elements; the same for all */
    int64_t rows;
    int64_t columns;
    int64_t step; /* that is computed: the grid's step before it */
    int64_t z;    /* of the first cell; 0 in two dimensions */
    int64_t y;
    int64_t x;
    /* One value for each of the stage's reductions, to add to, or to take maximum or minimum with;
     * NULL where there are none. */
    double *reduction;
    void *user;
} hanare_stencil_box;

/* Must be thread-safe, must not call functions of this library, throw or jump out. */
typedef void (*hanare_stencil_kernel)(const hanare_stencil_box *box);

/* The layouts of these are final. */
typedef struct hanare_stencil_read {
    uint32_t field;
    uint32_t radius; /* along all axes; 0: only the cell itself */
} hanare_stencil_read;

typedef enum hanare_reduction {
    HANARE_REDUCTION_SUM = 0,
    HANARE_REDUCTION_MAX = 1,
    HANARE_REDUCTION_MIN = 2,
    HANARE_REDUCTION_INT_ = 0x7fffffff
} hanare_reduction;

/* A part of a step: sees all that the stages before it have written. */
typedef struct hanare_stencil_stage {
    hanare_stencil_kernel kernel;
    void *user;
    const hanare_stencil_read *reads; /* each field at most once; up to 64 */
    uint32_t read_count;
    uint32_t write_count;
    const uint32_t *writes; /* numbers of fields, not of constants; up to 64 */
    /* Values per step, each over all cells that are updated: up to 8.  In three dimensions the
     * kernel is called for single rows then, and sums are formed in one order, whatever else is
     * chosen: cells of a row (by the kernel), rows of a plane, planes.  In two dimensions the order
     * depends on the sizes of tiles, not on threads. */
    const hanare_reduction *reductions;
    uint32_t reduction_count;
    uint32_t reserved; /* 0 */
} hanare_stencil_stage;

/* A point to whose cell series[step - first_step] is added after a stage, at each step for which
 * there is one.  Not within the frame of fixed cells. */
typedef struct hanare_stencil_source {
    uint32_t stage;
    uint32_t field; /* one that the stage writes */
    uint64_t position[3];
    uint64_t first_step;
    const double *series;
    uint64_t series_count;
} hanare_stencil_source;

typedef struct hanare_stencil {
    size_t struct_size;
    const hanare_stencil_stage *stages; /* 1 to 16 */
    const hanare_stencil_source *sources;
    uint32_t stage_count;
    uint32_t source_count;
} hanare_stencil;

/* ---- runs */

typedef struct hanare_grid_progress {
    size_t struct_size;
    uint64_t steps;      /* that the run is to compute */
    uint64_t steps_done; /* of these, finished for all cells: those of whole passes */
    double fraction;     /* of all work */
    double elapsed_s;
    double remaining_s; /* estimated */
    double steps_per_s; /* so far, parts of steps counted */
    double io_wait_s;   /* that threads have waited for the file, as part of elapsed_s */
} hanare_grid_progress;

/* Called by one of the threads that compute, some times a second at most.  Nonzero: the run ends
 * with the passes that have been begun, with status OK; hanare_grid_info.step says where. */
typedef int (*hanare_grid_progress_function)(const hanare_grid_progress *progress, void *user);

/* A plane of a snapshot, packed, for the time of the call; by one thread at a time.  The planes of
 * a step come in order, except where the slowest axis is periodic; those of several steps mix.
 * Nonzero ends the run as a failed write does. */
typedef int (*hanare_grid_snapshot_function)(uint64_t step, uint64_t plane, const void *cells,
                                             void *user);

typedef struct hanare_grid_run_options {
    size_t struct_size;
    uint32_t threads; /* default: the processors that this process may use */
    uint32_t flags;   /* HANARE_RUN_*, or'ed */
    /* Chosen by a model from memory, measured bandwidth and speed of the kernels unless set. */
    uint32_t steps_per_pass;
    uint32_t window_planes; /* of a window's advance; rounded up */
    uint32_t tile_height;   /* half the height and half the width of a diamond, in cells */
    /* Snapshots: `snapshot_field` after each step whose number (hanare_grid_info.step) is a
     * multiple of `snapshot_every`; 0: none.  To a new file: .npy (one array: snapshot, z, y, x) or
     * .h5, .hdf5 (the same as dataset "snapshots", and "steps"), or to the function, or both.  What
     * a run that ends early has not reached stays zero in the file. */
    uint32_t snapshot_field;
    uint64_t snapshot_every;
    const char *snapshot_path;
    hanare_grid_snapshot_function snapshot;
    void *snapshot_user;
    hanare_grid_progress_function progress;
    void *progress_user;
    /* Room for (steps x all stages' reductions) values: those of a step one after the other, stages
     * in order.  Set for the steps that were finished; NULL: they are not kept. */
    double *reductions;
} hanare_grid_run_options;

/* Each thread stays on one processor. */
#define HANARE_RUN_PIN_THREADS 0x1u
/* Nothing is measured: sizes come from the model with bandwidths of a fast disk. */
#define HANARE_RUN_NO_MEASUREMENT 0x2u

/* Computes `steps` steps.  `options` may be NULL.  The threads that it starts have all signals
 * blocked.  Errors before any work: INVALID_ARGUMENT (names what), LIMIT (memory too
 * small for one window of this stencil), STORE_FULL, STORE_UNAVAILABLE (snapshots), BUSY (snapshot
 * path exists), NO_MEMORY, PERMISSION (read-only), CORRUPT (a run in place has failed before),
 * NOT_SUPPORTED (the method cannot this). Within it: STORE_IO, STORE_FULL; the grid is then at its
 * last finished pass if it is ping-pong, and unusable otherwise. */
HANARE_API hanare_status hanare_grid_run(hanare_grid *grid, uint64_t steps,
                                         const hanare_stencil *stencil,
                                         const hanare_grid_run_options *options);

/* What a run would be, or the last one was. */
typedef struct hanare_grid_statistics {
    size_t struct_size;
    uint64_t steps;
    uint64_t passes;
    uint32_t steps_per_pass;
    uint32_t window_planes;
    uint32_t tile_height;
    uint32_t threads;
    uint64_t window_bytes;  /* memory of rings and buffers */
    uint64_t read_bytes;    /* from the file, without snapshots */
    uint64_t written_bytes; /* to the file, the same */
    uint64_t minimal_bytes; /* fields read and written once in each pass, without padding */
    uint64_t snapshot_bytes;
    uint64_t cell_updates;      /* by kernels: cells x stages */
    uint64_t redundant_updates; /* of these, computed again (trapezoid) */
    double elapsed_s;
    double io_wait_s; /* of elapsed_s: nobody computed because of the file */
    double steps_per_s;
    double read_bytes_per_s; /* bandwidths and speed that the model was given; 0: not measured */
    double write_bytes_per_s;
    double cell_updates_per_s;
} hanare_grid_statistics;

/* Set statistics->struct_size before the call.  hanare_grid_plan measures if need be and computes
 * nothing; its errors are those of hanare_grid_run before any work. */
HANARE_API hanare_status hanare_grid_plan(hanare_grid *grid, uint64_t steps,
                                          const hanare_stencil *stencil,
                                          const hanare_grid_run_options *options,
                                          hanare_grid_statistics *statistics);
HANARE_API hanare_status hanare_grid_statistics_of(const hanare_grid *grid,
                                                   hanare_grid_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
