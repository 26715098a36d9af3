// SPDX-License-Identifier: Apache-2.0
//
// What other threads of this process are doing, and signals to threads.  Async-signal-safe, no
// cancellation points.
#pragma once

#include <array>
#include <cstdint>

namespace hanare::sys {

uint32_t current_thread_id() noexcept;

// Of the calling thread, as in /proc/PID/comm; ends with a zero.
std::array<char, 16> thread_name() noexcept;

enum class ThreadState : uint8_t {
    kRunning,       // also one that the kernel keeps awake in its fault because of a signal
    kInSystemCall,  // asleep there
    kInFault,       // asleep in a fault of its own code; or the kernel does not tell
};
// Waits some milliseconds for a running thread to fall asleep: one that faults has told of
// it a moment before, and may lose its core in between.
ThreadState thread_state(uint32_t thread_id) noexcept;

// Sends a signal to a thread of this process.
void signal_thread(uint32_t thread_id, int signal_number) noexcept;
// Of another process of this user; false: there is no such thread any more.
bool signal_thread_of(int process_id, uint32_t thread_id, int signal_number) noexcept;

}  // namespace hanare::sys
