// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_space_job.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "sys/become_program.hpp"
#include "sys/program_file.hpp"

namespace hanare::cli {
namespace {

namespace fs = std::filesystem;

constexpr SpaceBenchMpi kMpis[] = {
    {"openmpi", "libopenmpi-dev", "mpirun.openmpi", "openmpi-bin"},
    {"mpich", "libmpich-dev", "mpiexec.mpich", "mpich"},
};
constexpr SpaceBenchWay kWays[] = {
    {"", "as MPI chooses"},
    {"_eager", "through shared memory"},
    {"_rendezvous", "from memory to memory"},
};

constexpr const char* kHpcc = "hpcc@";

fs::path own_directory() {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

// Of Open MPI's transport for one machine, in bytes: up to which a message goes through shared
// memory, how much of that there is, and the least that a message is.
void choose_way_of_openmpi(std::vector<std::string>& arguments, const std::string& way) {
    const auto set = [&](const char* name, const char* value) {
        arguments.insert(arguments.end(), {"--mca", name, value});
    };
    if (way == kWays[1].suffix) {
        set("btl_vader_eager_limit", "8400000");
        set("btl_vader_max_send_size", "8400000");
        set("btl_vader_segment_size", "536870912");
    } else if (way == kWays[2].suffix) {
        set("btl_vader_eager_limit", "64");
    }
}

void choose_way_of_mpich(const std::string& way) {
    if (way == kWays[1].suffix) setenv("UCX_RNDV_THRESH", "inf", 1);
    if (way == kWays[2].suffix) setenv("UCX_RNDV_THRESH", "0", 1);
}

// Takes it off the end of a case's name.
std::string take_way(std::string& name) {
    for (const SpaceBenchWay& way : kWays) {
        const std::string suffix = way.suffix;
        if (suffix.empty() || !name.ends_with(suffix)) continue;
        name.erase(name.size() - suffix.size());
        return suffix;
    }
    return {};
}

// The words of a job's text; empty where it is none.
std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words;
    size_t from = 0;
    for (size_t end; (end = text.find(':', from)) != text.npos; from = end + 1) {
        words.push_back(text.substr(from, end - from));
    }
    words.push_back(text.substr(from));
    if (words.size() != 4) words.clear();
    return words;
}

}  // namespace

bool is_application(const std::string& cases) {
    return cases.starts_with("npb-") || cases.starts_with(kHpcc);
}

std::span<const SpaceBenchMpi> space_bench_mpis() { return kMpis; }
std::span<const SpaceBenchWay> space_bench_ways() { return kWays; }

fs::path space_bench_program(const SpaceBenchMpi& mpi, const std::string& cases) {
    if (cases.starts_with(kHpcc)) return sys::find_program("hpcc").value_or("");
    const std::string which = is_application(cases) ? cases : "space";
    return own_directory() / ("hanare-bench-" + which + "-" + mpi.name);
}

std::string space_job_text(const SpaceBenchMpi& mpi, int mode, uint64_t ranks,
                           const std::string& cases) {
    return bench::format("%s:%s:%llu:%s", mpi.name, kSpaceBenchModes[mode],
                         static_cast<unsigned long long>(ranks), cases.c_str());
}

Error become_space_job(const std::string& text) {
    const std::vector<std::string> words = words_of(text);
    const auto* const mpi = std::ranges::find_if(
        kMpis, [&](const SpaceBenchMpi& each) { return !words.empty() && words[0] == each.name; });
    if (mpi == std::end(kMpis)) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "--job: only the bench itself may use it")
            .error();
    }
    const auto launcher = sys::find_program(mpi->launcher);
    if (!launcher) return launcher.error();
    std::string cases = words[3];
    const std::string way = take_way(cases);
    if (cases.starts_with(kHpcc)) {
        std::error_code error;
        fs::current_path(cases.substr(std::strlen(kHpcc)), error);
        if (error) return fail_errno(HANARE_STATUS_SYSTEM, error.value(), "hpcc").error();
    }
    std::vector<std::string> arguments = {*launcher, "-n", words[2]};
    if (mpi == &kMpis[0]) {
        arguments.insert(arguments.end(), {"--oversubscribe", "--mca", "plm", "isolated"});
        if (geteuid() == 0) arguments.emplace_back("--allow-run-as-root");
        choose_way_of_openmpi(arguments, way);
    } else {
        choose_way_of_mpich(way);
    }
    if (words[1] == kSpaceBenchModes[1]) {
        const fs::path root = own_directory() / "hanare-space-root";
        arguments.insert(arguments.end(), {root.string(), "exec"});
        setenv("HANARE_SPACE_VERBOSE", "1", 1);
    }
    arguments.push_back(space_bench_program(*mpi, cases).string());
    if (!is_application(cases)) {
        arguments.push_back(words[1]);
        for (const std::string& name : split_list(cases)) arguments.push_back(name);
    }
    return sys::become_program(arguments, SIGTERM);
}

}  // namespace hanare::cli
