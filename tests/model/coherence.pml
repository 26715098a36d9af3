// SPDX-License-Identifier: Apache-2.0
//
// Shared memory between machines (docs/dsm.md, src/dsm/home_memory.hpp) as a Spin model: three tasks,
// two blocks of different homes, three words: two that different locks protect lie in one block (false
// sharing), and two that one lock protects in different blocks.  Tasks take locks, read and write
// words, and meet in a barrier.  What one task asks another is one step, as the thread that serves
// it does it; everything else interleaves.  Left open: which lock, which word, read or write.
//
// Homes move to who writes (src/dsm/home_moves.cpp), MOVES times for each block: first the old one loses
// it, then the data comes; who asks between asks on, and has by then read what says nothing: not
// into the old home's memory, where the data is.
//
// PROTECT: what others are about to fetch while its home may write is protected there before, and needs no
// notice (HomeMemory::protect); the home may be faster again before the copy is noted.
//
// STEADY: a home may keep a block writable at a release, and a twin of it (src/dsm/home_steady.cpp), which
// others may read instead of it.  There a task may also write and take it back.
//
// ONE_LOCK, ONE_BLOCK, ONLY0 to ONLY2 (a task's only word), NO_BARRIER, WRITES0 and UNDOES0 (when only
// task 0 does so: bits, by the accesses that it has left): less is left open.  NESTED: a task that writes a word under one lock and reads one
// of the same block under another within that, so that it drops a copy that it has written to.
//
// Checked: whoever has a lock, and everybody after the barrier, reads what was written last; no
// deadlock.
//
// Mutants:  BUG_*, one defect each; run.py expects an error in every one.

#ifndef OPS0
#define OPS0 1
#endif
#ifndef OPS1
#define OPS1 1
#endif
#ifndef OPS2
#define OPS2 1
#endif

#ifndef NESTED
#define NESTED NOBODY
#endif

#define NP 3
#define NB 2
#define NW 3
#define NL 2
#define LOG 6
#define NOBODY 9
#define ROUNDS 2

// Which tasks may choose.
#ifdef ONLY0
#define OPEN0 0
#else
#define OPEN0 1
#endif
#ifdef ONLY1
#define OPEN1 0
#else
#define OPEN1 1
#endif
#ifdef ONLY2
#define OPEN2 0
#else
#define OPEN2 1
#endif
#define IS_OPEN(t) ((t) == 0 -> OPEN0 : ((t) == 1 -> OPEN1 : OPEN2))

#ifndef MOVES
#define MOVES 0
#endif

#ifdef STEADY
#define IS_STEADY(b) steady[b]
#else
#define IS_STEADY(b) false
#endif

#if MOVES
#define HOME(b) home[b]
#define IS_COMING(b) coming[b]
#else
#define HOME(b) (b)
#define IS_COMING(b) false
#endif
#define BLOCK(w) ((w) == 2 -> 1 : 0)
#define LOCK(w) ((w) == 1 -> 1 : 0)
#define MANAGER(l) ((l) == 0 -> 0 : 2)

mtype = { ABSENT, READ, WRITE };

mtype rights[NP * NB] = ABSENT;
bool dirty[NP * NB];
bool shared[NB];  // of the home
bool served[NB];
byte memory[NP * NW];
byte twin[NP * NW];
byte truth[NW];  // ghost
#ifdef STEADY
bool steady[NB];  // the home's twin is what it held at its last release
#endif
byte writes;
#if MOVES
byte home[NB];
bool coming[NB];     // its data, to there
byte source[NB];     // from where
byte moves[NB];
bool owed[NP * NB];  // a notice, of what was written before it moved away
#endif

byte log[NP * LOG];
byte position[NP * NP];  // what the first knows of the second

bool here[NP * NL];
bool held[NP * NL];
bool wanted[NP * NL];
byte successor[NP * NL] = NOBODY;
byte last[NL] = NOBODY;
byte sent[NP * NP];  // with a lock's token, to the first

