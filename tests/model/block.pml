// SPDX-License-Identifier: Apache-2.0
//
// The life of a block (docs/block-states.md) as a Spin model: two threads of the program that fault
// and evict inline, the keeper with its asynchronous transfers, and a third thread that evicts,
// flushes or pins; two blocks of two pages, one or two frames.  run.py checks it in several sizes.
//
// What is one step here is one step there: a compare-and-swap of the word, a section under the
// frame table's lock, the move or protection of one page, a futex call with its compare, a wake-up.
// Data that the owner of a transient state has for itself may change in one step; that there is
// exactly one owner is asserted.  Left open (more behaviours than the code has): which victim is
// chosen, when the keeper evicts or reads ahead, when a transfer ends, whether a fault kicks.
//
// Sizes:    NF frames; OPS accesses per program thread; THIRD: what the third thread does;
//           STORE_FAILS, MOVE_FAILS: how often a write to the store, a move of pages fails;
//           ONE_PAGE: every access writes to page 0.
// Mutants:  BUG_*, one defect each; run.py expects an error in every one.

#define NB 2    // blocks
#define NPROC 4  // program 0 and 1, third 2, keeper 3
#define KEEPER 3

#define NONE 0
#define EVICTOR 1
#define FLUSHER 2
#define PINNER 3

#ifndef NF
#define NF 1
#endif
#ifndef OPS0
#define OPS0 1
#endif
#ifndef OPS1
#define OPS1 1
#endif
#ifndef THIRD
#define THIRD NONE
#endif
#ifndef KEEPER_ACTS
#define KEEPER_ACTS 0
#endif
#ifndef STORE_FAILS
#define STORE_FAILS 0
#endif
#ifndef MOVE_FAILS
#define MOVE_FAILS 0
#endif

// The word, as in block.hpp; one pin is enough here.
#define ABSENT 0
#define FILLING 1
#define STAGED 2
#define INSTALLING 3
#define READ_ONLY 4
#define UPGRADING 5
#define WRITABLE 6
#define WITHDRAWING 7
#define WRITING 8
#define STATE_MASK 15
#define STORED 16
#define DIRTY 32
#define WAITERS 64
#define PINNED 128

#define ST(x) ((x) & STATE_MASK)
#define TO(x, state) (((x) & (255 - STATE_MASK)) | (state))
#define RESIDENT(x) (ST(x) == READ_ONLY || ST(x) == WRITABLE)
#define STABLE(x) (RESIDENT(x) || ST(x) == ABSENT || ST(x) == STAGED)
#define CLEAN_STAGED(x) (ST(x) == STAGED && ((x) & DIRTY) == 0)
#define UNWRITTEN(x) (ST(x) == STAGED && ((x) & DIRTY) != 0)

// Queues of frames.  Probation, protected and drop differ only in who is evicted first.
#define Q_NONE 0
#define Q_FREE 1
#define Q_MAPPED 2
#define Q_INACTIVE 3
#define Q_AHEAD 4
#define NO_FRAME 9

#define HOLE 255               // no page here
#define SUM(x, y) ((x)*16 + (y))  // the checksum

byte word[NB];
byte frame_of[NB];
byte checksum[NB];
byte queue[NF] = Q_FREE;
byte slot[2 * NF];        // pages of the frames
byte page[2 * NB] = HOLE;  // pages of the region
bool guarded[2 * NB];     // write-protected
byte stored[2 * NB] = HOLE;

// Ghosts.
byte truth[2 * NB];   // what the program wrote last
byte owner[NB];       // of the transient state: thread + 1
byte attached[NF];    // block + 1

// Futexes: what each thread sleeps on.
#define ON_PROGRESS 10
#define ON_JOB 11
byte sleeping[NPROC];  // 0, block + 1, ON_PROGRESS or ON_JOB
// The progress counter: has it changed since the thread read it?
#define NOT_WATCHING 2
byte changed[NPROC] = NOT_WATCHING;
byte progress_waiters;

