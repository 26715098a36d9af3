// SPDX-License-Identifier: Apache-2.0
//
// `hanare demo`: the main job of the DLM paper, matv with a matrix larger than local memory, on
// Hanare and on what a system offers without it, each in its own process and under the same memory
// limit.  Single-threaded but for the device probe.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include <CLI/CLI.hpp>

#include "base/units.hpp"
#include "bench/device_probe.hpp"
#include "bench/memory.hpp"
#include "bench/table.hpp"
#include "cli/commands.hpp"
#include "cli/demo_progress.hpp"
#include "cli/demo_setting.hpp"
#include "cli/demo_sort.hpp"
#include "cli/json_file.hpp"
#include "sys/interrupt.hpp"
#include "sys/swap_file.hpp"

namespace hanare::cli {
namespace {

using config::OptionId;

constexpr uint64_t kProbeBytes = 512 * kMiB;
constexpr int kInterrupted = -1;
constexpr uint64_t kExactRows = 16;        // of the reference, checked against another summation
constexpr double kExactTolerance = 1e-12;  // relative

// All that happened, system by system in the order asked for.
struct DemoSeries {
    std::vector<bench::DemoRuns> runs;
    std::vector<std::string> remarks;  // for below the table
    std::string error;                 // why the demo as a whole failed; empty when it did not
};

// The reference for y, itself checked on some rows; empty when interrupted.
Result<std::vector<double>> make_reference(uint64_t n, Progress& progress) {
    progress.begin("computing the reference", 0);
    uint64_t row = 0;
    std::vector<double> y = bench::matv_reference(n, [&] {
        if (++row % 256 == 0) progress.update(static_cast<double>(row) / static_cast<double>(n));
        return sys::Interrupt::requested();
    });
    if (y.size() != n) return std::vector<double>{};
    for (uint64_t i = 0; i < kExactRows; ++i) {
        const uint64_t checked = i * (n - 1) / (kExactRows - 1);
        const double exact = bench::matv_row_exact(n, checked);
        if (!(std::fabs(y[checked] - exact) <= kExactTolerance * exact)) {
            return fail(HANARE_STATUS_INTERNAL,
                        "the reference for row %llu is %.17g, another summation gives %.17g",
                        static_cast<unsigned long long>(checked), y[checked], exact);
        }
    }
    return y;
}

std::optional<bench::DeviceBandwidth> probe(const DemoSetting& setting, Progress& progress,
                                            std::vector<std::string>& remarks) {
    progress.begin("measuring the device", 0);
    bench::DeviceProbeOptions options;
    options.directory = setting.job.directory;
    options.file_bytes = std::min(kProbeBytes, round_up(setting.plan.matrix_bytes, kMiB));
    const auto found = bench::probe_device(options, [] { return sys::Interrupt::requested(); });
    if (found) return *found;
    remarks.push_back(std::string("of device: unknown: ") + found.error().text);
    return std::nullopt;
}

void print_head(const DemoSetting& setting, const std::optional<bench::DeviceBandwidth>& device) {
    const bench::DemoPlan& plan = setting.plan;
    const std::string local = format_size(plan.limit_bytes);
    std::printf(
        "matv: y = a * x, a of %llu x %llu doubles (%s), %s of memory for each limited system"
        "\n",
        static_cast<unsigned long long>(plan.n), static_cast<unsigned long long>(plan.n),
        format_size(plan.matrix_bytes).c_str(), local.c_str());
    std::printf("hanare: budget %s, blocks of %s, engine %s, store %s; huge pages: %s\n",
                format_size(plan.hanare_local_bytes).c_str(),
                format_size(setting.job.block_bytes).c_str(), setting.job.engine.c_str(),
                setting.job.store.c_str(), bench::transparent_huge_page_mode().c_str());
    if (device) {
        std::printf("device %s: reads %s, writes %s (O_DIRECT, 1 MiB, 8 at a time)\n",
                    setting.job.device.empty() ? "?" : setting.job.device.c_str(),
                    bench::format_rate(device->read_bytes_per_s).c_str(),
                    bench::format_rate(device->write_bytes_per_s).c_str());
    }
    for (const std::string& note : plan.notes) std::printf("note: %s\n", note.c_str());
    std::fflush(stdout);
}

// Files one run; false when the series is to end.
bool take(const std::string& system, DemoOutcome outcome,
          std::map<std::string, bench::DemoRuns>& runs, DemoSeries& series) {
    using Kind = DemoOutcome::Kind;
    const auto remark = [&](const std::string& text) {
        const std::string line = system + ": " + text;
        auto& remarks = series.remarks;
        if (std::find(remarks.begin(), remarks.end(), line) == remarks.end()) {
            remarks.push_back(line);
        }
    };
    if (!outcome.note.empty()) remark(outcome.note);
    switch (outcome.kind) {
        case Kind::kDone: runs[system].push_back(std::move(outcome.run)); return true;
        case Kind::kLeftOut: remark("left out: " + outcome.text); return true;
        case Kind::kInterrupted: return false;
        case Kind::kWrong:
            series.error = system + " computed a wrong result: " + outcome.text;
            return true;
        case Kind::kFailed:
            remark("did not finish: " + outcome.text);
            if (system == "hanare") series.error = "hanare did not finish: " + outcome.text;
            return true;
    }
    return true;
}

// Runs the systems `rounds` times, each round beginning with another one.
DemoSeries run_series(const std::vector<std::string>& systems, const DemoSetting& setting,
                      int interrupt_fd, Progress& progress) {
    DemoSeries series;
    std::map<std::string, bench::DemoRuns> runs;
    const size_t total = systems.size() * setting.rounds;
    for (size_t i = 0; i < total && !sys::Interrupt::requested(); ++i) {
        const std::string& system = systems[(i + i / systems.size()) % systems.size()];
        if (system == "plain" && setting.plan.no_plain) {
            take(system, {.kind = DemoOutcome::Kind::kLeftOut, .text = *setting.plan.no_plain},
                 runs, series);
            continue;
        }
        const std::string label = bench::format("[%zu/%zu] %s", i + 1, total, system.c_str());
        auto outcome = run_demo_system(system, label, setting, interrupt_fd, progress);
        if (!take(system, std::move(outcome), runs, series)) break;
    }
    for (const std::string& system : systems) {
        if (runs.contains(system)) series.runs.push_back(runs[system]);
    }
    return series;
}

nlohmann::json params_of(const DemoSetting& setting) {
    return {{"n", setting.plan.n},
            {"local_ratio", static_cast<double>(setting.plan.limit_bytes) /
                                static_cast<double>(setting.plan.matrix_bytes)},
            {"limit_bytes", setting.plan.limit_bytes},
            {"local_bytes", setting.plan.hanare_local_bytes},
            {"block_bytes", setting.job.block_bytes},
            {"engine", setting.job.engine},
            {"read_ahead_blocks", setting.job.read_ahead_blocks},
            {"store", setting.job.store},
            {"threads", 1},
            {"flush", false}};
}

int finish(const DemoSetting& setting, const DemoSeries& series,
           const std::optional<bench::DeviceBandwidth>& device, JsonFile& json) {
    const double ratio = static_cast<double>(setting.plan.matrix_bytes) /
                         static_cast<double>(setting.plan.limit_bytes);
    std::printf("\n%s", bench::demo_table(series.runs, device).c_str());
    for (const std::string& remark : series.remarks) std::printf("%s\n", remark.c_str());
    std::printf("\n%s\n", bench::demo_sentence(series.runs, ratio).c_str());
    std::fflush(stdout);
    const auto written = json.write(bench::demo_records(series.runs, device, params_of(setting)));
    if (!written) return report(written.error());
    if (series.error.empty()) return kExitSuccess;
    std::fprintf(stderr, "hanare: error: %s\n", series.error.c_str());
    return kExitInternalFailure;
}

// kInterrupted when a signal ended it; everything is undone when it returns.
int run_demo(const DemoFlags& flags) {
    const sys::Interrupt interrupt;
    const auto systems = parse_systems(flags.systems);
    if (!systems) return report(systems.error());
    auto setting = make_setting(flags);
    if (!setting) return report(setting.error());
    auto json = JsonFile::open(flags.json);
    if (!json) return report(json.error());
    auto guardian = sys::Guardian::start();
    std::vector<std::string> remarks;
    if (guardian) {
        setting->guardian = &*guardian;
    } else {
        remarks.push_back(std::string("without a guardian against kill -9: ") +
                          guardian.error().text);
    }
    if (const int stale = sys::remove_stale_swap_files(setting->job.directory); stale > 0) {
        std::fprintf(stderr, "removed %d swap file(s) that a killed run had left\n", stale);
    }
    Progress progress;
    const auto device = probe(*setting, progress, remarks);
    auto reference = make_reference(setting->plan.n, progress);
    progress.clear();
    if (!reference) return report(reference.error());
    if (sys::Interrupt::requested()) return kInterrupted;
    setting->reference = std::move(*reference);
    print_head(*setting, device);

    DemoSeries series = run_series(*systems, *setting, interrupt.fd(), progress);
    progress.clear();
    if (sys::Interrupt::requested()) return kInterrupted;
    series.remarks.insert(series.remarks.end(), remarks.begin(), remarks.end());
    return finish(*setting, series, device, *json);
}

int run(const DemoFlags& flags) {
    if (!flags.worker.empty()) return run_demo_worker(flags.worker);
    const int status = run_demo(flags);
    if (status != kInterrupted) return status;
    std::fputs("hanare demo: interrupted; nothing was left behind\n", stderr);
    sys::Interrupt::end_process();
}

}  // namespace

void add_demo(CLI::App& app) {
    CLI::App* demo = app.add_subcommand(
        "demo",
        "matrix-vector product with a matrix larger than memory: Hanare, mmap, swap, plain");
    auto flags = std::make_shared<DemoFlags>();
    demo->add_option("--size", flags->size, "size of the matrix, 8M or more")
        ->capture_default_str();
    demo->add_option("--systems", flags->systems,
                     "comma-separated, of plain, mmap, mmap-seq (MADV_SEQUENTIAL), swap, hanare")
        ->capture_default_str();
    demo->add_option("--rounds", flags->rounds, "runs of each system, 1 to 99; the median counts")
        ->capture_default_str();
    demo->add_option("--patience", flags->patience_s,
                     "seconds after which a system other than hanare is stopped, 1 to 86400")
        ->capture_default_str();
    demo->add_option("--json", flags->json, "write the results to this file");
    demo->add_option("--worker", flags->worker)->group("");  // how the demo runs itself
    flags->overrides =
        add_option_flags(*demo, {OptionId::local_bytes, OptionId::store, OptionId::block_bytes,
                                 OptionId::engine, OptionId::read_ahead_blocks});
    demo->get_option("--local")->description(
        "memory of each limited system, and of Hanare less 5 % and 16 MiB (default 512M)");
    add_demo_sort(*demo);
    // CLI11 calls it after that of a subcommand, too.
    set_run(*demo,
            [flags, demo] { return demo->get_subcommands().empty() ? run(*flags) : kExitSuccess; });
}

}  // namespace hanare::cli
