// SPDX-License-Identifier: Apache-2.0
//
// For each network one process (remote_near.hpp) that starts another on the other side
// (remote_far.hpp), which starts the servers: what ends one of them ends all behind it.
#include "cli/bench_remote.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "base/units.hpp"
#include "bench/room.hpp"
#include "cli/commands.hpp"
#include "cli/fabric_network.hpp"
#include "cli/json_file.hpp"
#include "cli/remote_far.hpp"
#include "cli/remote_forms.hpp"
#include "cli/remote_job.hpp"
#include "cli/remote_near.hpp"
#include "cli/remote_report.hpp"
#include "cli/worker_lines.hpp"
#include "config/rules.hpp"
#include "sys/child.hpp"

namespace hanare::cli {
namespace {

using config::OptionId;

constexpr std::chrono::minutes kPatience{10};  // for the next sample
constexpr uint64_t kRatio = 4;                 // of data to local memory
constexpr uint64_t kLocalBlocks = 32;          // of local memory, at least
constexpr uint64_t kDataMax = uint64_t{1} << 40;
constexpr config::Range kRoundsAllowed(1, 99);

struct Network {
    const char* name;
    const char* kind;
    uint32_t rate_mbit;
    uint64_t fraction;  // of the data
    int rounds_max;
};
constexpr Network kNetworks[] = {{"loopback", kLoopback, 0, 1, 99},
                                 {"veth", kVeth, 0, 1, 99},
                                 {"veth_10g", kVeth, 10'000, 1, 3},
                                 {"veth_1g", kVeth, 1'000, 4, 3}};

// What --quick changes.
struct Extent {
    const char* networks;
    const char* size;
    const char* rounds;
    uint64_t accesses;
};
constexpr Extent kFull = {"loopback,veth,veth_10g,veth_1g", "512M", "7", 4000};
constexpr Extent kQuick = {"loopback,veth", "32M", "1", 200};

struct Series {
    std::vector<Network> networks;
    RemoteJob job;  // all but the network
};

Result<std::vector<Network>> parse_networks(const std::string& list) {
    std::vector<Network> networks;
    for (const std::string& name : split_list(list)) {
        const auto* const found = std::ranges::find_if(
            kNetworks, [&](const Network& network) { return name == network.name; });
        if (found == std::end(kNetworks)) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "--networks: \"%.50s\"; there are %s",
                        name.c_str(), remote_network_names().c_str());
        }
        networks.push_back(*found);
    }
    return networks;
}

Result<std::vector<std::string>> parse_cases(const std::optional<std::string>& list) {
    const std::vector<std::string> all = split_list(remote_case_names());
    if (!list) return all;
    const std::vector<std::string> names = split_list(*list);
    for (const std::string& name : names) {
        if (std::ranges::count(all, name) != 0) continue;
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "--cases: \"%.50s\"; there are %s",
                    name.c_str(), remote_case_names().c_str());
    }
    return names;
}

uint64_t data_min(uint64_t block_bytes) {
    return kRatio * std::max(kLocalBlocks * block_bytes, 2 * kMiB);
}

// The data is in each server, and in the raw sockets' two ends.
Result<void> check_size(uint64_t bytes, uint64_t block_bytes) {
    const uint64_t least = data_min(block_bytes);
    double copies = 4;  // raw, both ends; sealed; the pools
    for (const StoreForm& form : store_forms()) copies += 1.5 * form.bytes_factor;
    HANARE_TRY_ASSIGN(const bench::MachineRoom room, bench::machine_room("/"));
    const auto allowed = std::min(
        kDataMax, static_cast<uint64_t>(static_cast<double>(room.usable_memory_bytes()) / copies));
    if (bytes >= least && bytes <= allowed) return {};
    return config::bad_value("--size", config::exact_size(bytes),
                             bytes < least ? "is too small" : "is too large for this machine",
                             config::exact_size(least) + " to " + format_size(allowed));
}

Result<Series> make_series(const RemoteFlags& flags) {
    const Extent& extent = flags.quick ? kQuick : kFull;
    Series series;
    RemoteJob& job = series.job;
    HANARE_TRY_ASSIGN(series.networks, parse_networks(flags.networks.value_or(extent.networks)));
    HANARE_TRY_ASSIGN(job.cases, parse_cases(flags.cases));
    HANARE_TRY_ASSIGN(const uint64_t rounds,
                      kRoundsAllowed.parse("--rounds", flags.rounds.value_or(extent.rounds)));
    job.rounds = static_cast<int>(rounds);
    HANARE_TRY_ASSIGN(job.bytes, parse_size("--size", flags.size.value_or(extent.size)));
    HANARE_TRY_ASSIGN(const config::Options options, load_and_apply(*flags.overrides));
    job.bytes = round_up(job.bytes, kRatio * kMiB);
    HANARE_TRY(check_size(job.bytes, options.block_bytes));
    job.local_bytes = job.bytes / kRatio;
    job.block_bytes = options.block_bytes;
    job.engine = config::value_text(options, OptionId::engine);
    job.read_ahead_blocks = options.read_ahead_blocks;
    job.accesses = extent.accesses;
    return series;
}

RemoteJob job_on(const Network& network, const RemoteJob& common) {
    RemoteJob job = common;
    job.name = network.name;
    job.network = network.kind;
    job.rate_mbit = network.rate_mbit;
    job.bytes = std::max(round_up(common.bytes / network.fraction, kRatio * kMiB),
                         data_min(common.block_bytes));
    job.local_bytes = job.bytes / kRatio;
    job.rounds = std::min(common.rounds, network.rounds_max);
    return job;
}

struct Outcome {
    std::vector<RemoteSample> samples;
    std::string left_out;  // why
};

Result<Outcome> measure(const RemoteJob& job, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(sys::Child child, sys::Child::start({"hanare", "bench", "remote", "--near",
                                                           nlohmann::json(job).dump()}));
    WorkerLines lines(child.output_fd(), interrupt.fd());
    Outcome outcome;
    std::string line;
    for (;;) {
        switch (lines.next(WorkerLines::Clock::now() + kPatience, line)) {
            case WorkerLines::Next::kLine: break;
            case WorkerLines::Next::kInterrupted: return fail(HANARE_STATUS_BUSY, "interrupted");
            case WorkerLines::Next::kTooSlow:
                return fail(HANARE_STATUS_INTERNAL, "%s: the near end does not answer",
                            job.name.c_str());
            case WorkerLines::Next::kClosed:
                return fail(HANARE_STATUS_INTERNAL, "%s: the near end has ended", job.name.c_str());
        }
        const auto said = nlohmann::json::parse(line, nullptr, false);
        if (said.contains("sample")) {
            outcome.samples.push_back(said["sample"].get<RemoteSample>());
        } else if (said.contains("note")) {
            std::printf("%s\n", said["note"].get<std::string>().c_str());
        } else if (said.contains("left_out")) {
            outcome.left_out = said["left_out"].get<std::string>();
            return outcome;
        } else if (said.contains("done")) {
            return outcome;
        } else {
            return fail(HANARE_STATUS_INTERNAL, "near end: unknown line %.100s", line.c_str());
        }
    }
}

void print_head(const RemoteJob& job, const Network& network) {
    std::printf("\n%s: %s of data, %s of local memory, blocks of %s; %d round%s\n", network.name,
                format_size(job.bytes).c_str(), format_size(job.local_bytes).c_str(),
                format_size(job.block_bytes).c_str(), job.rounds, job.rounds == 1 ? "" : "s");
    std::fflush(stdout);
}

Result<void> run(const RemoteFlags& flags, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(const Series series, make_series(flags));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    std::vector<RemoteSample> all;
    std::vector<bench::Record> records;
    for (const Network& network : series.networks) {
        const RemoteJob job = job_on(network, series.job);
        print_head(job, network);
        HANARE_TRY_ASSIGN(const Outcome outcome, measure(job, interrupt));
        if (!outcome.left_out.empty()) {
            std::printf("left out: %s\n", outcome.left_out.c_str());
            continue;
        }
        std::printf("%s", remote_tables(outcome.samples).c_str());
        const nlohmann::json params = {{"data_bytes", job.bytes},
                                       {"local_bytes", job.local_bytes},
                                       {"block_bytes", job.block_bytes},
                                       {"rate_mbit", job.rate_mbit}};
        const auto own = remote_records(outcome.samples, params);
        records.insert(records.end(), own.begin(), own.end());
        all.insert(all.end(), outcome.samples.begin(), outcome.samples.end());
    }
    std::puts(
        "\nof raw: median of the ratios to the raw socket of the same round, for the bytes that "
        "the servers get\nwrites count until the servers have all; s/GB: processor seconds for "
        "10^9 bytes of data; all results verified");
    if (!all.empty()) std::printf("\n%s", remote_goals(all).c_str());
    return json.write(records);
}

}  // namespace

std::string remote_network_names() {
    std::string names;
    for (const Network& network : kNetworks) {
        names += (names.empty() ? "" : ",") + std::string(network.name);
    }
    return names;
}

int run_bench_remote(const RemoteFlags& flags) {
    return run_interruptible("hanare bench remote", [&](const sys::Interrupt& interrupt) {
        if (flags.near) return measure_remote(*flags.near, interrupt);
        if (flags.far) return serve_as_remote_far(*flags.far, interrupt);
        return run(flags, interrupt);
    });
}

}  // namespace hanare::cli
