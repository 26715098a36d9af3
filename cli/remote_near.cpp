// SPDX-License-Identifier: Apache-2.0
#include "cli/remote_near.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.hpp"
#include "bench/memory.hpp"
#include "bench/pager_array.hpp"
#include "bench/raw_stream.hpp"
#include "bench/statistics.hpp"
#include "cli/fabric_network.hpp"
#include "cli/remote_far.hpp"
#include "cli/remote_forms.hpp"
#include "cli/remote_job.hpp"
#include "cli/secret_file.hpp"
#include "sys/process_time.hpp"

namespace hanare::cli {
namespace {

using bench::PagerCase;
using Metrics = std::map<std::string, double>;

constexpr double kForever = 1e9;
constexpr double kUsPerS = 1e6;
constexpr size_t kRoundTripCount = 1000;

enum class Raw { kPut, kGet, kRoundTrips };

struct RemoteCase {
    const char* name;
    PagerCase prepared;
    PagerCase measured;
    Raw raw;  // what it is compared with
};
constexpr RemoteCase kCases[] = {
    {kRemoteWrite, PagerCase::kSeqWrite, PagerCase::kSeqWrite, Raw::kPut},
    {kRemoteRead, PagerCase::kSeqReadCold, PagerCase::kSeqReadCold, Raw::kGet},
    {kRemoteStrided, PagerCase::kStrided, PagerCase::kStrided, Raw::kGet},
    // Nothing is in memory then.
    {kRemoteFault, PagerCase::kStrided, PagerCase::kRandomClean, Raw::kRoundTrips},
    {kRemoteRandom, PagerCase::kRandomClean, PagerCase::kRandomClean, Raw::kRoundTrips},
};

void say(const nlohmann::json& line) {
    std::printf("%s\n", line.dump().c_str());
    std::fflush(stdout);
}

// A pool on a store, and the processes behind that.
struct System {
    std::string name;
    std::vector<pid_t> servers;
    std::unique_ptr<bench::Memory> memory;
    std::optional<bench::PagerArray> array;
};

Result<uint64_t> processor_ns_of(const std::vector<pid_t>& processes) {
    uint64_t all_ns = 0;
    for (const pid_t process : processes) {
        HANARE_TRY_ASSIGN(const uint64_t own_ns, sys::processor_ns(process));
        all_ns += own_ns;
    }
    return all_ns;
}

// Nanoseconds for a byte are seconds for 10^9.
double per_gb(uint64_t begin_ns, uint64_t end_ns, uint64_t bytes) {
    return static_cast<double>(end_ns - begin_ns) / static_cast<double>(bytes);
}

class Near {
public:
    Near(const RemoteJob& job, RemoteFarProcess far) : job_(job), far_(std::move(far)) {}

    Result<void> open() {
        HANARE_TRY_ASSIGN(raw_memory_, sys::Mapping::reserve(job_.bytes, bench::kArrayAlignment));
        HANARE_TRY_ASSIGN(secret_, SecretFile::make(far_.far().secret));
        auto next = far_.far().servers.begin();
        for (const StoreForm& form : forms_on(job_)) {
            std::vector<std::string> urls;
            std::vector<pid_t> servers;
            for (unsigned i = 0; i < form.servers; ++i, ++next) {
                urls.push_back(next->url);
                servers.push_back(next->process);
            }
            const auto added = add(form.name, spec_of(form, urls), SecretInUse::kNone, servers);
            if (added) continue;
            if (form.servers == 1) return added;
            say({{"note", std::string(form.name) + " is left out: " + added.error().text}});
        }
        const RemoteServer& sealed = far_.far().sealed;
        return add("server_sealed", sealed.url, secret_->path(), {sealed.process});
    }

    // One case after the other: what random accesses leave of a pool's memory, single pages, a
    // stream would have to replace first, which only its first round does.
    Result<void> measure() {
        for (const RemoteCase& which : kCases) {
            if (std::ranges::count(job_.cases, which.name) == 0) continue;
            for (int round = 0; round < job_.rounds; ++round) {
                std::fprintf(stderr, "[%s] %s, round %d of %d\n", job_.name.c_str(), which.name,
                             round + 1, job_.rounds);
                HANARE_TRY(measure_round(which, round));
            }
        }
        return {};
    }