// Keeper.
bool kicked, keeper_asleep, notified;
#define IO_NONE 0
#define IO_READ 1
#define IO_WRITE_FREE 2  // the block becomes absent
#define IO_WRITE_KEEP 3  // the block is staged
#define IO_JOB 4         // added when a flush waits for it
byte io[NF];
bool job_linked, job_drop, job_done;
byte job_next, job_in_flight;

byte keeper_acts = KEEPER_ACTS;  // how often it still may evict or read ahead on its own
byte store_fails = STORE_FAILS;
byte move_fails = MOVE_FAILS;

#define WAKE(what) \
    d_step { \
        if :: sleeping[0] == (what) -> sleeping[0] = 0 :: else fi; \
        if :: sleeping[1] == (what) -> sleeping[1] = 0 :: else fi; \
        if :: sleeping[2] == (what) -> sleeping[2] = 0 :: else fi; \
        if :: sleeping[3] == (what) -> sleeping[3] = 0 :: else fi \
    }

#define NOBODY_WATCHES \
    (changed[0] == NOT_WATCHING && changed[1] == NOT_WATCHING && changed[2] == NOT_WATCHING)
#define MARK_CHANGED(t) if :: changed[t] == 0 -> changed[t] = 1 :: else fi

// FrameTable::note_progress.  When nobody watches, the look at the waiters is left out: a thread
// that comes later has read the new count.
inline note_progress() {
    if
    :: d_step { NOBODY_WATCHES }
    :: d_step { !(NOBODY_WATCHES) -> MARK_CHANGED(0); MARK_CHANGED(1); MARK_CHANGED(2) };
        if
        :: progress_waiters != 0 -> WAKE(ON_PROGRESS)
        :: else
        fi
    fi
}

// FrameTable::enqueue: take out of whatever queue, put into another.
#define ENQUEUE(f, q) queue[f] = q

// Block::leave.  `woken` is the caller's bool.  `before` belongs to the same step: what the owner
// does before it leaves and nobody can see, as to put the frame into a queue, where all others pass
// over it while the block is in a transient state.
inline leave_now(b, state, set, clear) {
    assert(owner[b] == me + 1 && !STABLE(word[b]));
    woken = (word[b] & WAITERS) != 0;
    word[b] = (TO(word[b], state) | (set)) & (255 - ((clear) | WAITERS));
    if
    :: STABLE(word[b]) -> owner[b] = 0
    :: else
    fi;
    if
    :: ST(word[b]) == ABSENT && frame_of[b] != NO_FRAME ->
        attached[frame_of[b]] = 0; frame_of[b] = NO_FRAME
    :: else
    fi
}
inline wake_waiters(b) {
    if
#ifdef BUG_LOST_WAKE
    :: woken = false
#else
    :: woken -> atomic { woken = false; WAKE(b + 1) }
    :: else
#endif
    fi
}
#define LEAVE(before, b, state, set, clear) \
    atomic { before; leave_now(b, state, set, clear) }; \
    wake_waiters(b)
#define LEAVE_AND_NOTE(before, b, state, set, clear) \
    LEAVE(before, b, state, set, clear); \
    note_progress()

// Block::wait after its compare-and-swap, which was one step with the look at the word.
inline wait_for_block(b) {
    atomic {  // FUTEX_WAIT compares
        if
#ifdef BUG_NO_FUTEX_COMPARE
        :: true -> sleeping[me] = b + 1
#else
        :: word[b] == seen -> sleeping[me] = b + 1
        :: else
#endif
        fi;
        seen = 0
    };
    sleeping[me] == 0
}
#ifdef BUG_NO_WAITERS_BIT
#define MARK_WAITER(b) skip
#else
#define MARK_WAITER(b) seen = seen | WAITERS; word[b] = seen
#endif

