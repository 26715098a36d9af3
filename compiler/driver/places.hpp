// SPDX-License-Identifier: Apache-2.0
//
// Where the parts of the drivers are, seen from the program itself: installed, moved, and in the
// build tree, which looks like an installation.
#pragma once
#include <string>

namespace hanare::driver {

struct Places {
    std::string program;    // this file, whatever name it was called by
    std::string libraries;  // libdlm.a and libhanare.so
    std::string header;     // hanare/compat/dlm.h
    std::string includes;   // of all headers
    std::string script;     // dlm.ld
    std::string linkers;    // a folder in which `ld` is this program
};

// Empty `program`: /proc is not there.
Places find_places();

// Whether the loader looks into that folder by itself.
bool is_of_the_system(const std::string& folder);

}  // namespace hanare::driver
