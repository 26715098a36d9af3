// SPDX-License-Identifier: Apache-2.0
#include "cli/fabric_compared.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "bench/compared/networks.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/fabric_network.hpp"
#include "sys/become_program.hpp"
#include "sys/clock.hpp"
#include "sys/network_namespace.hpp"
#include "sys/program_file.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kPatience{60};
constexpr int kEndMs = 5'000;
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr const char* kReady = "ready";
constexpr const char* kLoopbackDevice = "lo";
constexpr const char* kOpenMpi = "mpi_openmpi";

constexpr ComparedKind kKinds[] = {
    {"ucx", "ucx", "hanare-bench-ucx", "libucx-dev", nullptr, nullptr},
    {kOpenMpi, "mpi", "hanare-bench-mpi-openmpi", "libopenmpi-dev", "mpirun.openmpi",
     "openmpi-bin"},
    {"mpi_mpich", "mpi", "hanare-bench-mpi-mpich", "libmpich-dev", "mpiexec.mpich", "mpich"},
};

fs::path path_of(const ComparedKind& kind) {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/exe", ignored).parent_path() / kind.program;
}

// What keeps it from running here; empty: nothing.
std::string obstacle(const ComparedKind& kind) {
    if (access(path_of(kind).c_str(), X_OK) != 0) {
        return bench::format("%s: %s was not built; install %s and build Hanare again", kind.system,
                             kind.program, kind.headers_package);
    }
    if (kind.launcher != nullptr && !sys::find_program(kind.launcher)) {
        return bench::format("%s: %s is not there; install %s", kind.system, kind.launcher,
                             kind.launcher_package);
    }
    return "";
}

// Those of that name; a group is satisfied with one.
Result<void> choose(const std::string& name, ComparedChoice& choice) {
    std::vector<std::string> obstacles;
    bool is_known = false;
    bool is_here = false;
    for (const ComparedKind& kind : kKinds) {
        if (name != kind.system && name != kind.group) continue;
        is_known = true;
        const std::string why = obstacle(kind);
        if (!why.empty()) {
            obstacles.push_back(why);
            continue;
        }
        is_here = true;
        if (std::ranges::find(choice.kinds, &kind) == choice.kinds.end()) {
            choice.kinds.push_back(&kind);
        }
    }
    if (!is_known) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "--compare: \"%.50s\"; there are %s",
                    name.c_str(), compared_names().c_str());
    }
    if (!is_here) {
        std::string all;
        for (const std::string& why : obstacles) all += (all.empty() ? "" : "; ") + why;
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "--compare: %s", all.c_str());
    }
    choice.notes.insert(choice.notes.end(), obstacles.begin(), obstacles.end());
    return {};
}

std::vector<std::string> openmpi_arguments(const std::string& launcher, const char* network) {
    std::vector<std::string> arguments = {launcher};
    if (geteuid() == 0) arguments.emplace_back("--allow-run-as-root");
    for (const char* const argument : {"-n",
                                       "2",
                                       "--oversubscribe",
                                       "--bind-to",
                                       "none",
                                       "--mca",
                                       "pml",
                                       "ob1",
                                       "--mca",
                                       "osc",
                                       "rdma,pt2pt",
                                       "--mca",
                                       "btl",
                                       "tcp,self",
                                       "--mca",
                                       "btl_tcp_if_include",
                                       network,
                                       "--mca",
                                       "oob_tcp_if_include",
                                       network,
                                       "--mca",
                                       "mpi_yield_when_idle",
                                       "0"}) {
        arguments.emplace_back(argument);
    }
    return arguments;
}

// For UCX, also below MPICH, whose processes are told that they share no machine.
void choose_transports(const std::optional<std::string>& beside) {
    setenv("UCX_TLS", "tcp", 1);
    setenv("UCX_NET_DEVICES", beside ? kVethSourceDevice : kLoopbackDevice, 1);
    setenv("UCX_WARN_UNUSED_ENV_VARS", "n", 1);
    setenv("MPIR_CVAR_NOLOCAL", "1", 1);
    if (!beside) return;
    setenv(bench::kTargetNetworkVariable, beside->c_str(), 1);
    // By this the processes of Open MPI talk to their launcher.
    setenv("PMIX_MCA_ptl_base_if_include", kVethNetwork, 1);
}

}  // namespace

std::string compared_names() {
    std::string names = kRawTcp;
    for (const ComparedKind& kind : kKinds) names += std::string(",") + kind.system;
    return names + ",mpi";
}

Result<ComparedChoice> choose_compared(const std::optional<std::string>& list) {
    ComparedChoice choice;
    for (const std::string& name : split_list(list.value_or(kRawTcp))) {
        if (name == kRawTcp) {
            choice.has_raw = true;
        } else {
            HANARE_TRY(choose(name, choice));
        }
    }
    return choice;
}