// A block goes without being written: it must be equal to the store, or zeros never stored.
inline check_drop(b, f) {
    assert((word[b] & STORED) == 0 ||
           (slot[2 * f] == stored[2 * b] && slot[2 * f + 1] == stored[2 * b + 1]));
    assert((word[b] & STORED) != 0 || (slot[2 * f] == 0 && slot[2 * f + 1] == 0));
    assert(slot[2 * f] == truth[2 * b] && slot[2 * f + 1] == truth[2 * b + 1])
}

#define FREE_AT(k) (queue[k] == Q_FREE)
#define STAGED_AT(k, q) (queue[k] == q && CLEAN_STAGED(word[attached[k] - 1]))

inline take_free(k) {
    assert(attached[k] == 0);
    queue[k] = Q_NONE;
    f = k
}

inline take_staged(k) {
    check_drop((attached[k] - 1), k);
    assert(owner[attached[k] - 1] == 0);
    word[attached[k] - 1] = word[attached[k] - 1] & STORED;  // absent
    frame_of[attached[k] - 1] = NO_FRAME;
    attached[k] = 0;
    queue[k] = Q_NONE;
    f = k
}

// FrameTable::acquire into `f`.
inline acquire(use_ahead) {
    d_step {
        if
        :: FREE_AT(0) -> take_free(0)
#if NF > 1
        :: !FREE_AT(0) && FREE_AT(1) -> take_free(1)
#endif
        :: else ->
            if
            :: STAGED_AT(0, Q_INACTIVE) -> take_staged(0)
#if NF > 1
            :: !STAGED_AT(0, Q_INACTIVE) && STAGED_AT(1, Q_INACTIVE) -> take_staged(1)
#endif
            :: else ->
                if
                :: use_ahead && STAGED_AT(0, Q_AHEAD) -> take_staged(0)
#if NF > 1
                :: use_ahead && !STAGED_AT(0, Q_AHEAD) && STAGED_AT(1, Q_AHEAD) -> take_staged(1)
#endif
                :: else -> f = NO_FRAME
                fi
            fi
        fi
    }
}

// One page from slot to region, or back; atomic against the program.
#define MOVE_IN(b, f, i) \
    d_step { \
        assert(page[2 * (b) + i] == HOLE && slot[2 * (f) + i] != HOLE); \
        page[2 * (b) + i] = slot[2 * (f) + i]; slot[2 * (f) + i] = HOLE; \
        guarded[2 * (b) + i] = false \
    }
#define MOVE_OUT(b, f, i) \
    d_step { \
        assert(page[2 * (b) + i] != HOLE && slot[2 * (f) + i] == HOLE); \
        slot[2 * (f) + i] = page[2 * (b) + i]; page[2 * (b) + i] = HOLE; \
        guarded[2 * (b) + i] = false \
    }

#define VICTIM_WORD(k) word[attached[k] - 1]
#define IS_VICTIM(k) \
    (queue[k] == Q_MAPPED && (VICTIM_WORD(k) & PINNED) == 0 && \
     (RESIDENT(VICTIM_WORD(k)) || UNWRITTEN(VICTIM_WORD(k))))

inline take_victim(k) {
    f = k;
    v = attached[k] - 1;
    assert(frame_of[v] == k && owner[v] == 0);
    owner[v] = me + 1;
    queue[k] = Q_NONE;
    if
    :: RESIDENT(word[v]) -> word[v] = TO(word[v], WITHDRAWING); MOVE_OUT(v, f, 0)
    :: else -> word[v] = TO(word[v], WRITING)
    fi
}

// Puts both into a transient state of this thread.
inline enter(b, state) {
    assert(owner[b] == 0 && STABLE(word[b]));
    owner[b] = me + 1;
    word[b] = TO(word[b], state)
}

inline attach(b) {
    assert(queue[f] == Q_NONE && attached[f] == 0 && frame_of[b] == NO_FRAME);
    attached[f] = b + 1;
    frame_of[b] = f
}

