// SPDX-License-Identifier: Apache-2.0
//
// libipsec-mb, loaded into a program only where there is a secret, and so that it uses neither the
// program's functions nor its memory: it is called by what is defined in cipher_library.cpp in the
// place of its three functions that fabric/aes_gcm.cpp uses.
#pragma once

#include "base/result.hpp"

namespace hanare::run {

// Before the program begins.
Result<void> load_cipher_library();

}  // namespace hanare::run
