// SPDX-License-Identifier: Apache-2.0
//
// What the arguments of a compiler say about what it will do.  Hanare's own are taken out; the
// others are kept as they are.
#pragma once
#include <optional>
#include <string>

#include "message.hpp"

namespace hanare::driver {

struct Arguments {
    Words rest;  // what goes to the compiler

    bool dry_run = false;
    bool verbose = false;
    bool help = false;
    std::optional<std::string> dlm_names;  // --dlm
    std::optional<std::string> dlm_list;   // --dlm-list: a file

    bool has_input = false;          // source, object, library or standard input
    bool has_linkable = false;       // and not only headers
    bool stops_early = false;        // -c, -E, -S: no link
    bool only_preprocesses = false;  // -E
    bool only_answers = false;       // -print-search-dirs, --version and the like
    bool colours_chosen = false;     // -fdiagnostics-color and the like
    bool separates_data = true;      // no -fno-data-sections
    bool moves_freely = false;       // -fPIC, -fPIE, and none of their opposites later
    Words target;                    // what changes the processor: -m32, --target=
    std::string code_model;          // of -mcmodel=, the last
    std::string linker;              // of -fuse-ld=, the last
    std::string linker_path;         // of --ld-path=, clang's
    std::string error;               // Hanare's own are wrong: why
};

// Files that are named (@FILE) are looked into.  `is_fortran`: --dlm and --dlm-list are Hanare's.
Arguments read_arguments(const Words& words, bool is_fortran);

// The words with those of files (@FILE) in their place, as compilers give them to linkers.
Words expand_files(const Words& words);
// The text of a file that reads as these words.
std::string text_of_file(const Words& words);

}  // namespace hanare::driver