inline read_store(b) {
    slot[2 * f] = stored[2 * b];
    slot[2 * f + 1] = stored[2 * b + 1];
    assert(SUM(slot[2 * f], slot[2 * f + 1]) == checksum[b])
}

// FrameTable::release after the block has become absent.
inline release() {
    d_step {
        assert(attached[f] == 0 && queue[f] == Q_NONE);
        queue[f] = Q_FREE; slot[2 * f] = 0; slot[2 * f + 1] = 0
    };
    note_progress();
    f = NO_FRAME
}

// Pager::withdraw of block v in frame f; v = NO_FRAME when it failed.
// The first page left in the step that entered kWithdrawing.
inline withdraw() {
    if
    :: ST(word[v]) == WITHDRAWING ->
#if MOVE_FAILS > 0
        if
        :: atomic { move_fails > 0 -> move_fails--; MOVE_IN(v, f, 0) };
            guarded[2 * v] = false;
            guarded[2 * v + 1] = false;
            LEAVE_AND_NOTE(ENQUEUE(f, Q_MAPPED), v, WRITABLE, DIRTY, 0);
            atomic { f = NO_FRAME; v = NO_FRAME }
        :: skip
        fi;
#endif
        if
        :: v == NO_FRAME
        :: atomic { v != NO_FRAME && (word[v] & DIRTY) == 0 -> MOVE_OUT(v, f, 1) }
        :: v != NO_FRAME && (word[v] & DIRTY) != 0 -> LEAVE(MOVE_OUT(v, f, 1), v, WRITING, 0, 0)
        fi
    :: else
    fi
}

// finish_clean, Park::kFree
inline drop_clean() {
    LEAVE(check_drop(v, f), v, ABSENT, 0, 0);
    release()
}

// The transfer itself; a write that fails has overwritten part of the block.
inline write_store(failed) {
    if
    :: d_step { store_fails > 0 -> store_fails--; failed = true; stored[2 * v] = slot[2 * f] }
    :: d_step {
           stored[2 * v] = slot[2 * f];
           stored[2 * v + 1] = slot[2 * f + 1];
           checksum[v] = SUM(slot[2 * f], slot[2 * f + 1])
       }
    fi
}

inline finish_write_failed() {
    LEAVE_AND_NOTE(ENQUEUE(f, Q_MAPPED), v, STAGED, 0, 0)
}

inline finish_write_free() {
    LEAVE(skip, v, ABSENT, STORED, DIRTY);
    release()
}

// Pager::evict_inline; `f` and `v` are NO_FRAME when there was no victim.
inline evict_inline(found) {
    atomic {
        if
        :: IS_VICTIM(0) -> take_victim(0); found = true
#if NF > 1
        :: IS_VICTIM(1) -> take_victim(1); found = true
#endif
        :: else
        fi
    };
    if
    :: found ->
        withdraw();
        if
        :: v == NO_FRAME
#ifdef BUG_CLEAN_DROP
        :: v != NO_FRAME -> drop_clean()
#else
        :: v != NO_FRAME && (word[v] & DIRTY) == 0 -> drop_clean()
        :: v != NO_FRAME && (word[v] & DIRTY) != 0 ->
            write_store(failed);
            if
            :: failed -> failed = false; finish_write_failed()
            :: else -> finish_write_free()
            fi
#endif
        fi;
        f = NO_FRAME; v = NO_FRAME
    :: else
    fi
}

// Keeper::kick.  Modelled where somebody waits for the keeper; elsewhere it acts as it likes.
inline kick() {
#if THIRD == FLUSHER
    kicked = true;
    atomic {
        if
        :: keeper_asleep -> keeper_asleep = false; woken = true
        :: else
        fi
    };
    if
    :: woken -> atomic { woken = false; notified = true }
    :: else
    fi
#else
    skip
#endif
}

