// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_dlm_pagesize.hpp"

#include <cstdio>
#include <set>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "bench/dlm_pagesize.hpp"
#include "bench/raw_stream.hpp"
#include "bench/statistics.hpp"
#include "cli/commands.hpp"
#include "cli/fabric_network.hpp"
#include "cli/json_file.hpp"
#include "cli/remote_far.hpp"
#include "cli/secret_file.hpp"
#include "config/rules.hpp"
#include "sys/memory.hpp"

namespace hanare::cli {
namespace {

using bench::SwapTimes;
using config::OptionId;

constexpr config::Range kRoundsAllowed(1, 99);
constexpr uint64_t kServerBytes = 512 * kMiB;
constexpr size_t kRawSwaps = 200;
constexpr double kUsPerS = 1e6;

class Rounds {
public:
    Rounds(const config::Options& options, RemoteFarProcess& far, const SecretFile& secret)
        : options_(options), far_(far), secret_(secret) {
        for (const bench::PaperSwap& paper : bench::paper_swaps()) {
            all_.push_back({paper, {}, {}, {}});
        }
    }

    Result<void> run() {
        HANARE_TRY_ASSIGN(raw_memory_, sys::Mapping::reserve(kMiB, kOsPageBytes));
        HANARE_TRY(measure_raw());
        for (SwapTimes& times : all_) {
            if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
            HANARE_TRY(
                measure(times, times.scheme, far_.far().servers.front().url, SecretInUse::kNone));
            HANARE_TRY(measure(times, times.sealed, far_.far().sealed.url, secret_.path()));
        }
        return {};
    }

    const std::vector<SwapTimes>& all() const { return all_; }

private:
    // What the sockets alone take to bring a block and to take another away.
    Result<void> measure_raw() {
        HANARE_TRY(far_.begin_raw());
        {
            HANARE_TRY_ASSIGN(bench::RawStream raw,
                              bench::RawStream::connect(far_.far().raw_host, far_.far().raw_port));
            for (SwapTimes& times : all_) {
                const std::span<std::byte> block(raw_memory_.address(), times.paper.block_bytes);
                double seconds = 0;
                for (size_t i = 0; i < kRawSwaps; ++i) {
                    HANARE_TRY_ASSIGN(const double put_s, raw.put(block));
                    HANARE_TRY_ASSIGN(const double get_s, raw.get(block));
                    seconds += put_s + get_s;
                }
                times.raw.push_back(seconds * kUsPerS / kRawSwaps);
            }
        }
        return far_.end_raw();
    }

    Result<void> measure(const SwapTimes& which, std::vector<double>& times, const std::string& url,
                         const std::string& secret_file) {
        const uint64_t block_bytes = which.paper.block_bytes;
        if (left_out_.contains(block_bytes)) return {};
        const SecretInUse secret_in_use(secret_file);
        const auto us =
            bench::time_swaps({.store = url,
                               .block_bytes = block_bytes,
                               .engine = config::value_text(options_, OptionId::engine)});
        if (us) {
            times.push_back(*us);
        } else if (us.error().status == HANARE_STATUS_NOT_SUPPORTED) {
            std::printf("blocks of %s are left out: %s\n", format_size(block_bytes).c_str(),
                        us.error().text);
            left_out_.insert(block_bytes);
        } else {
            return std::unexpected(us.error());
        }
        return {};
    }

    const config::Options& options_;
    RemoteFarProcess& far_;
    const SecretFile& secret_;
    sys::Mapping raw_memory_;
    std::vector<SwapTimes> all_;
    std::set<uint64_t> left_out_;
};

Result<void> run(const DlmPagesizeFlags& flags, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(const config::Options options, load_and_apply(*flags.overrides));
    HANARE_TRY_ASSIGN(
        const uint64_t rounds,
        kRoundsAllowed.parse("--rounds", flags.rounds.value_or(flags.quick ? "1" : "5")));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    HANARE_TRY_ASSIGN(RemoteFarProcess far, RemoteFarProcess::start({.network = kLoopback,
                                                                     .rate_mbit = 0,
                                                                     .servers = {kServerBytes},
                                                                     .sealed_bytes = kServerBytes,
                                                                     .raw_bytes = kMiB},
                                                                    interrupt));
    HANARE_TRY_ASSIGN(const SecretFile secret, SecretFile::make(far.far().secret));
    const std::string engine = config::value_text(options, OptionId::engine);
    std::printf(
        "DLM Fig. 13: mean time of one of %u writes, each with a swap, %s apart; engine %s, a "
        "memory server over loopback; %llu round%s\n",
        bench::kSwapWrites, format_size(bench::kSwapStrideBytes).c_str(), engine.c_str(),
        static_cast<unsigned long long>(rounds), rounds == 1 ? "" : "s");
    std::fflush(stdout);
    Rounds all(options, far, secret);
    for (uint64_t round = 0; round < rounds; ++round) HANARE_TRY(all.run());
    std::printf("%s", bench::swap_table(all.all()).c_str());
    std::puts(
        "\npaper: Fig. 13 (a), clusters of 2009; by hand: a put and a get of a block over a "
        "socket; "
        "hanare: the paper's\nscheme, every write counted as one swap; sealed: blocks encrypted; "
        "all "
        "results verified");
    return json.write(bench::swap_records(all.all(), engine));
}

}  // namespace

int run_bench_dlm_pagesize(const DlmPagesizeFlags& flags) {
    return run_interruptible("hanare bench dlm-pagesize", [&](const sys::Interrupt& interrupt) {
        return run(flags, interrupt);
    });
}

}  // namespace hanare::cli
