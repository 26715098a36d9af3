// SPDX-License-Identifier: Apache-2.0
//
// `hanare demo sort`: GNU sort of a text in a quarter of the memory it takes, under `hanare run`
// and with kernel swap, beside sort as it is.  The text and all results are files without names,
// which programs get as their standard streams: nothing is left, and it does not matter who reads
// them. Single-threaded.
#include "cli/demo_sort.hpp"

#include <cstdio>
#include <optional>

#include <CLI/CLI.hpp>

#include "base/units.hpp"
#include "bench/sort_report.hpp"
#include "bench/table.hpp"
#include "bench/text_corpus.hpp"
#include "cli/demo_progress.hpp"
#include "cli/json_file.hpp"
#include "cli/sort_runner.hpp"
#include "cli/store_directory.hpp"
#include "config/rules.hpp"
#include "sys/interrupt.hpp"
#include "sys/platform.hpp"
#include "sys/program_file.hpp"
#include "sys/swap_file.hpp"

namespace hanare::cli {
namespace {

using config::OptionId;

constexpr uint64_t kTextBytesMin = 256 * kMiB;  // a quarter of what that takes holds enough blocks
constexpr config::Range kPatienceAllowed_s(1, 86400);
constexpr config::OneOf<bench::CorpusOrder> kOrderAllowed("runs|random");

struct SortFlags {
    std::string size = "1G";
    std::string order = "runs";
    std::string patience_s = "600";
    std::optional<std::string> json;
    std::shared_ptr<config::Overrides> overrides;
};

// What is measured, and what belongs to it.
struct SortSeries {
    SortSetting setting;
    std::vector<std::string> systems;
    std::vector<bench::SortRun> runs;
    std::vector<std::string> remarks;  // for below the table
    std::string error;                 // why the demo as a whole failed; empty when it did not
};

std::vector<std::string> run_flags(const config::Options& options) {
    std::vector<std::string> flags = {"--store", options.store};
    for (const config::OptionRow& row : config::option_rows()) {
        if (row.id == OptionId::local_bytes || row.id == OptionId::store) continue;
        flags.push_back(row.flag);
        flags.push_back(row.id == OptionId::block_bytes ? config::exact_size(options.block_bytes)
                                                        : config::value_text(options, row.id));
    }
    return flags;
}

Result<SortSetting> make_setting(const SortFlags& flags) {
    HANARE_TRY_ASSIGN(const config::Options options, load_and_apply(*flags.overrides));
    SortSetting setting;
    HANARE_TRY_ASSIGN(setting.patience_s, kPatienceAllowed_s.parse("--patience", flags.patience_s));
    HANARE_TRY_ASSIGN(setting.order, kOrderAllowed.parse("--order", flags.order));
    HANARE_TRY_ASSIGN(setting.text_bytes, parse_size("--size", flags.size));
    if (setting.text_bytes < kTextBytesMin) {
        return config::bad_value("--size", flags.size, "is too small",
                                 config::exact_size(kTextBytesMin) + " or more");
    }
    HANARE_TRY_ASSIGN(setting.directory, store_directory(options));
    HANARE_TRY_ASSIGN(const bench::MachineRoom room, bench::machine_room(setting.directory));
    HANARE_TRY(bench::check_sort_room(setting.text_bytes, setting.directory, room));
    const auto path = sys::find_program("sort");
    if (!path) {
        return fail(HANARE_STATUS_NOT_FOUND, "there is no sort in PATH; install coreutils");
    }
    setting.sort_path = *path;
    setting.buffer_bytes = bench::sort_memory_estimate(setting.text_bytes);
    setting.run_flags = run_flags(options);
    return setting;
}

// What this user may measure.
void choose_systems(SortSeries& series) {
    const sys::Platform platform = sys::probe_platform();
    series.systems = {"plain", "limited", "hanare", "swap"};
    if (!platform.cgroup_refusal.empty()) {
        series.systems = {"plain", "hanare"};
        series.remarks.push_back(
            "hanare by its own budget, without limited and swap, which need a "
            "memory cgroup (" +
            platform.cgroup_refusal + ")");
    } else if (!platform.may_swapon) {
        series.systems.pop_back();
        series.remarks.emplace_back("without swap, which only root may turn on");
    }
}

// Who runs sort.  As root an ordinary user does, where one can.
void choose_user(SortSeries& series, int interrupt_fd) {
    const auto user = sys::unprivileged_user();
    if (!user) return;
    const std::string obstacle = try_as_user(*user, series.setting, interrupt_fd);
    if (obstacle.empty()) {
        series.setting.user = user;
        return;
    }
    series.remarks.push_back("sort ran as root, because user " + std::to_string(user->user) +
                             " cannot run it: " + obstacle);
}

Result<void> write_text(SortSeries& series, sys::FileDescriptor& file, Progress& progress) {
    SortSetting& setting = series.setting;
    if (const int error = sys::open_unnamed(setting.directory, file); error != 0) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "creating a file in %.150s",
                          setting.directory.c_str());
    }
    progress.begin("collecting " + format_size(setting.text_bytes) + " of text",
                   setting.text_bytes);
    HANARE_TRY_ASSIGN(const bench::Corpus corpus,
                      bench::write_corpus(bench::corpus_request(setting.text_bytes, setting.order),
                                          file.number(), [&progress](double fraction) {
                                              progress.update(fraction);
                                              return !sys::Interrupt::requested();
                                          }));
    progress.clear();
    if (!corpus.is_complete) return {};
    setting.text = file.number();
    setting.text_bytes = corpus.bag.bytes();
    setting.bag = corpus.bag;
    setting.buffer_bytes = bench::sort_buffer_bytes(corpus.bag.bytes(), corpus.bag.lines());
    std::printf(
        "sort: %s, %s lines, from %s of %s files of this machine's headers and "
        "documentation\n",
        format_size(corpus.bag.bytes()).c_str(), bench::format_count(corpus.bag.lines()).c_str(),
        format_size(corpus.source_bytes).c_str(), bench::format_count(corpus.source_files).c_str());
    std::printf("in %s; command: LC_ALL=C sort -S %llub --parallel=2\n",
                setting.order == bench::CorpusOrder::kRuns
                    ? "8 runs that are sorted but for neighbours, as logs of several machines are"
                    : "random order",
                static_cast<unsigned long long>(setting.buffer_bytes));
    std::fflush(stdout);
    return {};
}