// FrameTable::wait_progress, of who watches.
inline wait_progress() {
    progress_waiters++;
    atomic {
        if
        :: changed[me] == 0 -> sleeping[me] = ON_PROGRESS
        :: else
        fi
    };
    sleeping[me] == 0;
    progress_waiters--
}

// A write-back of the keeper's is in flight: as many as it allows itself, with this few blocks.
#define WRITES(f) ((io[f] & 3) > IO_READ)
#if KEEPER_ACTS > 0 || THIRD == FLUSHER
#if NF > 1
#define KEEPER_CLEANS (WRITES(0) || WRITES(1))
#else
#define KEEPER_CLEANS WRITES(0)
#endif
#endif

// Pager::obtain_room into `f`.
inline obtain_frame() {
    may_wait = true;
    do
    :: atomic {
            changed[me] = 0;
            acquire(false);
            if
            :: f != NO_FRAME -> changed[me] = NOT_WATCHING; break
            :: else
            fi
        };
#ifdef BUG_WATCH_LATE
        changed[me] = NOT_WATCHING;
#endif
        if
#ifdef KEEPER_CLEANS
        :: atomic { may_wait && KEEPER_CLEANS -> may_wait = false };
#ifdef BUG_WATCH_LATE
            changed[me] = 0;
#endif
            wait_progress()
#endif
        :: evict_inline(found);
            if
            :: found -> found = false
            :: else ->
                atomic {
                    acquire(true);
                    if
                    :: f != NO_FRAME -> changed[me] = NOT_WATCHING; break
                    :: else
                    fi
                };
                kick();
                wait_progress()
            fi
        fi
    od;
    may_wait = false
}

// Moving page 1 fails after page 0 was in the region for a while, where another thread may have
// written to it.
inline fail_install(b, f_) {
    MOVE_OUT(b, f_, 0);
#ifdef BUG_FAILED_INSTALL_CLEAN
    LEAVE_AND_NOTE(ENQUEUE(f_, ((word[b] & DIRTY) != 0 -> Q_MAPPED : Q_INACTIVE)), b, STAGED, 0, 0)
#else
    LEAVE_AND_NOTE(ENQUEUE(f_, Q_MAPPED), b, STAGED, DIRTY, 0)
#endif
}

// Pager::install of block b, whose frame is f.
inline install(b, for_write) {
    atomic {
        copy = ((for_write || (word[b] & DIRTY) != 0) -> 255 : SUM(slot[2 * f], slot[2 * f + 1]));
        MOVE_IN(b, f, 0)
    };
    if
#if MOVE_FAILS > 0
    :: atomic { move_fails > 0 -> move_fails-- };
        fail_install(b, f)
#endif
    :: MOVE_IN(b, f, 1);
        if
        :: copy != 255 ->
            guarded[2 * b] = true;
            guarded[2 * b + 1] = true;
            if
#ifndef BUG_NO_COMPARE
            :: SUM(page[2 * b], page[2 * b + 1]) != copy ->
                guarded[2 * b] = false;
                guarded[2 * b + 1] = false;
                LEAVE(ENQUEUE(f, Q_MAPPED), b, WRITABLE, DIRTY, 0)
#endif
            :: else -> LEAVE(ENQUEUE(f, Q_MAPPED), b, READ_ONLY, 0, 0)
            fi
        :: else -> LEAVE(ENQUEUE(f, Q_MAPPED), b, WRITABLE, DIRTY, 0)
        fi;
        note_progress()
    fi;
    atomic { f = NO_FRAME; copy = 0 }
}