bool came[NP * ROUNDS];
byte told[NP * ROUNDS * NP];  // of a barrier

// ---- blocks

inline note_fetch(b) {
#ifdef PROTECT
    atomic {
        h = HOME(b);
        if
        :: rights[h * NB + b] == WRITE && !IS_COMING(b) && !dirty[h * NB + b] && !shared[b] &&
           !served[b] && !IS_STEADY(b) -> rights[h * NB + b] = READ
        :: true
        fi
    }
#endif
    atomic {
        !IS_COMING(b);
        h = HOME(b);
#ifndef BUG_PROTECTED_UNSHARED
        shared[b] = true;
#endif
        if
#if !defined(BUG_NOT_SERVED) && !defined(BUG_PROTECTED_UNSERVED)
        :: rights[HOME(b) * NB + b] == WRITE -> served[b] = true
#endif
        :: else
        fi
    }
}

#ifdef STEADY
inline copy_twin(b) {
    w = 0;
    do
    :: w < NW -> if :: BLOCK(w) == b -> twin[me * NW + w] = memory[me * NW + w] :: else fi; w++
    :: else -> break
    od;
    w = 0
}

// At a release of the home's.
inline close_steady(b) {
    w = 0;
    do
    :: w < NW ->
        if
        :: BLOCK(w) == b && memory[me * NW + w] != twin[me * NW + w] -> differs = true
        :: else
        fi;
        w++
    :: else -> break
    od;
    w = 0;
    if
#ifndef BUG_STEADY_SERVED
    :: differs || served[b] -> changed[b] = true
#else
    :: differs -> changed[b] = true
#endif
    :: else
    fi;
    if
    :: copy_twin(b)
    :: steady[b] = false;
#ifndef BUG_STEADY_UNPROTECTED
        if :: shared[b] -> rights[me * NB + b] = READ :: else fi
#endif
    fi;
    if :: changed[b] -> shared[b] = false :: else fi;
    served[b] = false;
    differs = false
}

inline fetch_twin(b) {
    atomic {
        h = HOME(b);
        w = 0;
        do
        :: w < NW ->
#ifdef BUG_STEADY_LIVE
            if :: BLOCK(w) == b -> memory[me * NW + w] = memory[h * NW + w] :: else fi;
#else
            if :: BLOCK(w) == b -> memory[me * NW + w] = twin[h * NW + w] :: else fi;
#endif
            w++
        :: else -> break
        od;
        w = 0; h = 0;
        shared[b] = true;
        rights[me * NB + b] = READ
    }
}
#endif

inline copy_from_home(b) {
    atomic {
        w = 0;
        do
        :: w < NW ->
            if :: BLOCK(w) == b -> memory[me * NW + w] = memory[h * NW + w] :: else fi;
            w++
        :: else -> break
        od;
        w = 0
    }
}

#if MOVES
// Whose copies are old, and who knows of that, is not known where it goes to: all count as old.
inline become_home(b) {
    atomic {
        !coming[b];
        h = home[b];
        moves[b]++;
#ifndef BUG_NOT_OWED
        owed[h * NB + b] = owed[h * NB + b] || dirty[h * NB + b] || IS_STEADY(b) ||
            (served[b] && rights[h * NB + b] != ABSENT);
#endif
        dirty[h * NB + b] = false;
        served[b] = false;
        shared[b] = false;
#ifdef STEADY
        steady[b] = false;
#endif
#ifndef BUG_MOVED_MAPPED
        rights[h * NB + b] = ABSENT;
#endif
        source[b] = h;
        home[b] = me;
#ifndef BUG_MOVED_EARLY
        coming[b] = true
#endif
    }
    atomic {
        copy_from_home(b);
        coming[b] = false;
#ifndef BUG_MOVED_UNSHARED
        shared[b] = true;
        dirty[me * NB + b] = true;
#endif
        rights[me * NB + b] = WRITE;
        h = 0
    }
}
#endif