void print_limit(const SortSetting& setting) {
    std::printf("sort takes %s; limited it gets %s, Hanare's budget of it is %s, store %s\n",
                format_size(setting.plain_peak_bytes).c_str(),
                format_size(setting.limit_bytes).c_str(),
                format_size(bench::hanare_budget_bytes(setting.limit_bytes)).c_str(),
                setting.directory.c_str());
    std::fflush(stdout);
}

// The first run tells how much memory there is to be for the others; false when it failed.
bool take_plain(const SortOutcome& outcome, SortSeries& series) {
    SortSetting& setting = series.setting;
    if (!outcome.run.is_done) {
        series.error = "sort did not finish plainly: " +
                       (outcome.run.result.empty() ? "" : outcome.run.result + "; ") +
                       (outcome.notes.empty() ? outcome.error : outcome.notes.back());
        return false;
    }
    setting.expected = outcome.check;
    setting.plain_peak_bytes = outcome.run.peak_resident_bytes;
    setting.limit_bytes = bench::sort_limit_bytes(setting.plain_peak_bytes);
    return true;
}

void take(const std::string& system, const SortOutcome& outcome, SortSeries& series) {
    for (const std::string& note : outcome.notes) {
        const std::string remark = system + ": " + note;
        if (series.remarks.empty() || series.remarks.back() != remark) {
            series.remarks.push_back(remark);
        }
    }
    if (!outcome.is_left_out) series.runs.push_back(outcome.run);
    if (!outcome.error.empty()) {
        series.error = system + ": " + outcome.error;
    } else if (system == "hanare" && !outcome.run.is_done) {
        series.error = "hanare did not finish: " +
                       (outcome.is_left_out ? outcome.notes.back() : outcome.run.result);
    }
}

// Ends early when interrupted, or without a plain result to compare with.
void run_all(SortSeries& series, int interrupt_fd, Progress& progress) {
    int number = 0;
    for (const std::string& system : series.systems) {
        const std::string label =
            bench::format("[%d/%zu] %s", ++number, series.systems.size(), system.c_str());
        const SortOutcome outcome = run_sort(system, label, series.setting, interrupt_fd, progress);
        progress.clear();
        if (outcome.is_interrupted || sys::Interrupt::requested()) return;
        const bool is_plain = !series.setting.expected;
        if (is_plain && !take_plain(outcome, series)) return;
        take(system, outcome, series);
        if (is_plain) print_limit(series.setting);
    }
}