// Pager::make_resident: one access that faulted.
inline make_resident(b, for_write) {
    do
    :: atomic {
            seen = word[b];
            if
            :: ST(seen) == WRITABLE || (ST(seen) == READ_ONLY && !for_write) -> seen = 0; break
            :: ST(seen) == READ_ONLY && for_write -> enter(b, UPGRADING)
            :: ST(seen) == ABSENT -> enter(b, FILLING)
            :: ST(seen) == STAGED -> enter(b, INSTALLING)
            :: !STABLE(seen) -> MARK_WAITER(b)
            fi
        };
        if
        :: ST(seen) == READ_ONLY ->
            atomic { seen = 0; guarded[2 * b] = false };
            guarded[2 * b + 1] = false;
            LEAVE(skip, b, WRITABLE, DIRTY, 0);
#ifndef BUG_SILENT_UPGRADE
            note_progress();
#endif
            break
        :: ST(seen) == ABSENT ->
            seen = 0;
#ifdef FAULTS_KICK
            if :: kick() :: skip fi;
#endif
            obtain_frame();
            atomic {
                attach(b);
                if
                :: (word[b] & STORED) != 0 -> read_store(b)
                :: else -> slot[2 * f] = 0; slot[2 * f + 1] = 0
                fi;
#ifndef BUG_MAP_WHILE_FILLING
                word[b] = TO(word[b], INSTALLING)  // Block::advance
#endif
            };
            install(b, for_write);
            break
        :: ST(seen) == STAGED ->
            seen = 0;
            atomic {
                f = frame_of[b];
                failed = queue[f] == Q_AHEAD;  // may be corrupt
                queue[f] = Q_NONE              // dequeue
            };
            if
            :: failed ->  // Pager::give_up_frame, and another look
                failed = false;
                LEAVE(check_drop(b, f), b, ABSENT, 0, 0);
                release()
            :: atomic { true -> failed = false };
                install(b, for_write);
                break
            fi
        :: else -> wait_for_block(b)
        fi
    od
}

#define LOCALS \
    byte f = NO_FRAME, v = NO_FRAME, seen, copy; \
    bool woken, found, failed, may_wait

proctype Program(byte me; byte ops) {
    LOCALS;
    byte i;  // the page that is accessed
    bool write;
    do
    :: ops == 0 -> break
    :: ops > 0 ->
        atomic {
#ifdef ONE_PAGE
            i = 0; write = true
#else
            if :: i = 0 :: i = 1 :: i = 2
#ifdef ALL_PAGES
            :: i = 3
#endif
            fi;
            if :: write = true :: write = false fi
#endif
        };
        do
        :: atomic { page[i] != HOLE && !write -> assert(page[i] == truth[i]); break }
        :: atomic { page[i] != HOLE && write && !guarded[i] ->
               truth[i]++; page[i] = truth[i]; break }
        :: atomic { page[i] == HOLE || (write && guarded[i]) };  // SIGBUS
            make_resident((i / 2), write)
        od;
        ops--
    od
}

#if THIRD == EVICTOR
// Pool::shrink_to_budget
proctype Third(byte me) {
    LOCALS;
    evict_inline(found);
    found = false
}
#elif THIRD == FLUSHER
// Pool::flush of both blocks: afterwards the store has everything written before it began.
proctype Third(byte me) {
    bool woken;
    byte before[2 * NB];
    d_step {
        before[0] = truth[0]; before[1] = truth[1]; before[2] = truth[2]; before[3] = truth[3]
    };
    atomic {
        job_linked = true;
        if :: job_drop = true :: job_drop = false fi
    };
#ifndef BUG_LOST_KICK
    kick();
#endif
    atomic { if :: !job_done -> sleeping[me] = ON_JOB :: else fi };
    sleeping[me] == 0;
#if STORE_FAILS == 0 && MOVE_FAILS == 0
    assert(before[0] == 0 || (before[0] <= stored[0] && stored[0] != HOLE));
    assert(before[1] == 0 || (before[1] <= stored[1] && stored[1] != HOLE));
    assert(before[2] == 0 || (before[2] <= stored[2] && stored[2] != HOLE));
    assert(before[3] == 0 || (before[3] <= stored[3] && stored[3] != HOLE))
#endif
}
#elif THIRD == PINNER
// Pool::pin and unpin of block 0: a pinned block stays mapped.
proctype Third(byte me) {
    LOCALS;
    do
    :: make_resident(0, false);
        if
        :: atomic { RESIDENT(word[0]) -> word[0] = word[0] | PINNED }; break
        :: atomic { !RESIDENT(word[0]) }
        fi
    od;
    queue[frame_of[0]] = Q_NONE;  // dequeue
    assert(page[0] != HOLE && page[1] != HOLE);
    word[0] = word[0] & (255 - PINNED);
    atomic {  // requeue_unpinned
        if
#ifdef BUG_UNPIN_WHILE_UPGRADING
        :: RESIDENT(word[0]) && queue[frame_of[0]] == Q_NONE -> queue[frame_of[0]] = Q_MAPPED
#else
        :: (RESIDENT(word[0]) || ST(word[0]) == UPGRADING) && queue[frame_of[0]] == Q_NONE ->
            queue[frame_of[0]] = Q_MAPPED
#endif
        :: else
        fi
    };
    note_progress()
}
#endif

