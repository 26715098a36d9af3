// SPDX-License-Identifier: Apache-2.0
//
// Programs before they run: where execvp(3) would find one, and what the kernel would load for it.
// What is found can change until it runs, so this is for choosing and for messages; exec decides.
// Any thread; the environment must not change meanwhile.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/elf_file.hpp"

namespace hanare::sys {

// The path of the program, searched for in $PATH as execvp(3) does.  `os_errno` of an error is what
// exec would have failed with: ENOENT, EACCES.
Result<std::string> find_program(const std::string& name);

struct ProgramFile {
    std::string path;        // of the program
    std::string loaded;      // what the kernel loads: the program, or the interpreter of a text
    std::string missing;     // an interpreter or a loader that is named and not there
    ElfFile elf;             // of `loaded`
    bool is_script = false;  // begins with "#!"
    bool is_binary = false;  // neither a script nor ELF, nor anything a shell could read
    // "is setuid", "is setgid" or "has file capabilities" where that would take effect: the loader
    // then ignores LD_PRELOAD.
    std::string privileges;
};

// A file that cannot be read looks like nothing in particular.
ProgramFile inspect_program(const std::string& path);

}  // namespace hanare::sys
