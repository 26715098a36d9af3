// SPDX-License-Identifier: Apache-2.0
#include "cli/pager_worker.hpp"

#include <cstdio>
#include <iostream>
#include <memory>
#include <vector>

#include "bench/memory.hpp"
#include "bench/raw_device.hpp"
#include "cli/commands.hpp"
#include "cli/moved_bytes.hpp"
#include "sys/cgroup.hpp"

namespace hanare::cli {
namespace {

using bench::PagerCase;
using PagerResults = std::vector<PagerResult>;

void tell(const nlohmann::json& message) {
    std::fputs((message.dump() + "\n").c_str(), stdout);
    std::fflush(stdout);
}

// What answers the commands.
class Peer {
public:
    virtual ~Peer() = default;
    virtual Result<void> prepare(PagerCase which) = 0;
    virtual Result<PagerResults> measure(PagerCase which) = 0;
};

// What tells why a rate is what it is, by the names of hanare/stats.h.
void add_counters(bench::PagerMetrics& metrics, const hanare_counters& before,
                  const hanare_counters& after) {
#define ADD(name, text) metrics[#name] = static_cast<double>(after.name - before.name);
    HANARE_COUNTER_MAP(ADD)
#undef ADD
}

class ArrayPeer : public Peer {
public:
    static Result<std::unique_ptr<Peer>> open(const PagerJob& job);

    Result<void> prepare(PagerCase which) override { return array_.prepare(which); }
    Result<PagerResults> measure(PagerCase which) override {
        HANARE_TRY_ASSIGN(const sys::DeviceBytes before, moved());
        HANARE_TRY_ASSIGN(const hanare_counters counted_before, memory_->counters());
        HANARE_TRY_ASSIGN(bench::PagerMetrics metrics, array_.measure(which));
        HANARE_TRY_ASSIGN(const sys::DeviceBytes after, moved());
        metrics["read"] = static_cast<double>(after.read - before.read);
        metrics["written"] = static_cast<double>(after.written - before.written);
        if (backing_ == Backing::kStore) {
            HANARE_TRY_ASSIGN(const hanare_counters counted, memory_->counters());
            add_counters(metrics, counted_before, counted);
        }
        return PagerResults{{job_.system, std::move(metrics)}};
    }

private:
    ArrayPeer(const PagerJob& job, Backing backing, std::unique_ptr<bench::Memory> memory,
              bench::PagerArray array)
        : job_(job), backing_(backing), memory_(std::move(memory)), array_(std::move(array)) {}

    Result<sys::DeviceBytes> moved() { return moved_bytes(backing_, job_.block_device, *memory_); }

    PagerJob job_;
    Backing backing_;
    std::unique_ptr<bench::Memory> memory_;
    bench::PagerArray array_;
};

Backing backing_of(const std::string& kind) {
    if (kind == "hanare") return Backing::kStore;
    if (kind == "plain") return Backing::kNone;
    return kind == "swap" || kind == "zram" ? Backing::kSwap : Backing::kDevice;
}

Result<std::unique_ptr<bench::Memory>> open_memory(const PagerJob& job) {
    using sys::AccessOrder;
    if (job.kind == "mmap") return bench::file_memory(job.directory, AccessOrder::kUnknown);
    if (job.kind == "mmap_random") return bench::file_memory(job.directory, AccessOrder::kRandom);
    if (job.kind == "mmap_sequential") {
        return bench::file_memory(job.directory, AccessOrder::kSequential);
    }
    if (job.kind == "hanare") {
        return bench::hanare_memory({.local_bytes = job.local_bytes,
                                     .store = job.store,
                                     .block_bytes = job.block_bytes,
                                     .engine = job.engine,
                                     .read_ahead_blocks = job.read_ahead_blocks});
    }
    return bench::plain_memory(bench::HugePages::kSystem);
}

Result<std::unique_ptr<Peer>> ArrayPeer::open(const PagerJob& job) {
    const Backing backing = backing_of(job.kind);
    HANARE_TRY_ASSIGN(auto memory, open_memory(job));
    HANARE_TRY_ASSIGN(auto array, bench::PagerArray::allocate(
                                      *memory, {.bytes = job.bytes,
                                                .threads = job.threads,
                                                .can_drop = backing != Backing::kNone,
                                                .can_flush = backing == Backing::kDevice ||
                                                             backing == Backing::kStore,
                                                .pass_s_max = job.pass_s_max,
                                                .accesses = job.accesses,
                                                .seed = job.seed}));
    return std::unique_ptr<Peer>(new ArrayPeer(job, backing, std::move(memory), std::move(array)));
}

// The limits that the device sets to some of the cases.
class DevicePeer : public Peer {
public:
    static Result<std::unique_ptr<Peer>> open(const PagerJob& job) {
        HANARE_TRY_ASSIGN(auto device,
                          bench::RawDevice::open({.directory = job.directory,
                                                  .file_bytes = job.bytes,
                                                  .pool_bytes = job.local_bytes,
                                                  .in_flight_bytes = job.in_flight_bytes,
                                                  .pass_s_max = job.pass_s_max}));
        return std::unique_ptr<Peer>(new DevicePeer(job, std::move(device)));
    }
    Result<void> prepare(PagerCase) override { return {}; }
    Result<PagerResults> measure(PagerCase which) override {
        using Transfers = bench::RawDevice::Transfers;
        switch (which) {
            case PagerCase::kSeqWrite: return passes(Transfers::kWrites);
            case PagerCase::kSeqReadCold: return passes(Transfers::kReads);
            case PagerCase::kTriad: return passes(Transfers::kTriad);
            case PagerCase::kRandomClean: return random_reads();
            default: return PagerResults{};
        }
    }

private:
    DevicePeer(const PagerJob& job, std::unique_ptr<bench::RawDevice> device)
        : job_(job), device_(std::move(device)) {}