#define IO_DONE_POSSIBLE(k) (io[k] != IO_NONE)
#define FLUSH_WORD word[job_next]
#define FLUSH_MUST_WAIT \
    (ST(FLUSH_WORD) == WRITING && io[frame_of[job_next]] != IO_NONE)
#define FLUSH_CAN_GO (job_linked && job_next < NB && !FLUSH_MUST_WAIT)

#define A_REST 0
#define A_COMPLETE 1
#define A_OUT 2    // block v in frame f is ours: withdraw it, then write or drop it
#define A_WAIT 3   // flush: for another owner of block job_next
#define A_NEXT 4   // flush: on to the next block
#define A_FILL 5   // read block b ahead

// Keeper::finish_if_done
inline finish_if_done() {
    atomic {
        if
        :: job_linked && job_next == NB && job_in_flight == 0 -> job_linked = false; woken = true
        :: else
        fi
    };
    if
    :: woken -> atomic { woken = false; job_done = true }; WAKE(ON_JOB)
    :: else
    fi
}

inline flush_out(state) {
    v = job_next;
    f = frame_of[v];
    enter(v, state);
    if :: state == WITHDRAWING -> MOVE_OUT(v, f, 0) :: else fi;
    for_job = true;
    park = (job_drop -> IO_WRITE_FREE : IO_WRITE_KEEP);
    act = A_OUT
}

