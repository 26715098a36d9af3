// SPDX-License-Identifier: Apache-2.0
#include "cli/run_program.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace hanare::cli {
namespace {

using Kind = sys::ElfFile::Kind;

int status_of(const Error& error) {
    return error.os_errno == ENOENT ? kExitNotFound : kExitCannotExecute;
}

int print(int status, const std::string& text) {
    std::fprintf(stderr, "hanare: error: %s\n", text.c_str());
    return status;
}

// A loader that cannot load what was linked with the GNU C library.
bool is_of_other_library(const std::string& loader) {
    return loader.substr(loader.find_last_of('/') + 1).starts_with("ld-musl");
}

// As below another `hanare run`: it is static and does what it is for.
bool is_this_program(const std::string& path) {
    std::error_code ignored;
    return std::filesystem::equivalent(path, "/proc/self/exe", ignored);
}

// Why the library cannot get into the program; empty when it can.
std::string obstacle(const sys::ProgramFile& file, bool& preload) {
    preload = false;
    if (!file.privileges.empty()) return file.privileges;
    if (file.elf.kind == Kind::k32Bit) return "is a 32-bit program";
    if (is_of_other_library(file.elf.loader)) return "uses another C library";
    preload = file.elf.kind != Kind::kOtherMachine;  // which exec will refuse, or emulate
    return file.elf.kind == Kind::kStatic ? "is statically linked" : "";
}

}  // namespace

Result<ChosenProgram> choose_program(const std::string& name) {
    HANARE_TRY_ASSIGN(const std::string path, sys::find_program(name));
    ChosenProgram program;
    program.file = sys::inspect_program(path);
    const std::string why = obstacle(program.file, program.preload);
    if (why.empty() || is_this_program(program.file.loaded)) return program;
    const bool is_itself = program.file.loaded == path;
    program.note = (is_itself ? path : program.file.loaded + ", which runs " + path + ",") + " " +
                   why + " and runs in plain memory";
    return program;
}

int report_not_found(const Error& error) { return print(status_of(error), error.text); }

int report_not_started(const ChosenProgram& program, const Error& error) {
    const sys::ProgramFile& file = program.file;
    const std::string beginning = "cannot run " + file.path + ": ";
    if (error.os_errno == ENOENT && !file.missing.empty()) {
        return print(kExitNotFound,
                     beginning + "there is no " + file.missing + ", which it needs to start");
    }
    if (error.os_errno == ENOEXEC && file.elf.kind == Kind::kOtherMachine) {
        return print(kExitCannotExecute,
                     beginning + "it is made for " + sys::machine_name(file.elf.machine));
    }
    return print(status_of(error), error.text);
}

}  // namespace hanare::cli