    Result<PagerResults> passes(bench::RawDevice::Transfers transfers) {
        using Buffers = bench::RawDevice::Buffers;
        HANARE_TRY_ASSIGN(const double pool, device_->pass(transfers, Buffers::kPool));
        HANARE_TRY_ASSIGN(const double hot, device_->pass(transfers, Buffers::kHot));
        return PagerResults{{"device_pool", {{"rate", pool}}}, {"device_hot", {{"rate", hot}}}};
    }

    Result<PagerResults> random_reads() {
        PagerResults results;
        for (const auto wait : {bench::RawDevice::Wait::kCall, bench::RawDevice::Wait::kSpin}) {
            HANARE_TRY_ASSIGN(const bench::AccessTimes times,
                              device_->random_reads(wait, job_.accesses / 4, job_.seed));
            const bool spins = wait == bench::RawDevice::Wait::kSpin;
            results.push_back(
                {spins ? "device_spin" : "device_pread",
                 {{"time", times.mean_us}, {"p50", times.p50_us}, {"p99", times.p99_us}}});
        }
        return results;
    }

    PagerJob job_;
    std::unique_ptr<bench::RawDevice> device_;
};

Result<void> obey(Peer& peer, const nlohmann::json& command) {
    const bool prepares = command.contains("prepare");
    const auto which =
        bench::pager_case_of(command.at(prepares ? "prepare" : "measure").get<std::string>());
    if (!which) return fail(HANARE_STATUS_INTERNAL, "an unknown case");
    if (prepares) {
        HANARE_TRY(peer.prepare(*which));
        tell({{"prepared", true}});
        return {};
    }
    HANARE_TRY_ASSIGN(const PagerResults results, peer.measure(*which));
    tell({{"results", results}});
    return {};
}

Result<void> work(const PagerJob& job) {
    if (!job.cgroup.empty()) HANARE_TRY(sys::enter_cgroup(job.cgroup));
    HANARE_TRY_ASSIGN(const std::unique_ptr<Peer> peer,
                      job.kind == "device" ? DevicePeer::open(job) : ArrayPeer::open(job));
    tell({{"ready", true}});
    for (std::string line; std::getline(std::cin, line);) {
        HANARE_TRY(obey(*peer, nlohmann::json::parse(line)));
    }
    return {};
}

}  // namespace

int run_pager_worker(const std::string& job) {
    const auto parsed = nlohmann::json::parse(job, nullptr, false);
    if (!parsed.is_object()) {
        return report(
            fail(HANARE_STATUS_INVALID_ARGUMENT, "--worker: only the bench itself may use it")
                .error());
    }
    const auto done = work(parsed.get<PagerJob>());
    if (done) return kExitSuccess;
    tell({{"error", done.error().text}, {"status", done.error().status}});
    return kExitInternalFailure;
}

}  // namespace hanare::cli