#if MOVES
inline fetch_too_early(b) {
    if
#ifdef BUG_MOVED_OVER
    :: atomic { coming[b] -> h = home[b]; copy_from_home(b); h = 0 }
#else
    :: atomic { coming[b] && source[b] != me -> h = home[b]; copy_from_home(b); h = 0 }
#endif
    :: true
    fi
}
#else
inline fetch_too_early(b) { skip }
#endif

inline fetch(b) {
    if
    :: rights[me * NB + b] == ABSENT ->
        fetch_too_early(b);
#ifdef STEADY
        if
        :: atomic { !IS_COMING(b) && steady[b] -> fetch_twin(b) }
        :: true
        fi;
        if :: rights[me * NB + b] == ABSENT ->
#endif
#ifdef BUG_NOTED_LATE
        h = HOME(b);
        copy_from_home(b);
        note_fetch(b);
        rights[me * NB + b] = READ
#else
        note_fetch(b);
        atomic { copy_from_home(b); rights[me * NB + b] = READ; h = 0 }
#endif
#ifdef STEADY
        :: else
        fi
#endif
    :: else
    fi
}

inline allow_writes(b) {
    if
    :: atomic { rights[me * NB + b] == READ && HOME(b) == me ->
            if :: shared[b] -> dirty[me * NB + b] = true :: else fi;
            rights[me * NB + b] = WRITE
        }
    :: atomic { rights[me * NB + b] == READ && HOME(b) != me ->
            w = 0;
            do
            :: w < NW -> twin[me * NW + w] = memory[me * NW + w]; w++
            :: else -> break
            od;
            w = 0;
            dirty[me * NB + b] = true;
            rights[me * NB + b] = WRITE
        }
    :: else
    fi
}

#ifdef STEADY
// By who has the lock; nobody else looks at it meanwhile.
inline undo_word(v) {
    if
    :: atomic { rights[me * NB + BLOCK(v)] == WRITE -> memory[me * NW + v] = 200 };
        do
        :: atomic { rights[me * NB + BLOCK(v)] == WRITE -> memory[me * NW + v] = truth[v]; break }
        :: rights[me * NB + BLOCK(v)] == READ -> allow_writes(BLOCK(v))
        od
    :: else
    fi
}
#endif

// What differs from the twin, at the home; one question for a block.
inline send_diff(b) {
    atomic {
        !IS_COMING(b);
        w = 0;
        do
        :: w < NW ->
            if
#ifdef BUG_WHOLE_BLOCK
            :: BLOCK(w) == b ->
#else
            :: BLOCK(w) == b && memory[me * NW + w] != twin[me * NW + w] ->
#endif
                memory[HOME(b) * NW + w] = memory[me * NW + w];
#if defined(STEADY) && !defined(BUG_STEADY_DIFF)
                if :: steady[b] -> twin[HOME(b) * NW + w] = memory[me * NW + w] :: else fi
#endif
            :: else
            fi;
            w++
        :: else -> break
        od;
        w = 0
    }
}

inline append(b) {
    assert(position[me * NP + me] < LOG);
    log[me * LOG + position[me * NP + me]] = b;
    position[me * NP + me]++
}

