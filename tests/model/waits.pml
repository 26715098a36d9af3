// SPDX-License-Identifier: Apache-2.0
//
// Condition variables and semaphores between machines (src/dsm/home_waits.hpp) as a Spin model.  What
// one task asks another is one step, as the thread that serves it does it; everything else
// interleaves.  The lock is one that works (coherence.pml), and a step here.
//
// CONDITION: two tasks each take an item, for which they wait by a condition; a third one puts two,
// and signals each, or (BROADCAST) both together.  Nobody sleeps for ever.
// Else, semaphores: task 0 writes and posts to task 1, which waits, writes or not, and posts to task
// 2; task 0 posts to task 2 as well (not with CHAIN), whose waits bring what both have written.
//
// Mutants:  BUG_*, one defect each; run.py expects an error in every one.

#define NP 3

byte waiting[NP];  // the manager's queue of the condition or semaphore
byte waiters;
bool came[NP];

inline enqueue(task) {
    waiting[waiters] = task;
    waiters++
}
// Who has waited longest, into `who`; NP: nobody waits.
inline dequeue(who) {
    if
    :: waiters > 0 ->
        who = waiting[0];
        waiting[0] = waiting[1];
        waiting[1] = waiting[2];
        waiters--
    :: else -> who = NP
    fi
}

#ifdef CONDITION

bool held;
byte items;

inline lock() { atomic { !held -> held = true } }
inline unlock() { held = false }

// Who has the lock next may wake this task before it sleeps.
inline wait() {
#ifdef BUG_UNLOCK_FIRST
    unlock();
    atomic { enqueue(_pid) }
#else
    atomic { enqueue(_pid) }
    unlock();
#endif
#ifdef BUG_CAME_CLEARED_LATE
    came[_pid] = false;
#endif
    atomic { came[_pid] -> came[_pid] = false };
    lock()
}

inline wake_one() {
    atomic { dequeue(other) };
    if
    :: other < NP -> came[other] = true
    :: else
    fi
}

active [2] proctype taker() {
    lock();
#ifdef BUG_LOOK_ONCE
    if
    :: items == 0 -> wait()
    :: else
    fi;
#else
    do
    :: items == 0 -> wait()
    :: else -> break
    od;
#endif
    assert(items > 0);
    items--;
    unlock()
}

active proctype putter() {
    byte other;
#ifdef BROADCAST
    lock();
    items = 2;
    do
    :: wake_one();
        if :: other == NP -> break :: else fi
    od;
    unlock()
#else
    byte put;
    do
    :: put < 2 ->
        lock();
        items++;
        put++;
        wake_one();
        unlock()
    :: else -> break
    od
#endif
}

#else

typedef positions { byte at[NP] };

positions known[NP];   // of each task
positions merged[NP];  // of semaphores by number: of all that have posted so far
positions sent[NP];    // with what wakes a task
byte count[NP];

inline write() { known[me].at[me]++ }

inline merge(number) {
    i = 0;
    do
    :: i < NP ->
#ifdef BUG_OWN_POSITION
        if :: i == me && known[me].at[i] > merged[number].at[i] -> merged[number].at[i] = known[me].at[i]
           :: else fi;
#else
#ifdef BUG_LAST_POST
        merged[number].at[i] = known[me].at[i];
#else
        if :: known[me].at[i] > merged[number].at[i] -> merged[number].at[i] = known[me].at[i]
           :: else fi;
#endif
#endif
        i++
    :: else -> break
    od;
    i = 0
}

inline copy(to, from) {
    to.at[0] = from.at[0];
    to.at[1] = from.at[1];
    to.at[2] = from.at[2]
}

// Task `number` alone waits for the semaphore of that number.
inline post(number) {
    atomic {
        merge(number);
        if
        :: waiters > 0 && waiting[0] == number -> dequeue(other); copy(carried, merged[number])
        :: waiters > 1 && waiting[1] == number ->
            other = number; waiting[1] = waiting[2]; waiters--; copy(carried, merged[number])
        :: else -> other = NP; count[number]++
        fi
    };
    if
    :: other < NP -> atomic { copy(sent[other], carried); came[other] = true }
    :: else
    fi
}

// Of each task's log what is new.
inline learn(from) {
    atomic {
        i = 0;
        do
        :: i < NP ->
            if :: from.at[i] > known[me].at[i] -> known[me].at[i] = from.at[i] :: else fi;
            i++
        :: else -> break
        od;
        i = 0
    }
}

inline take() {
    atomic {
        if
        :: count[me] > 0 -> count[me]--; copy(carried, merged[me]); is_taken = true
        :: else -> enqueue(me); is_taken = false
        fi
    };
    if
    :: !is_taken ->
#ifdef BUG_CAME_CLEARED_LATE
        came[me] = false;
#endif
        atomic { came[me] -> came[me] = false; copy(carried, sent[me]) }
    :: else
    fi;
    learn(carried)
}

proctype task(byte me) {
    byte i, other;
    bool is_taken;
    positions carried;
    if
    :: me == 0 ->
        write();
        post(1);
#ifndef CHAIN
        write();
        post(2)
#endif
    :: me == 1 ->
        take();
        assert(known[1].at[0] >= 1);
        if
        :: write()
        :: true
        fi;
        post(2)
    :: me == 2 ->
        take();
#ifdef CHAIN
        // By way of task 1, who has only learnt it.
        assert(known[2].at[0] == 1);
#else
        take();
        assert(known[2].at[0] == 2);
#endif
        assert(known[2].at[1] == known[1].at[1])
    fi
}

init { atomic { run task(0); run task(1); run task(2) } }

#endif
