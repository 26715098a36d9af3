// SPDX-License-Identifier: Apache-2.0
//
// The compiler behind a driver.
#pragma once
#include <string>

#include "arguments.hpp"
#include "places.hpp"

namespace hanare::driver {

enum class Language { kC, kCxx, kFortran };
enum class Kind { kGnu, kClang };

struct Compiler {
    Words command;  // with what HANARE_CC adds to its name: "ccache gcc"
    Kind kind = Kind::kGnu;
};

// What HANARE_CC, HANARE_CXX or HANARE_FC name, else the first there is.  Empty `command`: none,
// having said why.
Compiler choose_compiler(Language language, const Places& places);

// Asks it what it is, and whether it makes what `dlm` arrays need with such arguments.  False,
// having said why: it does not.
bool ask(Compiler& compiler, const Arguments& arguments, Language language);

// The whole command: what Hanare adds, and the arguments.
Words command_line(const Compiler& compiler, const Arguments& arguments, Language language,
                   const Places& places, const Words& linker_options);

// Where it finds a linker: `ld`, or the other one that the arguments want.
std::string linker_of(const Compiler& compiler, const Arguments& arguments);

}  // namespace hanare::driver
