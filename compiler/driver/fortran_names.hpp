// SPDX-License-Identifier: Apache-2.0
//
// Fortran has no word before a declaration: the arrays are named to the linker.  One thread.
#pragma once
#include <optional>
#include <string>

#include "message.hpp"
#include "program_file.hpp"

namespace hanare::driver {

// Names apart by blanks or commas, '#' before comments; lower case, COMMON blocks without slashes.
Words split_names(const std::string& text);
// The same of a file; nullopt: it cannot be read.
std::optional<Words> read_names(const std::string& path);

// The first that cannot be one: what is wrong.
std::string wrong_name(const Words& names);

// dlm.ld with other input sections: those of the names, or with none all large ones.
std::string script_for(const std::string& script, const Words& names);

// What a program linked with that script has of the names.
struct NamedData {
    std::vector<DataSymbol> common;  // COMMON blocks, which no script can name
    std::string error;               // a name that is not there, or is not large: why
};
NamedData find_named(const ProgramFile& program, const Words& names);

// An object file that defines such COMMON blocks as `dlm` arrays; those of the program's own
// objects become the same.
std::string common_object(const std::vector<DataSymbol>& common);

}  // namespace hanare::driver
