// SPDX-License-Identifier: Apache-2.0
#include "intercept/fork_steps.hpp"

#include <cerrno>
#include <cstdlib>
#include <unistd.h>

#include "base/thread_annotations.hpp"
#include "intercept/bounce.hpp"
#include "intercept/intercept.hpp"
#include "pager/fault/holds.hpp"
#include "sys/process_lock.hpp"
#include "sys/raw_thread.hpp"
#include "sys/signal.hpp"
#include "sys/thread_count.hpp"
#include "telemetry/raw_line.hpp"

namespace hanare::intercept {

namespace {

// One fork at a time.
constinit sys::ProcessLock turn;

void block_all_signals(sigset_t* saved) noexcept {
    sigset_t all;
    sigfillset(&all);
    sys::set_signal_mask(all, saved);
}

}  // namespace

void prepare_fork(void* context) HANARE_NO_THREAD_SAFETY_ANALYSIS {
    auto& steps = *static_cast<ForkSteps*>(context);
    Space& space_of_program = *space();
    if (steps.has_stack) {
        if (!space_of_program.is_open()) return;
        telemetry::RawLine line;
        line.text("hanare: a child with memory and a stack of its own (clone) is not supported");
        line.write_stderr();
        steps.error = EINVAL;
        return;
    }
    block_all_signals(&steps.mask);
    turn.lock();
    if (!space_of_program.prepare_fork(&steps.has_row, &steps.row)) {
        turn.unlock();
        sys::set_signal_mask(steps.mask, nullptr);
        steps.error = EAGAIN;
    }
}

void finish_fork(void* context) HANARE_NO_THREAD_SAFETY_ANALYSIS {
    auto& steps = *static_cast<ForkSteps*>(context);
    space()->finish_fork(steps.has_row, steps.row, static_cast<int>(steps.child));
    turn.unlock();
    sys::set_signal_mask(steps.mask, nullptr);
}

void finish_fork_in_child(void* context) HANARE_NO_THREAD_SAFETY_ANALYSIS {
    auto& steps = *static_cast<ForkSteps*>(context);
    sys::OwnThread::forget_all();
    sys::note_memory_owner();
    pager::holds.forget_others_in_child();
    BounceFrame::forget_others_in_child();
    const int error = space()->become_child(steps.has_row, steps.row);
    if (error != 0) {
        telemetry::RawLine line;
        line.text("hanare: a forked child cannot go on with far memory, errno ")
            .signed_decimal(error)
            .text(": it ends");
        line.write_stderr();
        _exit(70);
    }
    sys::set_signal_mask(steps.mask, nullptr);
}

}  // namespace hanare::intercept