Result<void> finish(const SortSeries& series, JsonFile& json) {
    const SortSetting& setting = series.setting;
    std::printf("\n%s", bench::sort_table(series.runs).c_str());
    for (const std::string& remark : series.remarks) std::printf("%s\n", remark.c_str());
    if (setting.user) {
        std::printf("sort ran as user %u, who has no rights on this machine\n",
                    static_cast<unsigned>(setting.user->user));
    }
    std::printf("\n%s\n",
                bench::sort_sentence(series.runs, setting.text_bytes, setting.limit_bytes).c_str());
    return json.write(bench::sort_records(series.runs, {{"text_bytes", setting.text_bytes},
                                                        {"lines", setting.bag.lines()},
                                                        {"limit_bytes", setting.limit_bytes},
                                                        {"threads", 2}}));
}

Result<void> run_demo_sort(const SortFlags& flags, const sys::Interrupt& interrupt) {
    SortSeries series;
    HANARE_TRY_ASSIGN(series.setting, make_setting(flags));
    HANARE_TRY_ASSIGN(JsonFile json, JsonFile::open(flags.json));
    auto guardian = sys::Guardian::start();
    if (guardian) {
        series.setting.guardian = &*guardian;
    } else {
        series.remarks.push_back(std::string("without a guardian against kill -9: ") +
                                 guardian.error().text);
    }
    if (const int stale = sys::remove_stale_swap_files(series.setting.directory); stale > 0) {
        std::fprintf(stderr, "removed %d swap file(s) that a killed run had left\n", stale);
    }
    sys::FileDescriptor nothing;
    if (const int error = sys::open_unnamed(series.setting.directory, nothing); error != 0) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "creating a file in %.150s",
                          series.setting.directory.c_str());
    }
    series.setting.text = nothing.number();
    HANARE_TRY(check_gnu_sort(series.setting, interrupt.fd()));
    choose_systems(series);
    choose_user(series, interrupt.fd());
    Progress progress;
    sys::FileDescriptor text;
    HANARE_TRY(write_text(series, text, progress));
    if (!sys::Interrupt::requested()) run_all(series, interrupt.fd(), progress);
    if (sys::Interrupt::requested()) return {};
    HANARE_TRY(finish(series, json));
    if (series.error.empty()) return {};
    return fail(HANARE_STATUS_INTERNAL, "%.200s", series.error.c_str());
}

// An option of `hanare demo` that stands before the name of this part.
const CLI::Option* misplaced_option(const CLI::App& demo) {
    for (const CLI::Option* option : demo.get_options()) {
        if (option->count() > 0) return option;
    }
    return nullptr;
}

}  // namespace

void add_demo_sort(CLI::App& demo) {
    CLI::App* const sort = demo.add_subcommand(
        "sort", "GNU sort, unmodified, in a quarter of its memory: hanare run, swap, plain");
    auto flags = std::make_shared<SortFlags>();
    sort->add_option("--size", flags->size, "size of the text, 256M or more")
        ->capture_default_str();
    sort->add_option("--order", flags->order,
                     "runs: 8 nearly sorted runs, as logs of several machines are; random: every "
                     "line somewhere, so that whatever pages waits for the device at each")
        ->capture_default_str();
    sort->add_option("--patience", flags->patience_s,
                     "seconds after which a run is stopped, 1 to 86400")
        ->capture_default_str();
    sort->add_option("--json", flags->json, "write the results to this file");
    flags->overrides = add_option_flags(*sort, {OptionId::store, OptionId::block_bytes,
                                                OptionId::engine, OptionId::read_ahead_blocks});
    set_run(*sort, [flags, &demo] {
        if (const CLI::Option* const option = misplaced_option(demo)) {
            return report(fail(HANARE_STATUS_INVALID_ARGUMENT,
                               "%s must come after hanare demo sort; see hanare demo sort --help",
                               option->get_name().c_str())
                              .error());
        }
        return run_interruptible("hanare demo", [&](const sys::Interrupt& interrupt) {
            return run_demo_sort(*flags, interrupt);
        });
    });
}

}  // namespace hanare::cli