Result<ComparedProgram> ComparedProgram::start(const ComparedKind& kind,
                                               std::optional<pid_t> beside,
                                               const sys::Interrupt& interrupt) {
    std::vector<std::string> arguments = {"hanare", "bench", "fabric", "--compared", kind.system};
    if (beside) arguments.insert(arguments.end(), {"--beside", std::to_string(*beside)});
    HANARE_TRY_ASSIGN(sys::Child child, sys::Child::start(arguments, sys::Child::Input::kFromUs));
    WorkerLines lines(child.output_fd(), interrupt.fd());
    ComparedProgram program(kind, std::move(child), std::move(lines));
    HANARE_TRY_ASSIGN(const std::string line, program.next_line());
    if (line == kReady) return program;
    return fail(HANARE_STATUS_INTERNAL, "%s does not begin: %.100s", kind.system, line.c_str());
}

bool ComparedProgram::has_ended_within(int timeout_ms) const {
    const uint64_t end_ns = sys::now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs;
    char rest[4096];
    for (;;) {
        const uint64_t now = sys::now_ns();
        if (now >= end_ns) return false;
        pollfd output = {child_.output_fd(), POLLIN, 0};
        poll(&output, 1, static_cast<int>((end_ns - now) / kNsPerMs) + 1);
        if (output.revents != 0 && read(output.fd, rest, sizeof rest) == 0) return true;
    }
}

ComparedProgram::~ComparedProgram() {
    if (child_.pid() <= 0) return;  // moved from
    child_.end_input();
    if (has_ended_within(kEndMs)) {
        (void)child_.wait();
        return;
    }
    ::kill(child_.pid(), SIGTERM);
    if (has_ended_within(kEndMs)) (void)child_.wait();
}

Result<std::string> ComparedProgram::next_line() {
    std::string line;
    switch (lines_.next(WorkerLines::Clock::now() + kPatience, line)) {
        case WorkerLines::Next::kLine: return line;
        case WorkerLines::Next::kInterrupted: return fail(HANARE_STATUS_BUSY, "interrupted");
        case WorkerLines::Next::kTooSlow:
            return fail(HANARE_STATUS_INTERNAL, "%s does not answer", system());
        case WorkerLines::Next::kClosed: break;
    }
    return fail(HANARE_STATUS_INTERNAL, "%s has ended", system());
}

Result<double> ComparedProgram::run(const bench::FabricCase& which, uint64_t seed) {
    HANARE_TRY(
        child_.send(bench::format("run %s %u %" PRIu64 "\n", which.name, which.operations, seed)));
    HANARE_TRY_ASSIGN(const std::string line, next_line());
    double us = 0;
    if (std::sscanf(line.c_str(), "time %lf", &us) == 1) return us;
    return fail(HANARE_STATUS_INTERNAL, "%s: %.100s", system(), line.c_str());
}

Result<std::vector<double>> ComparedProgram::get_from_busy(uint32_t gets) {
    HANARE_TRY(child_.send(bench::format("passive %u\n", gets)));
    HANARE_TRY_ASSIGN(const std::string line, next_line());
    std::istringstream text(line);
    std::string word;
    std::vector<double> times;
    text >> word;
    for (double us = 0; text >> us;) times.push_back(us);
    if (word == "times" && times.size() == gets) return times;
    return fail(HANARE_STATUS_INTERNAL, "%s: %.100s", system(), line.c_str());
}

Error become_compared(const std::string& system, const std::optional<std::string>& beside) {
    const auto* const kind = std::ranges::find_if(
        kKinds, [&](const ComparedKind& each) { return each.system == system; });
    if (kind == std::end(kKinds)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "no system %.50s", system.c_str()).error();
    }
    choose_transports(beside);
    // UCX looks into /sys for networks.
    if (beside && system != kOpenMpi) {
        setenv(bench::kTargetDeviceVariable, kVethTargetDevice, 1);
        if (const auto shown = sys::show_own_network(); !shown) return shown.error();
    }
    const std::string program = path_of(*kind).string();
    if (kind->launcher == nullptr) return sys::become_program({program}, SIGKILL);
    const Result<std::string> launcher = sys::find_program(kind->launcher);
    if (!launcher) return launcher.error();
    std::vector<std::string> arguments = {*launcher, "-n", "2"};
    if (system == kOpenMpi) {
        arguments = openmpi_arguments(*launcher, beside ? kVethNetwork : kLoopbackDevice);
    }
    arguments.push_back(program);
    // Its other processes end with it, and the files that it has made are removed.
    return sys::become_program(arguments, SIGTERM);
}

}  // namespace hanare::cli
