// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_pager.hpp"

#include <cstdio>

#include "base/units.hpp"
#include "bench/pager_report.hpp"
#include "bench/raw_device.hpp"
#include "cli/commands.hpp"
#include "cli/json_file.hpp"
#include "cli/pager_runner.hpp"
#include "sys/guardian.hpp"
#include "sys/interrupt.hpp"
#include "sys/swap_file.hpp"
#include "sys/zram_swap.hpp"

namespace hanare::cli {
namespace {

void print_head(const PagerSeries& series) {
    const bench::PagerPlan& plan = series.setting.plan;
    const PagerJob& job = series.setting.job;
    std::printf("%s of data, %s of memory for each limited system; %u round%s\n",
                format_size(plan.data_bytes).c_str(), format_size(plan.limit_bytes).c_str(),
                series.rounds, series.rounds == 1 ? "" : "s");
    std::printf(
        "hanare: budget %s, blocks of %s, engine %s, store %s; raw device: io_uring, O_DIRECT, "
        "%s, %s in flight\n",
        format_size(plan.hanare_local_bytes).c_str(), format_size(job.block_bytes).c_str(),
        job.engine.c_str(), job.store.c_str(), format_size(bench::RawDevice::kBlockBytes).c_str(),
        format_size(job.in_flight_bytes).c_str());
    for (const std::string& note : plan.notes) std::printf("note: %s\n", note.c_str());
    std::fflush(stdout);
}

void print_results(const PagerOutcome& outcome, double local_ratio) {
    std::printf("\n%s", bench::pager_table(outcome.samples).c_str());
    std::puts(
        "hanare/it: median of the ratios of each round; of rates above 1, of times below 1 is "
        "Hanare ahead\n"
        "* stopped before the end of the pass; the rate of what was done by then");
    for (const std::string& remark : outcome.remarks) std::printf("%s\n", remark.c_str());
    std::printf("\ngoals, as ratios in one round\n%s",
                bench::pager_goals(outcome.samples, local_ratio).c_str());
    std::puts("device allows: the ratio if Hanare kept the raw device busy all the time");
    std::fflush(stdout);
}

nlohmann::json params_of(const PagerSeries& series) {
    const PagerJob& job = series.setting.job;
    return {{"data_bytes", series.setting.plan.data_bytes},
            {"limit_bytes", series.setting.plan.limit_bytes},
            {"local_ratio", static_cast<double>(series.setting.plan.limit_bytes) /
                                static_cast<double>(series.setting.plan.data_bytes)},
            {"local_bytes", job.local_bytes},
            {"block_bytes", job.block_bytes},
            {"engine", job.engine},
            {"read_ahead_blocks", job.read_ahead_blocks},
            {"store", job.store},
            {"flush", false}};
}

Result<void> run(const PagerFlags& flags, const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(PagerSeries series, make_pager_series(flags));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    series.setting.interrupt_fd = interrupt.fd();
    auto guardian = sys::Guardian::start();
    if (guardian) {
        series.setting.guardian = &*guardian;
    } else {
        series.setting.plan.notes.push_back(std::string("without a guardian against kill -9: ") +
                                            guardian.error().text);
    }
    const std::string& directory = series.setting.job.directory;
    const int stale =
        sys::remove_stale_swap_files(directory) + sys::remove_stale_zram_swap(directory);
    if (stale > 0) {
        std::fprintf(stderr, "removed swap that a killed run had left, %d time(s)\n", stale);
    }
    print_head(series);
    const PagerOutcome outcome = run_pager_series(series);
    if (sys::Interrupt::requested()) return fail(HANARE_STATUS_BUSY, "interrupted");
    if (!outcome.error.empty()) {
        return fail(HANARE_STATUS_INTERNAL, "%s", outcome.error.c_str());
    }
    print_results(outcome, static_cast<double>(series.setting.job.local_bytes) /
                               static_cast<double>(series.setting.plan.data_bytes));
    return json.write(bench::pager_records(outcome.samples, params_of(series)));
}

}  // namespace

int run_bench_pager(const PagerFlags& flags) {
    if (!flags.worker.empty()) return run_pager_worker(flags.worker);
    return run_interruptible("hanare bench pager", [&](const sys::Interrupt& interrupt) {
        return run(flags, interrupt);
    });
}

}  // namespace hanare::cli
