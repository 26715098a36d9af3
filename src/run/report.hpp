// SPDX-License-Identifier: Apache-2.0
//
// The process's row of the page that `hanare run` shares (telemetry/run_page.hpp), and its part of
// the budget.  Any thread.
#pragma once

#include <cstdint>

#include "control/answer.hpp"
#include "pager/fault/pager.hpp"

namespace hanare::run {

// Finds the page, if there is one.  Once, before the others.  Where there is one that cannot be
// found, that is said, by one process for all that it starts, and a small part of `local_bytes` is
// all that this one takes.
void open_report(uint64_t local_bytes);

// Writes how things are now, and adapts the budget, if memory has been adopted.
void report_figures() noexcept;

// From now on this process has an attendant.
void note_attended() noexcept;
// Whether the budget belongs to this process alone.
bool is_alone() noexcept;
// Who has no attendant asks for its part of the budget itself, when it needs memory.
void share_budget(pager::Pager& pager) noexcept;
// Before a fork: room is made for what the kernel needs for the child, and for what that copies of
// its parent's memory before it has a part of the budget.  And after it, in the parent; `child`:
// its process, or negative.
void set_aside_for_child() noexcept;
void note_child(int child) noexcept;
// In the child of a fork.
void begin_child_report() noexcept;

// Whether this process tells its figures itself, at a control socket.
void note_answers(bool answers) noexcept;

// As members of an object, what report_figures() has written last.
void tell_figures(control::Answer& answer) noexcept;
// As objects, those of the run's other processes that do not answer themselves.
void tell_others(control::Answer& answer) noexcept;

}  // namespace hanare::run