// Notices of what is sent home go last: who knows of them finds the home's copy new.
inline release() {
    n = 0;
    do
    :: atomic { n < NB ->
        if
#ifdef STEADY
        :: HOME(n) == me && steady[n] -> close_steady(n)
        :: HOME(n) == me && !served[n] && dirty[me * NB + n] ->
            dirty[me * NB + n] = false; shared[n] = false; changed[n] = true;
            steady[n] = true; copy_twin(n)
#endif
        :: HOME(n) == me && served[n] && !IS_STEADY(n) ->
            served[n] = false; shared[n] = false; dirty[me * NB + n] = false;
            rights[me * NB + n] = READ; changed[n] = true
        :: HOME(n) == me && !served[n] && dirty[me * NB + n] ->
            dirty[me * NB + n] = false; shared[n] = false; changed[n] = true
        :: HOME(n) != me && dirty[me * NB + n] ->
            dirty[me * NB + n] = false;
            rights[me * NB + n] = READ;
#ifdef BUG_NOTICE_FIRST
            append(n);
#else
            changed[n] = true;
#endif
            out = n + 1
        :: else
        fi;
#ifndef BUG_NO_EARLY_NOTICE
        if :: early[n] -> changed[n] = true :: else fi;
#endif
        early[n] = false;
#if MOVES
        if :: owed[me * NB + n] -> changed[n] = true; owed[me * NB + n] = false :: else fi;
#endif
        n++ }
        if :: atomic { out > 0 -> out--; send_diff(out); out = 0 } :: else fi
    :: else -> break
    od;
    atomic {
        n = 0;
        do
        :: n < NB -> if :: changed[n] -> append(n); changed[n] = false :: else fi; n++
        :: else -> break
        od;
        n = 0
    }
}

inline drop(b) {
    d = b;
    if
    :: HOME(d) != me && rights[me * NB + d] != ABSENT ->
        if
        :: dirty[me * NB + d] ->
#ifndef BUG_DROP_DIRTY
            send_diff(d);
#endif
            early[d] = true;
            dirty[me * NB + d] = false
        :: else
        fi;
        rights[me * NB + d] = ABSENT
    :: else
    fi;
    d = 0
}

// Up to the positions in known[].
inline learn() {
    q = 0;
    do
    :: q < NP ->
#ifdef BUG_HOLDER_S_NOTICES_ONLY
        if :: q != from -> known[q] = position[me * NP + q] :: else fi;
#endif
        do
        :: atomic { position[me * NP + q] < known[q] ->
            drop(log[q * LOG + position[me * NP + q]]);
            position[me * NP + q]++ }
        :: else -> break
        od;
        known[q] = 0;
        q++
    :: else -> break
    od;
    q = 0; from = 0
}

// ---- locks

inline acquire(l) {
    if
    :: atomic { here[me * NL + l] -> held[me * NL + l] = true }
    :: else ->
        wanted[me * NL + l] = true;
        atomic {
            from = last[l];
            if :: from == NOBODY -> from = MANAGER(l) :: else fi;
            last[l] = me
        }
        atomic {
            if
#ifdef BUG_HANDED_WHILE_HELD
            :: here[from * NL + l] ->
#else
            :: here[from * NL + l] && !held[from * NL + l] && !wanted[from * NL + l] ->
#endif
                here[from * NL + l] = false;
                here[me * NL + l] = true;
                q = 0;
                do
                :: q < NP -> sent[me * NP + q] = position[from * NP + q]; q++
                :: else -> break
                od
            :: else -> successor[from * NL + l] = me
            fi
        }
        here[me * NL + l];
        atomic {
            q = 0;
            do
            :: q < NP -> known[q] = sent[me * NP + q]; q++
            :: else -> break
            od
        }
        learn();
        atomic { wanted[me * NL + l] = false; held[me * NL + l] = true }
    fi
}

inline unlock(l) {
    release();
    atomic {
        held[me * NL + l] = false;
        to = successor[me * NL + l];
        successor[me * NL + l] = NOBODY;
        if :: to != NOBODY -> here[me * NL + l] = false :: else fi
    }
    if
    :: to != NOBODY ->
        atomic {
            q = 0;
            do
            :: q < NP -> sent[to * NP + q] = position[me * NP + q]; q++
            :: else -> break
            od;
            here[to * NL + l] = true
        }
    :: else
    fi
}

// ---- barriers

inline barrier() {
    release();
    r = 0;
    do
    :: r < ROUNDS ->
        to = (me + 1 + r) % NP;
        atomic {
            q = 0;
            do
            :: q < NP -> told[(to * ROUNDS + r) * NP + q] = position[me * NP + q]; q++
            :: else -> break
            od;
            came[to * ROUNDS + r] = true
        }
        came[me * ROUNDS + r];
        atomic {
            q = 0;
            do
            :: q < NP -> known[q] = told[(me * ROUNDS + r) * NP + q]; q++
            :: else -> break
            od;
            from = (me + NP - 1 - r) % NP
        }
        learn();
        r++
    :: else -> break
    od
}

