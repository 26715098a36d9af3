// SPDX-License-Identifier: Apache-2.0
//
// The handler of system calls of a program that has asked for far memory by itself.
#pragma once

#include "hook/rewrite/system_call.hpp"

namespace hanare::intercept {

hook::Verdict handle_region_call(hook::SystemCall& call);

}  // namespace hanare::intercept
