// SPDX-License-Identifier: Apache-2.0
//
// What all ways to open a server have in common.
#pragma once

#include <cstdint>
#include <string>

namespace hanare::remote {

// How long who waits for an answer looks for it: longer than one takes, where the server's thread
// runs.
inline constexpr uint32_t kSpin_us = 50;

// What a server's status calls this process: the program and where it runs.
std::string client_name();

}  // namespace hanare::remote
