// SPDX-License-Identifier: Apache-2.0
//
// process_vm_readv and process_vm_writev between tasks: what the kernel would copy from one memory
// to the other lies in one.  In tasks: no libc, no vector registers.
#pragma once

#include "hook/rewrite/system_call.hpp"

namespace hanare::space {

struct Task;

// Of task `self`.  kNative where the kernel has to do it.
hook::Verdict answer_copy(const Task& self, hook::SystemCall& call) noexcept;

}  // namespace hanare::space