#if MOVES || defined(PROTECT)
// A home may lose it, or its right to write, between: the access faults again.
inline read_word(v) {
    do
    :: atomic { rights[me * NB + BLOCK(v)] != ABSENT ->
        assert(memory[me * NW + v] == truth[v]); break }
    :: rights[me * NB + BLOCK(v)] == ABSENT && HOME(BLOCK(v)) != me -> fetch(BLOCK(v))
    od
}

inline write_word(v) {
    do
    :: atomic { rights[me * NB + BLOCK(v)] == WRITE ->
        writes++; memory[me * NW + v] = writes; truth[v] = writes; break }
#if MOVES
    :: rights[me * NB + BLOCK(v)] != WRITE && HOME(BLOCK(v)) != me && moves[BLOCK(v)] < MOVES ->
        become_home(BLOCK(v))
#endif
    :: rights[me * NB + BLOCK(v)] == READ -> allow_writes(BLOCK(v))
    :: rights[me * NB + BLOCK(v)] == ABSENT && HOME(BLOCK(v)) != me -> fetch(BLOCK(v))
    od
}
#else
inline read_word(v) {
    fetch(BLOCK(v));
    assert(memory[me * NW + v] == truth[v])
}

inline write_word(v) {
    fetch(BLOCK(v));
    allow_writes(BLOCK(v));
    atomic { writes++; memory[me * NW + v] = writes; truth[v] = writes }
}
#endif

proctype task(byte me; byte ops) {
    byte w, n, q, r, v, l, d, h, out, to, from;
    byte known[NP];
    bool changed[NB];
    bool early[NB];
#ifdef STEADY
    bool differs;
#endif
    do
    :: ops > 0 ->
        ops--;
        if
        :: me == NESTED ->
            acquire(1);
            read_word(1);
            write_word(1);
            acquire(0);
            read_word(0);
            unlock(0);
            unlock(1)
        :: else ->
            if
#ifdef ONLY0
            :: atomic { me == 0 -> v = ONLY0 }
#endif
#ifdef ONLY1
            :: atomic { me == 1 -> v = ONLY1 }
#endif
#ifdef ONLY2
            :: atomic { me == 2 -> v = ONLY2 }
#endif
            :: atomic { IS_OPEN(me) -> v = 0 }
#ifndef ONE_LOCK
            :: atomic { IS_OPEN(me) -> v = 1 }
#endif
#ifndef ONE_BLOCK
            :: atomic { IS_OPEN(me) -> v = 2 }
#endif
            fi;
            l = LOCK(v);
            acquire(l);
            read_word(v);
#ifdef WRITES0
            if
            :: me == 0 && (WRITES0 >> ops & 1) -> write_word(v)
            :: me == 0 && (UNDOES0 >> ops & 1) -> undo_word(v)
            :: else
            fi;
#else
            if
            :: write_word(v)
#if defined(STEADY) && !MOVES
            :: true -> undo_word(v)
#endif
            :: true
            fi;
#endif
            unlock(l)
        fi
    :: else -> break
    od;
#ifndef NO_BARRIER
    barrier();
    v = 0;
    do
    :: v < NW -> read_word(v); v++
    :: else -> break
    od
#endif
}

init {
    atomic {
#if MOVES
        home[1] = 1;
#endif
#ifdef WRITES0
        rights[0 * NB + 0] = READ;  // others have fetched it before
        shared[0] = true;
#else
        rights[0 * NB + 0] = WRITE;
#endif
        rights[1 * NB + 1] = WRITE;
        here[0 * NL + 0] = true;
        here[2 * NL + 1] = true;
        run task(0, OPS0);
        run task(1, OPS1);
        run task(2, OPS2)
    }
}
