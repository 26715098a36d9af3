// SPDX-License-Identifier: Apache-2.0
#include "cli/dlm_builds.hpp"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <vector>

#include "cli/program_run.hpp"
#include "sys/file.hpp"
#include "sys/program_file.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{300};

fs::path own_directory() {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

// Installed, or where this was built.
Result<std::string> find_driver() {
    for (const fs::path& place : {own_directory() / HANARE_PROGRAM_DIRECTORY,
                                  own_directory().parent_path() / "compiler/bin"}) {
        const fs::path path = place / "hanare-cc";
        if (access(path.c_str(), X_OK) == 0) return path.string();
    }
    return fail(HANARE_STATUS_NOT_FOUND, "there is no hanare-cc beside this program");
}

Result<std::string> find_sources() {
    for (const fs::path& place :
         {own_directory() / HANARE_BENCH_DIRECTORY, own_directory().parent_path() / "bench/src"}) {
        if (fs::exists(place / "dlm_bench.h")) return place.string();
    }
    return fail(HANARE_STATUS_NOT_FOUND, "the sources of the programs are not installed");
}

}  // namespace

Result<DlmBuilds> DlmBuilds::make(const std::string& directory, sys::Guardian* guardian) {
    HANARE_TRY_ASSIGN(std::string driver, find_driver());
    HANARE_TRY_ASSIGN(std::string sources, find_sources());
    HANARE_TRY_ASSIGN(sys::TemporaryFolder folder,
                      sys::TemporaryFolder::make(directory, "hanare-bench-dlm", guardian));
    return DlmBuilds(std::move(folder), std::move(sources), std::move(driver));
}

Result<std::string> DlmBuilds::plain(const bench::DlmProgram& program, int interrupt_fd) {
    return build(program, Kind::kPlain, interrupt_fd);
}

Result<std::string> DlmBuilds::far(const bench::DlmProgram& program, int interrupt_fd) {
    return build(program, Kind::kFar, interrupt_fd);
}

Result<std::string> DlmBuilds::mapped(const bench::DlmProgram& program, int interrupt_fd) {
    return build(program, Kind::kMapped, interrupt_fd);
}

// They differ in what the word stands for; code that reaches arrays anywhere is the same.
Result<std::string> DlmBuilds::build(const bench::DlmProgram& program, Kind kind,
                                     int interrupt_fd) {
    const bool is_far = kind != Kind::kPlain;
    const char* const ending = kind == Kind::kPlain ? ".plain"
                               : kind == Kind::kFar ? ".far"
                                                    : ".mapped";
    const std::string path = folder_.path() + "/" + program.name + "_" + program.size + ending;
    if (access(path.c_str(), X_OK) == 0) return path;
    std::string compiler = driver_;
    if (!is_far) {
        HANARE_TRY_ASSIGN(compiler, sys::find_program("gcc"));
    }
    std::vector<std::string> arguments = {is_far ? "hanare-cc" : "gcc", "-O3", "-std=gnu11",
                                          "-I" + sources_};
    if (!is_far) {
        arguments.insert(arguments.end(), {"-mcmodel=medium", "-fdata-sections", "-Ddlm="});
    }
    for (const std::string& define : program.defines) arguments.push_back("-D" + define);
    for (const std::string& source : program.sources) arguments.push_back(sources_ + "/" + source);
    arguments.push_back(sources_ + "/final_flush.c");
    if (is_far) {
        arguments.push_back(kind == Kind::kMapped ? "-DFINAL_FLUSH_MAPPED" : "-DFINAL_FLUSH_DLM");
    }
    if (kind == Kind::kMapped) arguments.push_back(sources_ + "/mapped_arrays.c");
    arguments.insert(arguments.end(), {"-o", path, "-lm"});
    sys::FileDescriptor nothing;
    if (const int error = sys::open_unnamed(folder_.path(), nothing); error != 0) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "creating a file in %.150s",
                          folder_.path().c_str());
    }
    // A compiler that is killed leaves its files; there they go with the others.
    const ProgramRun run =
        run_program({.path = compiler,
                     .arguments = arguments,
                     .environment = {"HANARE_CC=gcc", "TMPDIR=" + folder_.path()},
                     .input = nothing.number(),
                     .output = nothing.number(),
                     .cgroup = {},
                     .user = {}},
                    kPatience, interrupt_fd);
    if (run.is_good()) return path;
    return fail(HANARE_STATUS_NOT_SUPPORTED, "compiling %s: %.200s", program.title().c_str(),
                run.last_said().c_str());
}

}  // namespace hanare::cli
