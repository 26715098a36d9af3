// SPDX-License-Identifier: Apache-2.0
//
// What can be told of an address by looking at its text.  Any thread.
#pragma once

#include <string>

namespace hanare::sys {

bool is_numeric_address(const std::string& host);
// 0.0.0.0, :: and its like: whoever listens there listens everywhere, and nobody can connect to it.
bool is_unspecified_address(const std::string& host);

}  // namespace hanare::sys
