// SPDX-License-Identifier: Apache-2.0
#include "sys/program_file.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "sys/file.hpp"

namespace hanare::sys {
namespace {

constexpr const char* kShell = "/bin/sh";  // as execvp(3)
constexpr size_t kHeadBytes = 256;         // BINPRM_BUF_SIZE: what the kernel looks at
constexpr int kInterpretersMax = 5;        // BINPRM_MAX_RECURSION

// What exec would say about the file, 0 when it would try.
int refusal(const std::string& path) {
    struct stat status = {};
    if (stat(path.c_str(), &status) != 0) return errno;
    if (!S_ISREG(status.st_mode)) return EACCES;
    return faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

std::unexpected<Error> refused(const std::string& path, int error) {
    struct stat status = {};
    if (error == EACCES && stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
        auto failure = fail(HANARE_STATUS_INVALID_ARGUMENT, "cannot run %.200s: it is a directory",
                            path.c_str());
        failure.error().os_errno = error;
        return failure;
    }
    return fail_errno(HANARE_STATUS_INVALID_ARGUMENT, error, "cannot run %.200s", path.c_str());
}

std::string search_path() {
    if (const char* const path = std::getenv("PATH"); path != nullptr) return path;
    std::string standard(confstr(_CS_PATH, nullptr, 0), '\0');
    standard.resize(confstr(_CS_PATH, standard.data(), standard.size()));
    return standard.c_str();
}

// As execvp(3): what is not there or cannot be reached is passed over.
bool goes_on_after(int error) {
    return error == EACCES || error == ENOENT || error == ENOTDIR || error == ESTALE ||
           error == ENODEV || error == ETIMEDOUT;
}

FileDescriptor open_program(const std::string& path) {
    return FileDescriptor(
        above_standard(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)));
}

std::string read_head(const FileDescriptor& file) {
    std::string head(kHeadBytes, '\0');
    const ssize_t got = file.is_open() ? pread(file.number(), head.data(), head.size(), 0) : 0;
    head.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return head;
}

// "#! /bin/sh -e" names /bin/sh; empty when it names nothing.
std::string interpreter_of(std::string_view head) {
    constexpr std::string_view kMark = "#!";
    if (!head.starts_with(kMark)) return "";
    const std::string_view line = head.substr(0, head.find('\n'));
    const size_t start = line.find_first_not_of(" \t", kMark.size());
    if (start == line.npos) return "";
    return std::string(line.substr(start, line.find_first_of(" \t", start) - start));
}

// As shells tell text from other files: by a zero byte in the first line.
bool looks_binary(std::string_view head) {
    return head.substr(0, head.find('\n')).find('\0') != std::string_view::npos;
}

// As the kernel decides about AT_SECURE.
std::string gained_privileges(const std::string& path) {
    struct stat status = {};
    struct statvfs system = {};
    if (stat(path.c_str(), &status) != 0 || statvfs(path.c_str(), &system) != 0) return "";
    const bool are_ignored =
        (system.f_flag & ST_NOSUID) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
    constexpr mode_t kSetGroup = S_ISGID | S_IXGRP;
    const bool sets_user = !are_ignored && (status.st_mode & S_ISUID) != 0;
    const bool sets_group = !are_ignored && (status.st_mode & kSetGroup) == kSetGroup;
    if ((sets_user ? status.st_uid : geteuid()) != getuid()) return "is setuid";
    if ((sets_group ? status.st_gid : getegid()) != getgid()) return "is setgid";
    const bool has_capabilities = !are_ignored && getuid() != 0 &&
                                  getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
    return has_capabilities ? "has file capabilities" : "";
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        if (const int error = refusal(name); error != 0) return refused(name, error);
        return name;
    }
    std::string closed;  // found, but may not be executed
    const std::string path = search_path();
    for (size_t start = 0; !name.empty() && start <= path.size();) {
        const size_t end = std::min(path.find(':', start), path.size());
        const std::string directory = path.substr(start, end - start);
        const std::string candidate = directory.empty() ? name : directory + "/" + name;
        const int error = refusal(candidate);
        // An empty entry is the working directory.
        if (error == 0) return directory.empty() ? "./" + name : candidate;
        if (!goes_on_after(error)) return refused(candidate, error);
        if (error == EACCES && closed.empty()) closed = candidate;
        start = end + 1;
    }
    if (!closed.empty()) return refused(closed, EACCES);
    auto failure =
        fail(HANARE_STATUS_NOT_FOUND, "there is no program '%.200s' in $PATH", name.c_str());
    failure.error().os_errno = ENOENT;
    return failure;
}

ProgramFile inspect_program(const std::string& path) {
    ProgramFile program;
    program.path = path;
    program.loaded = path;
    FileDescriptor file = open_program(path);
    std::string head = read_head(file);
    program.is_script = head.starts_with("#!");
    for (int depth = 0; depth < kInterpretersMax; ++depth) {
        const std::string interpreter = interpreter_of(head);
        if (interpreter.empty()) break;
        program.loaded = interpreter;
        if (access(interpreter.c_str(), F_OK) != 0) program.missing = interpreter;
        file = open_program(interpreter);
        head = read_head(file);
    }
    program.is_binary = head.starts_with("\177ELF") || looks_binary(head);
    const bool is_text = !program.is_script && !program.is_binary;
    if (is_text && access(path.c_str(), R_OK) == 0) {
        program.loaded = kShell;
        file = open_program(kShell);
    }
    if (file.is_open()) program.elf = inspect_elf(file.number());
    if (!program.elf.loader.empty() && access(program.elf.loader.c_str(), F_OK) != 0) {
        program.missing = program.elf.loader;
    }
    program.privileges = gained_privileges(program.loaded);
    return program;
}

}  // namespace hanare::sys