    static std::span<const StoreForm> forms_on(const RemoteJob& job) {
        return store_forms().first(job.network == kLoopback ? store_forms().size() : 1);
    }

private:
    Result<void> add(const char* name, const std::string& spec, const std::string& secret_file,
                     std::vector<pid_t> servers) {
        const SecretInUse secret_in_use(secret_file);
        System system = {name, std::move(servers), nullptr, std::nullopt};
        HANARE_TRY_ASSIGN(system.memory,
                          bench::hanare_memory({.local_bytes = job_.local_bytes,
                                                .store = spec,
                                                .block_bytes = job_.block_bytes,
                                                .engine = job_.engine,
                                                .read_ahead_blocks = job_.read_ahead_blocks}));
        HANARE_TRY_ASSIGN(bench::PagerArray array,
                          bench::PagerArray::allocate(*system.memory, {.bytes = job_.bytes,
                                                                       .pass_s_max = kForever,
                                                                       .accesses = job_.accesses}));
        system.array.emplace(std::move(array));
        systems_.push_back(std::move(system));
        return {};
    }

    // All take turns, each time beginning with another one.
    Result<void> measure_round(const RemoteCase& which, int round) {
        const size_t count = systems_.size() + 1;
        for (size_t i = 0; i < count; ++i) {
            if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
            const size_t next = (i + static_cast<size_t>(round)) % count;
            if (next == systems_.size()) {
                HANARE_TRY(measure_raw(which, round));
            } else {
                HANARE_TRY(measure_system(which, systems_[next], round));
            }
        }
        return {};
    }

    Result<void> measure_system(const RemoteCase& which, System& system, int round) {
        HANARE_TRY(system.array->prepare(which.prepared));
        HANARE_TRY_ASSIGN(const hanare_counters before, system.memory->counters());
        HANARE_TRY_ASSIGN(const uint64_t client_ns, sys::processor_ns(0));
        HANARE_TRY_ASSIGN(const uint64_t server_ns, processor_ns_of(system.servers));
        HANARE_TRY_ASSIGN(Metrics metrics, system.array->measure(which.measured));
        HANARE_TRY_ASSIGN(const uint64_t client_end_ns, sys::processor_ns(0));
        HANARE_TRY_ASSIGN(const uint64_t server_end_ns, processor_ns_of(system.servers));
        HANARE_TRY_ASSIGN(const hanare_counters after, system.memory->counters());
        metrics["read"] = static_cast<double>(after.read_bytes - before.read_bytes);
        metrics["written"] = static_cast<double>(after.written_bytes - before.written_bytes);
        if (which.raw != Raw::kRoundTrips) {
            metrics["client_processor"] = per_gb(client_ns, client_end_ns, job_.bytes);
            metrics["server_processor"] = per_gb(server_ns, server_end_ns, job_.bytes);
        }
        tell(which, system.name, round, std::move(metrics));
        return {};
    }

    Result<void> measure_raw(const RemoteCase& which, int round) {
        Metrics metrics;
        HANARE_TRY(far_.begin_raw());
        {
            HANARE_TRY_ASSIGN(bench::RawStream raw,
                              bench::RawStream::connect(far_.far().raw_host, far_.far().raw_port));
            switch (which.raw) {
                case Raw::kPut: HANARE_TRY(put_all(raw, metrics)); break;
                case Raw::kGet: HANARE_TRY(get_all(raw, metrics)); break;
                case Raw::kRoundTrips: HANARE_TRY(round_trips(raw, metrics)); break;
            }
        }
        HANARE_TRY(far_.end_raw());
        tell(which, kRawSystem, round, std::move(metrics));
        return {};
    }

    Result<void> put_all(bench::RawStream& raw, Metrics& metrics) {
        bench::pattern_fill(raw_words(), raw_pages(), ++raw_pass_);
        return stream(metrics, [&] { return raw.put(raw_data()); });
    }

    // What was put there before must come back.
    Result<void> get_all(bench::RawStream& raw, Metrics& metrics) {
        if (raw_pass_ == 0) {
            Metrics unused;
            HANARE_TRY(put_all(raw, unused));
        }
        std::memset(raw_memory_.address(), 0, raw_memory_.bytes());
        HANARE_TRY(stream(metrics, [&] { return raw.get(raw_data()); }));
        if (!bench::pattern_check(raw_words(), raw_pages(), raw_pass_)) return {};
        return fail(HANARE_STATUS_CORRUPT, "the raw socket has brought something else");
    }