proctype Keeper() {
    LOCALS;
    byte me = KEEPER;
    byte act, park, b;
    bool for_job;
end_idle:
    do
    :: atomic {
            if
            :: io[0] != IO_NONE -> f = 0; act = A_COMPLETE
#if NF > 1
            :: io[1] != IO_NONE -> f = 1; act = A_COMPLETE
#endif
#if THIRD == FLUSHER
            :: FLUSH_CAN_GO ->
                seen = FLUSH_WORD;
                if
                :: ST(seen) == ABSENT || ST(seen) == FILLING -> act = A_NEXT
                :: ST(seen) == STAGED && ((seen & DIRTY) != 0 || job_drop) -> flush_out(WRITING)
                :: ST(seen) == STAGED && (seen & DIRTY) == 0 && !job_drop -> act = A_NEXT
                :: RESIDENT(seen) && (ST(seen) == WRITABLE || job_drop) -> flush_out(WITHDRAWING)
                :: ST(seen) == READ_ONLY && !job_drop -> act = A_NEXT
                :: else -> act = A_WAIT; MARK_WAITER(job_next)
                fi;
                if :: act != A_WAIT -> seen = 0 :: else fi
#endif
#if KEEPER_ACTS > 0
            :: keeper_acts > 0 && IS_VICTIM(0) -> keeper_acts--; take_victim(0); act = A_OUT
            :: keeper_acts > 0 && word[0] == STORED -> keeper_acts--; b = 0; act = A_FILL
            :: keeper_acts > 0 && word[1] == STORED -> keeper_acts--; b = 1; act = A_FILL
#if NF > 1
            :: keeper_acts > 0 && IS_VICTIM(1) -> keeper_acts--; take_victim(1); act = A_OUT
#endif
#endif
#if THIRD == FLUSHER
            :: !FLUSH_CAN_GO -> act = A_REST
#endif
            fi
        };
        if
        :: act == A_COMPLETE ->
            if
            :: (io[f] & 3) == IO_READ ->
                d_step { b = attached[f] - 1; read_store(b); io[f] = IO_NONE };
                LEAVE_AND_NOTE(ENQUEUE(f, Q_AHEAD), b, STAGED, 0, 0)
            :: else ->
                v = attached[f] - 1;
                write_store(failed);
                d_step { for_job = io[f] >= IO_JOB; park = io[f] & 3; io[f] = IO_NONE };
                if
                :: failed -> failed = false; finish_write_failed()
                :: !failed && park == IO_WRITE_FREE -> finish_write_free()
                :: !failed && park == IO_WRITE_KEEP ->
                    LEAVE_AND_NOTE(ENQUEUE(f, Q_INACTIVE), v, STAGED, STORED, DIRTY)
                fi;
                if
                :: for_job -> job_in_flight--; finish_if_done()
                :: else
                fi
            fi
        :: act == A_OUT ->
            if
            :: !for_job ->
                if :: park = IO_WRITE_FREE :: park = IO_WRITE_KEEP fi
            :: else -> queue[f] = Q_NONE  // FrameTable::dequeue
            fi;
            withdraw();
            if
            :: v == NO_FRAME
            :: v != NO_FRAME && (word[v] & DIRTY) != 0 ->
                d_step {
                    assert(io[f] == IO_NONE);
                    io[f] = park + (for_job -> IO_JOB : 0);
                    job_in_flight = job_in_flight + for_job
                }
            :: v != NO_FRAME && (word[v] & DIRTY) == 0 && park == IO_WRITE_FREE -> drop_clean()
            :: v != NO_FRAME && (word[v] & DIRTY) == 0 && park == IO_WRITE_KEEP ->
                LEAVE_AND_NOTE(ENQUEUE(f, Q_INACTIVE), v, STAGED, 0, 0)
            fi;
            if
            :: for_job -> job_next++; finish_if_done()
            :: else
            fi
#if THIRD == FLUSHER
        :: act == A_WAIT -> wait_for_block(job_next)
        :: act == A_NEXT -> job_next++; finish_if_done()
#endif
#if KEEPER_ACTS > 0
        :: act == A_FILL ->  // start_fill
            acquire(false);
            if
            :: f == NO_FRAME
            :: else ->
                if
                :: atomic { word[b] == STORED -> enter(b, FILLING) };
                    d_step { attach(b); io[f] = IO_READ }
                :: atomic { word[b] != STORED };
                    release()
                fi
            fi
#endif
#if THIRD == FLUSHER
        :: act == A_REST ->
            keeper_asleep = true;
#ifdef BUG_SLEEP_UNCHECKED
            kicked = false;
#else
            if
            :: atomic { kicked -> kicked = false }
            :: atomic { !kicked };
#endif
end_asleep:
               if
               :: atomic { notified -> notified = false }
               :: io[0] != IO_NONE
#if NF > 1
               :: io[1] != IO_NONE
#endif
               fi;
#ifndef BUG_SLEEP_UNCHECKED
            fi;
#endif
            keeper_asleep = false
#endif
        fi;
        d_step {
            f = NO_FRAME; v = NO_FRAME; b = 0; act = A_REST; park = 0; for_job = false
        }
    od
}

init {
    atomic {
        frame_of[0] = NO_FRAME; frame_of[1] = NO_FRAME;
        run Program(0, OPS0);
        run Program(1, OPS1);
#if THIRD != NONE
        run Third(2);
#endif
        run Keeper()
    }
}
