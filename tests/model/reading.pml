// SPDX-License-Identifier: Apache-2.0
//
// Reads that faulting threads start and complete themselves (src/pager/fault/fault_transfers.hpp) as a
// Spin model: one thread starts two reads and then waits for the second, another waits for the
// first, a third ends the region.  The device completes in any order.
//
// What is one step here is one atomic operation or system call there.  Spinning is left out: a
// thread that spins does what poll() does, which is to lead without waiting.
//
// Mutants:  BUG_*, one defect each; run.py expects an error in every one.

#define NB 2
#define STARTER 0
#define WAITER 1
#define CLOSER 2

mtype = {ABSENT, READING, STAGED};
mtype state[NB] = ABSENT;
byte device[NB];  // 0 nothing, 1 under way, 2 arrived, 3 collected
short in_flight;  // as FaultTransfers::in_flight_
byte reading;     // Region::blocks_in_transfer
bool closing;
bool leading;
byte followers, changes;
byte sleeping;  // one bit per thread
bool started;   // the starter has done all it will do

byte leaders;  // ghost

#define ARRIVED (device[0] == 2 || device[1] == 2)

// FaultTransfers::complete_next with `wait`; `any` is the caller's.
inline complete_next() {
    any = false;
    if
#ifndef BUG_WAIT_FOR_NOTHING
    :: atomic { in_flight <= 0 -> skip }
    :: atomic { in_flight > 0 -> skip };
#else
    :: true;
#endif
       atomic {
           ARRIVED;  // io_getevents sleeps until then
           if
           :: device[0] == 2 -> got = 0
           :: device[1] == 2 -> got = 1
           fi;
           assert(device[got] == 2);
           device[got] = 3
       }
       in_flight--;
       assert(state[got] == READING);
       state[got] = STAGED;
       reading--;
       any = true
    fi
}

inline stop_leading() {
    d_step { leaders--; leading = false }
#ifndef BUG_NO_WAKE
    if
    :: followers == 0
    :: else -> changes++; sleeping = 0
    fi
#endif
}

// FaultTransfers::wait_while; `waiting` is what still_waiting() looks at.
#define WAIT_WHILE(me, waiting) \
    do \
    :: !(waiting) -> break \
    :: (waiting) -> \
        if \
        :: d_step { !leading -> leading = true; leaders++; assert(leaders == 1) } \
           complete_next(); \
           stop_leading(); \
           if  /* yields until there is something to do */ \
           :: any \
           :: !any && (in_flight > 0 || !(waiting)) \
           fi \
        :: leading -> \
           followers++; \
           seen = changes; \
           if \
           :: FOLLOWS && (waiting) -> \
              if \
              :: atomic { changes == seen -> sleeping = sleeping | (1 << me) } \
                 atomic { (sleeping & (1 << me)) == 0 -> skip } \
              :: changes != seen \
              fi \
           :: else \
           fi; \
           followers-- \
        fi \
    od

#ifdef BUG_FOLLOW_NOBODY
#define FOLLOWS true
#else
#define FOLLOWS leading
#endif

// Pager::start_fill and FaultTransfers::start.
inline start(b) {
#ifndef BUG_CLOSED_UNSEEN
    reading++;
#endif
    if
    :: closing -> 
#ifndef BUG_CLOSED_UNSEEN
        reading--
#else
        skip
#endif
    :: !closing ->
#ifdef BUG_CLOSED_UNSEEN
        reading++;
#endif
        state[b] = READING;
        if
        :: device[b] = 1; in_flight++
        :: state[b] = ABSENT; reading--  // the kernel refused
        fi
    fi
}

active proctype Starter() {
    byte got, seen;
    bool any;
    start(0);
    start(1);
    started = true;
    WAIT_WHILE(STARTER, state[1] == READING)
}

active proctype Waiter() {
    byte got, seen;
    bool any;
    (state[0] != ABSENT || started);
    WAIT_WHILE(WAITER, state[0] == READING)
}

active proctype Closer() {
    byte got, seen;
    bool any;
    closing = true;
    WAIT_WHILE(CLOSER, reading > 0);
    // From here on the region is gone.
    assert(device[0] != 1 && device[0] != 2 && device[1] != 1 && device[1] != 2);
    assert(state[0] != READING && state[1] != READING)
}

active proctype Device() {
end:
    do
    :: atomic { device[0] == 1 -> device[0] = 2 }
    :: atomic { device[1] == 1 -> device[1] = 2 }
    od
}