    template <typename Move>
    Result<void> stream(Metrics& metrics, Move move) {
        const std::vector<pid_t> far = {far_.pid()};
        HANARE_TRY_ASSIGN(const uint64_t near_ns, sys::processor_ns(0));
        HANARE_TRY_ASSIGN(const uint64_t far_ns, processor_ns_of(far));
        HANARE_TRY_ASSIGN(const double seconds, move());
        HANARE_TRY_ASSIGN(const uint64_t near_end_ns, sys::processor_ns(0));
        HANARE_TRY_ASSIGN(const uint64_t far_end_ns, processor_ns_of(far));
        metrics = {{"rate", static_cast<double>(job_.bytes) / seconds},
                   {"client_processor", per_gb(near_ns, near_end_ns, job_.bytes)},
                   {"server_processor", per_gb(far_ns, far_end_ns, job_.bytes)}};
        return {};
    }

    // Of a word, and of what a fault brings.
    Result<void> round_trips(bench::RawStream& raw, Metrics& metrics) {
        for (const auto& [name, bytes] :
             {std::pair{"round_trip", sizeof(uint64_t)}, std::pair{"get_page", kOsPageBytes}}) {
            std::vector<double> times;
            for (size_t i = 0; i < kRoundTripCount; ++i) {
                HANARE_TRY_ASSIGN(const double seconds, raw.get(raw_data().first(bytes)));
                times.push_back(seconds * kUsPerS);
            }
            metrics[name] = bench::summarize(std::move(times)).median;
        }
        return {};
    }

    void tell(const RemoteCase& which, const std::string& system, int round, Metrics metrics) {
        say({{"sample", RemoteSample{job_.name, which.name, system, round, std::move(metrics)}}});
    }

    uint64_t* raw_words() const { return reinterpret_cast<uint64_t*>(raw_memory_.address()); }
    bench::PageRange raw_pages() const { return {0, job_.bytes / kOsPageBytes}; }
    std::span<std::byte> raw_data() const { return {raw_memory_.address(), job_.bytes}; }

    const RemoteJob job_;
    RemoteFarProcess far_;  // ends last
    std::optional<SecretFile> secret_;
    sys::Mapping raw_memory_;
    uint32_t raw_pass_ = 0;
    std::vector<System> systems_;
};

// A lease takes more than it needs while there is plenty.
uint64_t lent_bytes(uint64_t bytes) { return round_up(bytes + bytes / 4, kMiB) + 128 * kMiB; }

Result<RemoteFarProcess> start_far(const RemoteJob& job, const sys::Interrupt& interrupt) {
    if (job.network == kVeth) HANARE_TRY(enter_bench_network());
    RemoteFarJob far = {job.network, job.rate_mbit, {}, lent_bytes(job.bytes), job.bytes};
    for (const StoreForm& form : Near::forms_on(job)) {
        const auto bytes = static_cast<double>(job.bytes) * form.bytes_factor / form.servers;
        far.servers.insert(far.servers.end(), form.servers,
                           lent_bytes(static_cast<uint64_t>(bytes)));
    }
    return RemoteFarProcess::start(far, interrupt);
}

bool is_what_the_machine_lacks(const Error& error) {
    return error.status == HANARE_STATUS_PERMISSION || error.status == HANARE_STATUS_NOT_FOUND ||
           error.status == HANARE_STATUS_NOT_SUPPORTED;
}

}  // namespace

std::string remote_case_names() {
    std::string names;
    for (const RemoteCase& each : kCases)
        names += (names.empty() ? "" : ",") + std::string(each.name);
    return names;
}

bool is_remote_latency(const std::string& name) {
    return name == kRemoteFault || name == kRemoteRandom;
}

Result<void> measure_remote(const std::string& text, const sys::Interrupt& interrupt) {
    const auto parsed = nlohmann::json::parse(text, nullptr, false);
    if (!parsed.is_object()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "--near: only the bench itself may use it");
    }
    const auto job = parsed.get<RemoteJob>();
    auto far = start_far(job, interrupt);
    if (!far && is_what_the_machine_lacks(far.error())) {
        say({{"left_out", far.error().text}});
        return {};
    }
    if (!far) return std::unexpected(far.error());
    Near near(job, std::move(*far));
    HANARE_TRY(near.open());
    HANARE_TRY(near.measure());
    say({{"done", true}});
    return {};
}

}  // namespace hanare::cli
