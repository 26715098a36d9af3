// SPDX-License-Identifier: Apache-2.0
//
// LifeLock: tells other processes whether the memory of a process still exists.  It is a lock on a
// byte of a file that lasts as long as an address space: until the process ends, however that
// happens, or its memory is replaced by exec.
//
// The lock belongs to an open file description (F_OFD_SETLK) of its own, and what keeps that open
// is a mapping of the file without access rights, not a descriptor: programs that close all
// descriptors they know nothing of are common, and would seem dead.  The kernel lets go of a
// mapping only when no thread can write to the memory any more, and after reads and writes started
// by io_submit() have ended.
//
// All functions are async-signal-safe, leave errno alone and take no time but that of their system
// calls.  An object is used by one thread at a time.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hanare::sys {

class LifeLock {
public:
    // Holds nothing.
    LifeLock() = default;
    LifeLock(LifeLock&& other) noexcept : mapping_(std::exchange(other.mapping_, nullptr)) {}
    LifeLock& operator=(LifeLock&& other) noexcept {
        std::swap(mapping_, other.mapping_);
        return *this;
    }
    ~LifeLock() { release(); }

    // Takes lock `number` of the file, of which any descriptor will do; it is opened anew by way of
    // /proc/self/fd.  The bytes lie far behind every content.  Returns 0 or an errno value: EAGAIN
    // when another address space has the lock.
    static int take(int file, uint32_t number, LifeLock& lock) noexcept;
    // Whether any address space, this one included, has lock `number`.
    static int look(int file, uint32_t number, bool& is_taken) noexcept;

    bool is_held() const noexcept { return mapping_ != nullptr; }

    // A child made by fork has the lock, too: it is free when both have let go.  Not after this.
    void keep_from_children() const noexcept;
    void release() noexcept;
    // In a child that has not got it, where something else may be mapped at the place.
    void forget() noexcept { mapping_ = nullptr; }

private:
    void* mapping_ = nullptr;  // one OS page without access rights
};

// Also of one that has ended and that its parent has not waited for.
bool process_exists(pid_t pid) noexcept;

}  // namespace hanare::sys
