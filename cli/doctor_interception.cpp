// SPDX-License-Identifier: Apache-2.0
//
// The checks of what `hanare run` needs: whether its library gets into programs and can catch their
// system calls is tried out with one; and what else may catch or refuse system calls here.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "cli/doctor_checks.hpp"
#include "cli/run_environment.hpp"
#include "sys/child.hpp"
#include "sys/clock.hpp"

namespace hanare::cli {

namespace {

using sys::Platform;

constexpr uint64_t kTrialTimeout_ns = 20'000'000'000;

// All that the trial says; nullopt if that does not end in time.
std::optional<std::string> read_all(const sys::Child& child) {
    const uint64_t end_ns = sys::now_ns() + kTrialTimeout_ns;
    std::string text;
    for (uint64_t now = sys::now_ns(); now < end_ns; now = sys::now_ns()) {
        pollfd state = {.fd = child.output_fd(), .events = POLLIN, .revents = 0};
        poll(&state, 1, static_cast<int>((end_ns - now) / 1'000'000) + 1);
        if (state.revents == 0) continue;
        char part[4096];
        const ssize_t got = read(child.output_fd(), part, sizeof part);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return text;
        text.append(part, static_cast<size_t>(got));
    }
    return std::nullopt;
}

// `hanare run` itself, with a program that does nothing.
Result<std::string> try_run(const config::Options& options) {
    std::vector<std::string> command = {"hanare", "run", "--verbose"};
    for (const config::OptionRow& row : config::option_rows()) {
        command.push_back(row.flag + "=" + config::value_text(options, row.id));
    }
    for (const char* const argument : {"--", "/bin/sh", "-c", ":"}) command.emplace_back(argument);
    HANARE_TRY_ASSIGN(
        const sys::Child child,
        sys::Child::start(command, sys::Child::Input::kInherited, sys::Child::Output::kWithErrors));
    if (auto said = read_all(child)) return *said;
    return fail(HANARE_STATUS_SYSTEM, "a trial did not end");
}

// The line with that word, without what stands in front of every line.
std::string line_with(const std::string& text, const char* word) {
    const size_t at = text.find(word);
    if (at == text.npos) return "";
    const size_t before = text.rfind('\n', at);
    const size_t begin = before == text.npos ? 0 : before + 1;
    std::string line = text.substr(begin, text.find('\n', at) - begin);
    for (const char* const prefix : {"hanare: ", "warn: ", "error: "}) {
        if (line.starts_with(prefix)) line.erase(0, std::strlen(prefix));
    }
    return line;
}

// "573 system calls of 3 modules are caught, 3 are not".
std::string caught_in(const std::string& said) {
    const std::string line = line_with(said, " are caught");
    return line.substr(0, line.find(';'));
}

std::string why_not(const std::string& said) {
    for (const char* const word : {"cannot be preloaded", "plain memory", "error: "}) {
        if (const std::string line = line_with(said, word); !line.empty()) return line;
    }
    return said.empty() ? "the trial said nothing" : said.substr(0, said.find('\n'));
}

std::string refused_here(const Platform& platform) {
    std::string text;
    const auto add = [&](bool is_refused, const char* name) {
        if (is_refused) text += (text.empty() ? "" : ", ") + std::string(name);
    };
    add(!platform.userfault.available, "userfaultfd");
    add(platform.uring_errno != 0, "io_uring");
    add(platform.user_dispatch_errno != 0, "user dispatch");
    return text;
}

}  // namespace

Finding check_programs(const config::Options& options) {
    Finding finding;
    finding.check = "hanare run";
    const auto library = find_run_library();
    if (!library) {
        finding.found = library.error().text;
        finding.use = "nothing: programs cannot be run as they are";
        finding.change = "install Hanare again, where everybody may read it";
        return finding;
    }
    const auto said = try_run(options);
    const std::string caught = said ? caught_in(*said) : "";
    if (!caught.empty()) {
        finding.found = "LD_PRELOAD works; in a trial " + caught;
        finding.use =
            "rewrites system calls where they stand, without ptrace; keeps memory from 8 MiB on";
        return finding;
    }
    finding.found = "does not work: " + (said ? why_not(*said) : std::string(said.error().text));
    finding.use = "lets programs run in plain memory, or not at all";
    finding.change =
        sys::forbids_execution(*library)
            ? "the library on a file system that is not mounted noexec"
            : "what refuses it: a security module, a sanitizer, a libc that is not glibc";
    return finding;
}

Finding check_seccomp(const Platform& platform) {
    if (!platform.is_filtered) {
        return {"seccomp", "no filter", "nothing: no system call is refused for that reason", ""};
    }
    const std::string refused = refused_here(platform);
    if (refused.empty()) {
        return {"seccomp", "a filter, which refuses nothing of what is used",
                "all that it does elsewhere", ""};
    }
    return {"seccomp", "a filter; refused: " + refused,
            "does without, more slowly; programs under hanare run inherit the filter",
            "a profile that allows them (docker run --security-opt seccomp=FILE)"};
}

Finding check_user_dispatch(const Platform& platform) {
    return {"user dispatch",
            platform.user_dispatch_errno == 0
                ? "offered"
                : std::string("refused: ") + std::strerror(platform.user_dispatch_errno),
            "begins programs sooner: their first system calls cost a signal each, then they are "
            "rewritten; those that cannot be are the kernel's, and fail with EFAULT on far memory "
            "that is absent",
            ""};
}

Finding check_ptrace(const Platform& platform) {
    Finding finding;
    finding.check = "ptrace";
    if (!platform.ptrace_scope) {
        finding.found = "not restricted (no yama)";
    } else {
        finding.found = "yama ptrace_scope " + std::to_string(*platform.ptrace_scope);
    }
    finding.found += platform.has_ptrace_capability ? ", CAP_SYS_PTRACE" : ", no CAP_SYS_PTRACE";
    finding.use =
        "needs neither ptrace nor process_vm_readv; the capability would serve only the "
        "faults of system calls, with engine thread";
    return finding;
}

}  // namespace hanare::cli
