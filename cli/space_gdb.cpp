// SPDX-License-Identifier: Apache-2.0
//
// `hanare space gdb`: gdb on a task.  The kernel knows one program for all tasks of a space, the
// root's, so gdb is told which files lie in the task's partition, and where.
#include "cli/space_gdb.hpp"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

#include "config/rules.hpp"
#include "space/layout.hpp"
#include "sys/become_program.hpp"
#include "sys/helper_program.hpp"
#include "sys/program_file.hpp"
#include "sys/text_file.hpp"

namespace hanare::cli {
namespace {

constexpr config::Range kProcesses(1, 1 << 30);
constexpr int kAnswerMs = 60'000;

std::vector<std::string> environment() {
    std::vector<std::string> all;
    for (char** variable = environ; *variable != nullptr; ++variable) all.emplace_back(*variable);
    return all;
}

// Of the task's first thread, which is in the partition whatever it does.
Result<uint64_t> stack_pointer_of(const std::string& gdb, const std::string& process) {
    HANARE_TRY_ASSIGN(
        sys::HelperProgram asked,
        sys::HelperProgram::start(
            {.path = "/bin/sh",
             // What it has to say of the place is not asked for.
             .arguments = {"sh", "-c", "exec \"$0\" \"$@\" 2>/dev/null", gdb, "-nx", "-batch", "-p",
                           process, "-ex", "printf \"at %lx\\n\", (long)$sp"},
             .environment = environment()}));
    for (;;) {
        const Result<std::string> line = asked.read_line(kAnswerMs);
        if (!line) {
            return fail(HANARE_STATUS_SYSTEM, "gdb cannot attach to process %s", process.c_str());
        }
        uint64_t place = 0;
        if (std::sscanf(line->c_str(), "at %" SCNx64, &place) != 1) continue;
        asked.dismiss();
        asked.end(kAnswerMs);
        return place;
    }
}

// The files in the partition, and where the first byte of each is.
std::map<std::string, uint64_t> files_in(const std::string& maps, uint64_t partition) {
    std::map<std::string, uint64_t> files;
    std::istringstream lines(maps);
    for (std::string line; std::getline(lines, line);) {
        uint64_t begin = 0;
        uint64_t offset = 0;
        int path = 0;
        const int found = std::sscanf(line.c_str(), "%" SCNx64 "-%*x %*s %" SCNx64 " %*s %*u %n",
                                      &begin, &offset, &path);
        if (found != 2 || offset != 0 || line.size() <= static_cast<size_t>(path)) continue;
        const std::string name = line.substr(static_cast<size_t>(path));
        if (name[0] != '/' || begin < partition || begin - partition >= space::kPartitionBytes) {
            continue;
        }
        if (sys::inspect_program(name).elf.kind != sys::ElfFile::Kind::kNone) {
            files.try_emplace(name, begin);
        }
    }
    return files;
}

}  // namespace

Error become_gdb(const std::string& process, const std::vector<std::string>& words) {
    const auto parsed = kProcesses.parse("PID", process);
    if (!parsed) return parsed.error();
    const auto gdb = sys::find_program("gdb");
    if (!gdb) return fail(HANARE_STATUS_NOT_FOUND, "gdb is not there; install gdb").error();
    const auto maps = sys::read_text_file("/proc/" + process + "/maps");
    if (!maps)
        return fail(HANARE_STATUS_NOT_FOUND, "process %s: not there", process.c_str()).error();
    const auto place = stack_pointer_of(*gdb, process);
    if (!place) return place.error();
    const uint64_t partition = *place / space::kPartitionBytes * space::kPartitionBytes;
    const auto files = files_in(*maps, partition);
    if (files.empty()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "process %s is no task of a space",
                    process.c_str())
            .error();
    }
    std::vector<std::string> arguments = {*gdb, "-p", process, "-ex", "set confirm off"};
    for (const auto& [name, begin] : files) {
        char text[32];
        std::snprintf(text, sizeof text, "0x%" PRIx64, begin);
        arguments.insert(arguments.end(), {"-ex", "add-symbol-file \"" + name + "\" -o " + text});
    }
    arguments.insert(arguments.end(), words.begin(), words.end());
    return sys::become_program(arguments, 0);
}

}  // namespace hanare::cli
