// SPDX-License-Identifier: Apache-2.0
//
// What compilers run in the place of their linker.  It knows the objects, those that a compiler has
// just made included; runs the real linker with compiler/link/dlm.ld, looks at what came, and when
// that has `dlm` arrays links again with the runtime.
#pragma once
#include <string>

#include "message.hpp"

namespace hanare::driver {

// How the drivers tell it what it has to know; no linker has such options.
inline const std::string kLinkerName = "--hanare-name=";
inline const std::string kLinkerPath = "--hanare-linker=";
inline const std::string kLinkerVerbose = "--hanare-verbose";
inline const std::string kLinkerAll = "--hanare-all";
inline const std::string kLinkerNames = "--hanare-names=";
inline const std::string kLinkerList = "--hanare-list=";

// The exit status.
int link(const Words& arguments);

}  // namespace hanare::driver
