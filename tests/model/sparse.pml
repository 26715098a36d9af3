// SPDX-License-Identifier: Apache-2.0
//
// A sparse block (docs/block-states.md) as a Spin model: one block of two parts; two threads of the
// program whose accesses want a part or the whole block, and a third party that evicts, flushes or
// completes, as the keeper does.  Waiting is as in block.pml and left out here: who finds a
// transient state waits until it is over; of STORING, whose writes belong to nobody, who waits
// completes it.  Left open: what each access wants, when the third party
// acts, whether a write to the store fails.
//
// Mutants:  BUG_*, one defect each; run.py expects an error in every one.

#ifndef OPS
#define OPS 2
#endif
#ifndef ACTS
#define ACTS 2
#endif
#ifndef STORE_FAILS
#define STORE_FAILS 0
#endif

mtype = {
    ABSENT, SPARSE, EXTENDING, WITHDRAWING, WRITING, STORING, STAGED, INSTALLING, WRITABLE
};

#define HOLE 255
#define TRANSIENT(s) \
    ((s) == EXTENDING || (s) == WITHDRAWING || (s) == WRITING || (s) == STORING || \
     (s) == INSTALLING)

mtype state = ABSENT;
bool word_dirty;
// Masks of parts, the owner's.
byte present, dirty, stored = 3;

byte page[2] = HOLE;  // of the region
bool guarded[2];      // write-protected
byte slot[2] = HOLE;  // of a whole frame, while there is one
byte store[2];
byte truth[2];        // ghost: what the program wrote last
byte writes;          // a new value for every write
byte store_fails = STORE_FAILS;
byte in_flight;       // parts that the device is writing
bool write_failed;    // one of them
bool leading;         // somebody completes the block

#define BIT(p) (1 << (p))

inline enter(from, to) { state == from -> state = to }

// Guards the dirty parts, one by one.
inline guard_dirty() {
    i = 0;
    do
    :: i < 2 ->
        if :: (dirty & BIT(i)) != 0 -> guarded[i] = true :: else fi;
        i++
    :: else -> break
    od
}
inline open_dirty() {
    i = 0;
    do
    :: i < 2 ->
        if :: (dirty & BIT(i)) != 0 -> guarded[i] = false :: else fi;
        i++
    :: else -> break
    od
}

// Unmaps all parts, one by one; nothing may be lost by it.
inline discard(absorbed) {
    i = 0;
    do
    :: i < 2 ->
        d_step {
            if
            :: (present & BIT(i)) != 0 && !absorbed -> assert(page[i] == store[i])
            :: (present & BIT(i)) != 0 && absorbed -> assert(page[i] == slot[i])
            :: else
            fi;
            page[i] = HOLE; guarded[i] = false
        };
        i++
    :: else -> break
    od;
    present = 0
}

// The owner of kExtending brings the whole block into a frame.
inline complete_block() {
    d_step { slot[0] = store[0] };
    d_step { slot[1] = store[1] };
#ifndef BUG_COPY_UNGUARDED
    guard_dirty();
#endif
    i = 0;
    do
    :: i < 2 ->
#ifndef BUG_NO_OVERLAY
        if :: (dirty & BIT(i)) != 0 -> slot[i] = page[i] :: else fi;
#endif
        i++
    :: else -> break
    od;
    discard(true);
    atomic { word_dirty = dirty != 0; dirty = 0; state = STAGED }
}

// The owner of kExtending serves an access to part p.
inline extend(p, for_write) {
    if
    :: (present & BIT(p)) != 0 && for_write && (dirty & BIT(p)) == 0 ->
        guarded[p] = false; dirty = dirty | BIT(p)
    :: (present & BIT(p)) != 0 && !(for_write && (dirty & BIT(p)) == 0)
    :: (present & BIT(p)) == 0 ->
#ifdef BUG_PART_UNGUARDED
        d_step { page[p] = store[p]; guarded[p] = false };
#else
        d_step { page[p] = store[p]; guarded[p] = !for_write };
#endif
        present = present | BIT(p);
        if :: for_write -> dirty = dirty | BIT(p) :: else fi
    fi;
    atomic { word_dirty = dirty != 0; state = SPARSE }
}

// Whole blocks move in one step here; block.pml looks at them more closely.
inline install() {
    atomic {
        page[0] = slot[0]; page[1] = slot[1]; slot[0] = HOLE; slot[1] = HOLE;
        guarded[0] = false; guarded[1] = false;
        word_dirty = true; state = WRITABLE
    }
}

