// SPDX-License-Identifier: Apache-2.0
#include "cli/fabric_rounds.hpp"

#include "sys/interrupt.hpp"
#include "sys/process_time.hpp"

namespace hanare::cli {
namespace {

constexpr int kWarmUps = 1;

// Of this process and the target, so far.
Result<double> processor_ns(const FabricTargetProcess& target) {
    HANARE_TRY_ASSIGN(const uint64_t own, sys::processor_ns(0));
    HANARE_TRY_ASSIGN(const uint64_t targets, sys::processor_ns(target.pid()));
    return static_cast<double>(own + targets);
}

class Round {
public:
    Round(const FabricSetting& setting, std::vector<MeasuredCase>& all, int number)
        : setting_(setting),
          all_(all),
          seed_(static_cast<uint64_t>(number + 1000)),
          counts_(number >= 0) {}

    Result<void> measure() {
        for (size_t i = 0; i < setting_.engines.size(); ++i) HANARE_TRY(measure_engine(i));
        size_t system = 0;
        if (setting_.has_raw) HANARE_TRY(measure_raw(system++));
        for (ComparedProgram& program : setting_.compared) {
            for (MeasuredCase& each : all_) {
                HANARE_TRY_ASSIGN(const double us, program.run(*each.which, seed_));
                if (counts_) each.theirs[system].times.push_back(us);
            }
            ++system;
        }
        return {};
    }

private:
    Result<void> measure_engine(size_t engine) {
        HANARE_TRY_ASSIGN(const auto source,
                          bench::connect_fabric(setting_.address, setting_.engines[engine]));
        for (MeasuredCase& each : all_) {
            HANARE_TRY_ASSIGN(const double before, processor_ns(setting_.target));
            HANARE_TRY_ASSIGN(const double us, source->run(*each.which, seed_));
            HANARE_TRY_ASSIGN(const double after, processor_ns(setting_.target));
            if (!counts_) continue;
            // Nanoseconds for a byte are seconds for 10^9.
            const double bytes = static_cast<double>(each.which->bytes) * each.which->operations;
            each.ours[engine].times.push_back(us);
            each.ours[engine].processor.push_back((after - before) / bytes);
        }
        return {};
    }
    Result<void> measure_raw(size_t system) {
        HANARE_TRY(setting_.target.tell("raw"));
        {
            HANARE_TRY_ASSIGN(const auto source, bench::connect_raw(setting_.address));
            for (MeasuredCase& each : all_) {
                HANARE_TRY_ASSIGN(const double us, source->run(*each.which, seed_));
                if (counts_) each.theirs[system].times.push_back(us);
            }
        }
        HANARE_TRY(setting_.target.next_line());
        return {};
    }

    const FabricSetting& setting_;
    std::vector<MeasuredCase>& all_;
    const uint64_t seed_;
    const bool counts_;
};

template <typename Combine>
std::vector<double> by_round(const std::vector<double>& a, const std::vector<double>& b,
                             Combine combine) {
    std::vector<double> values;
    for (size_t i = 0; i < a.size() && i < b.size(); ++i) values.push_back(combine(a[i], b[i]));
    return values;
}

}  // namespace

Result<std::vector<MeasuredCase>> measure_rounds(const FabricSetting& setting,
                                                 const std::vector<bench::FabricCase>& cases) {
    std::vector<MeasuredCase> all;
    for (const bench::FabricCase& which : cases) {
        MeasuredCase measured = {&which, {}, {}};
        for (const bench::FabricEngine engine : setting.engines) {
            measured.ours.push_back({engine, {}, {}});
        }
        if (setting.has_raw) measured.theirs.push_back({kRawTcp, {}});
        for (const ComparedProgram& program : setting.compared) {
            measured.theirs.push_back({program.system(), {}});
        }
        all.push_back(std::move(measured));
    }
    if (all.empty()) return all;
    for (int number = -kWarmUps; number < setting.rounds; ++number) {
        if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
        HANARE_TRY(Round(setting, all, number).measure());
    }
    return all;
}

std::vector<double> ratios(const std::vector<double>& ours, const std::vector<double>& theirs) {
    return by_round(ours, theirs, [](double a, double b) { return a / b; });
}

std::vector<double> differences(const std::vector<double>& ours,
                                const std::vector<double>& others) {
    return by_round(ours, others, [](double a, double b) { return a - b; });
}

}  // namespace hanare::cli
