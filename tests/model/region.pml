// SPDX-License-Identifier: Apache-2.0
//
// The end of a region (Pool::end_region) against those who use it: a fault handler that entered it
// before, and one that evicts, which reaches the region through a frame in the frame table's queues
// and enters it there.  One region with one block, mapped, in one frame.
//
// Afterwards nobody may touch the region; the frame must be with exactly one of the two.
//
// BUG_CLOSING_BEFORE_ENTER: the end does not wait for those who hold the frame table's lock, where
//   a victim's region is looked at (`closing`) and entered in two steps.
// BUG_CLOSING_AFTER_LEAVE: leave() looks at the region after it has counted itself out.

#define READ_ONLY 0
#define WITHDRAWING 1
#define ABSENT 2
#define NOBODY 0

bool lock;             // the frame table's
byte state = READ_ONLY;
bool queued = true;    // the frame is in a queue
bool closing, destroyed;
bool frame_free;
byte users = 1;        // the handler
bool asleep;           // the end, on `users`

#define LOCK atomic { !lock -> lock = true }
#define UNLOCK lock = false
#define TOUCH assert(!destroyed)

inline leave() {
    TOUCH;
#ifdef BUG_CLOSING_AFTER_LEAVE
    atomic { users--; last = (users == 0) };
    if
    :: last ->
        TOUCH;  // region.closing
        if
        :: closing -> asleep = false
        :: else
        fi
    :: else
    fi
#else
    // One word holds the count and the closing flag; the wake-up names only its address.
    atomic { users--; last = (users == 0 && closing) };
    if
    :: last -> asleep = false
    :: else
    fi
#endif
}

proctype Handler() {
    bool last;
    TOUCH;
    leave()
}

proctype Evictor() {
    bool last, seen_closing;
    LOCK;
    if
    :: queued ->
        TOUCH;
        seen_closing = closing;
        if
        :: atomic { !seen_closing && state == READ_ONLY -> state = WITHDRAWING };
            TOUCH;
            users++;
            queued = false;
            UNLOCK;
            TOUCH;  // the pages move, the block is dropped
            atomic {
                TOUCH;
                assert(state == WITHDRAWING);
                state = ABSENT
            };
            LOCK;
            assert(!frame_free && !queued);
            frame_free = true;
            UNLOCK;
            leave()
        :: else -> UNLOCK
        fi
    :: else -> UNLOCK
    fi
}

proctype End() {
    byte seen, word;
    closing = true;
#ifndef BUG_CLOSING_BEFORE_ENTER
    LOCK;
    UNLOCK;
#endif
    do
    :: seen = users;
        if
        :: seen == 0 -> break
        :: else
        fi;
        atomic {
            if
            :: users == seen -> asleep = true
            :: else
            fi
        };
        !asleep
    od;
    word = state;
    assert(word != WITHDRAWING);
    if
    :: word == READ_ONLY ->
        LOCK;
        assert(!frame_free);
        queued = false;
        frame_free = true;
        UNLOCK
    :: else
    fi;
    destroyed = true
}

init {
    atomic {
        run Handler();
        run Evictor();
        run End()
    }
}