inline fault(p, for_write) {
    if
    :: atomic { state == ABSENT -> state = EXTENDING }; present = 0; dirty = 0;
        extend(p, for_write)
    :: atomic { state == SPARSE -> state = EXTENDING };
        if
        :: extend(p, for_write)
        :: complete_block()
        fi
    :: atomic { state == STAGED -> state = INSTALLING }; install()
    :: state == WRITABLE || TRANSIENT(state)  // somebody was faster
    fi
}

// Takes the parts from where they are, whenever it likes.
inline device_writes(p) {
    if
    :: store_fails > 0 -> store_fails--; write_failed = true; store[p] = HOLE - 1
    :: store[p] = page[p]
    fi;
    in_flight = in_flight & ~BIT(p)
}

proctype Device() {
end:
    do
    :: atomic { (in_flight & 1) != 0 -> device_writes(0) }
    :: atomic { (in_flight & 2) != 0 -> device_writes(1) }
    od
}

// By whoever leads.
inline finish_storing() {
    if
    :: write_failed -> open_dirty(); atomic { write_failed = false; leading = false; state = SPARSE }
    :: !write_failed ->
        dirty = 0;
        discard(false);
        atomic { word_dirty = false; leading = false; state = ABSENT }
    fi
}

proctype Program() {
    byte i, p, left = OPS;
    bool for_write, done;
    do
    :: left > 0 ->
        left--;
        if :: p = 0 :: p = 1 fi;
        if :: for_write = true :: for_write = false fi;
        done = false;
        do
        :: !done ->
            if
            :: atomic {
                    page[p] != HOLE && (!for_write || !guarded[p]) ->
                    if
                    :: for_write -> writes++; page[p] = writes; truth[p] = writes
                    :: else -> assert(page[p] == truth[p])
                    fi;
                    done = true
                }
            :: atomic { page[p] == HOLE || (for_write && guarded[p]) };
                if
                :: !TRANSIENT(state); fault(p, for_write)
#ifndef BUG_NOBODY_COMPLETES
                :: atomic { state == STORING && in_flight == 0 && !leading -> leading = true };
                    finish_storing()
#endif
                fi
            fi
        :: else -> break
        od
    :: else -> break
    od
}

// Evicts or flushes a sparse block; writes its dirty parts from where they are.
inline write_out(keep) {
    bool failed = false, started = false;
#ifndef BUG_WRITE_UNGUARDED
    guard_dirty();
#endif
    if
    :: dirty != 0 && !keep -> atomic { started = true; in_flight = dirty; state = STORING }
    :: dirty != 0 ->
        state = WRITING;
        i = 0;
        do
        :: i < 2 ->
            if
            :: (dirty & BIT(i)) != 0 ->
                if
                :: store_fails > 0 -> store_fails--; failed = true; store[i] = HOLE - 1; break
                :: store[i] = page[i]
                fi
            :: else
            fi;
            i++
        :: else -> break
        od
    :: dirty == 0
    fi;
    if
    :: started -> started = false
    :: failed -> open_dirty(); atomic { failed = false; state = SPARSE }
    :: else ->
        dirty = 0;
        if
        :: keep -> atomic { word_dirty = false; state = SPARSE }
        :: !keep -> discard(false); atomic { word_dirty = false; state = ABSENT }
        fi
    fi
}

proctype Third() {
    byte i, left = ACTS;
    do
    :: left > 0 ->
        left--;
        if
        :: atomic { state == SPARSE -> state = WITHDRAWING }; write_out(false)
        :: atomic { state == SPARSE && word_dirty -> state = WITHDRAWING }; write_out(true)
        :: atomic { state == SPARSE -> state = EXTENDING }; complete_block()
        :: atomic { state == WRITABLE || state == STAGED ->
                // Evicted and written as a whole.
                if
                :: state == WRITABLE -> store[0] = page[0]; store[1] = page[1]
                :: state == STAGED && word_dirty -> store[0] = slot[0]; store[1] = slot[1]
                :: state == STAGED && !word_dirty ->
                    assert(store[0] == slot[0] && store[1] == slot[1])
                fi;
                page[0] = HOLE; page[1] = HOLE; slot[0] = HOLE; slot[1] = HOLE;
                word_dirty = false; state = ABSENT
            }
        :: break
        fi
    :: else -> break
    od
}

init {
    atomic { run Program(); run Program(); run Third(); run Device() }
}
