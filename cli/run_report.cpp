// SPDX-License-Identifier: Apache-2.0
#include "cli/run_report.hpp"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <span>

#include "base/units.hpp"
#include "config/rules.hpp"
#include "sys/foreground_program.hpp"

namespace hanare::cli {
namespace {

using nlohmann::ordered_json;

constexpr double kNsPerSecond = 1e9;
constexpr double kLineEvery_s = 5;  // where there is no terminal

std::string format_wait(uint64_t wait_ns) {
    return format_duration(static_cast<double>(wait_ns) / kNsPerSecond);
}

// As the flag takes it, rounded up: "700M", "3.2G".
std::string enough_local(uint64_t bytes) {
    if (bytes < kGiB) return config::exact_size(round_up(bytes, kMiB));
    const uint64_t tenths = bytes / kGiB * 10 + (bytes % kGiB * 10 + kGiB - 1) / kGiB;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + "G";
}

template <typename Figures>
void put_figures(ordered_json& json, const Figures& figures){
#define HANARE_RUN_FIELD(name, text) json[#name] = figures.name;
    HANARE_RUN_FIGURE_MAP(HANARE_RUN_FIELD)
#undef HANARE_RUN_FIELD
}

ordered_json options_json(const config::Options& options) {
    ordered_json json;
    for (const config::OptionRow& row : config::option_rows()) {
        json[std::string(row.key)] = config::value_text(options, row.id);
    }
    return json;
}

ordered_json processes_json(const RunWatch& watch) {
    ordered_json list = ordered_json::array();
    for (const ProcessFigures& figures : watch.processes()) {
        ordered_json json = {{"process_id", figures.process_id},
                             {"command", figures.command},
                             {"has_ended", figures.has_ended}};
        put_figures(json, figures);
        list.push_back(std::move(json));
    }
    return list;
}

std::string hexadecimal(std::span<const uint8_t> bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (const uint8_t byte : bytes) {
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

// A terminal that another process group has, as below a shell that is the program, is not ours.
bool is_our_terminal() {
    const pid_t group = tcgetpgrp(STDERR_FILENO);
    return group < 0 || group == getpgrp();  // no group: it is just a terminal
}

}  // namespace

std::string format_duration(double seconds) {
    char text[48];
    const auto whole = static_cast<unsigned long long>(seconds);
    if (seconds < 60) {
        std::snprintf(text, sizeof text, "%.*f s", seconds < 1 ? 2 : 1, seconds);
    } else if (seconds < 3600) {
        std::snprintf(text, sizeof text, "%llu:%02llu", whole / 60, whole % 60);
    } else {
        std::snprintf(text, sizeof text, "%llu:%02llu:%02llu", whole / 3600, whole / 60 % 60,
                      whole % 60);
    }
    return text;
}

std::string summary_line(const RunTotals& totals, bool was_killed) {
    if (totals.processes == 0) return "no far memory was used";
    std::string line = "peak far memory " + format_size(totals.far_bytes_peak) + ", local " +
                       format_size(totals.budget_bytes);
    if (totals.processes > 1) line += ", " + std::to_string(totals.processes) + " processes";
    if (totals.read_bytes + totals.written_bytes == 0) {
        return line + (was_killed ? "; killed before it told what was moved"
                                  : "; nothing had to be moved");
    }
    return line + "; waited " + format_wait(totals.wait_ns) + " for " +
           format_size(totals.read_bytes) + " in and " + format_size(totals.written_bytes) +
           " out; with --local " + enough_local(totals.sufficient_bytes) +
           " nothing would have been moved";
}

std::string progress_line(const RunTotals& totals, double elapsed_s) {
    return format_duration(elapsed_s) + ": far " + format_size(totals.far_bytes) + ", local " +
           format_size(totals.local_bytes) + " of " + format_size(totals.budget_bytes) + ", in " +
           format_size(totals.read_bytes) + ", out " + format_size(totals.written_bytes) +
           ", waited " + format_wait(totals.wait_ns);
}

ordered_json run_statistics(const RunSubject& subject, const RunWatch& watch, double elapsed_s,
                            std::optional<int> wait_status) {
    ordered_json json = {{"version", HANARE_VERSION}, {"command", subject.command},
                         {"run_id", getpid()},        {"program_id", subject.program_id},
                         {"elapsed_s", elapsed_s},    {"exit_status", nullptr},
                         {"signal", nullptr}};
    if (wait_status) {
        const sys::ProgramEnd end = sys::program_end(*wait_status);
        json[end.is_signal ? "signal" : "exit_status"] = end.number;
    }
    json["options"] = options_json(subject.options);
    const RunTotals& totals = watch.totals();
    json["totals"] = {{"processes", totals.processes},
                      {"sharers", totals.sharers},
                      {"sufficient_local_bytes", totals.sufficient_bytes}};
    put_figures(json["totals"], totals);
    json["processes"] = processes_json(watch);
    return json;
}

ordered_json run_timeline(const RunWatch& watch) {
    ordered_json list = ordered_json::array();
    for (const RunSample& sample : watch.samples()) {
        list.push_back({{"elapsed_s", sample.elapsed_s},
                        {"far_bytes", sample.far_bytes},
                        {"local_bytes", sample.local_bytes},
                        {"read_bytes", sample.read_bytes},
                        {"written_bytes", sample.written_bytes},
                        {"wait_ns", sample.wait_ns},
                        {"faults", sample.faults}});
    }
    return list;
}

ordered_json run_maps(const RunWatch& watch) {
    ordered_json list = ordered_json::array();
    for (const std::vector<RunMapShot>& shots : watch.maps()) {
        for (const RunMapShot& shot : shots) {
            list.push_back({{"elapsed_s", shot.elapsed_s},
                            {"process_id", shot.process_id},
                            {"area", shot.area},
                            {"begin", shot.begin},
                            {"bytes", shot.bytes},
                            {"local", hexadecimal(shot.local)},
                            {"kept", hexadecimal(shot.kept)}});
        }
    }
    return list;
}

std::string json_text(const ordered_json& json, int indent) {
    return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

RunProgress::RunProgress(bool is_wanted)
    : wanted_(is_wanted),
      terminal_(isatty(STDERR_FILENO) == 1),
      next_s_(terminal_ ? 0 : kLineEvery_s) {}

void RunProgress::update(const RunTotals& totals, double elapsed_s) {
    if (!wanted_ || elapsed_s < next_s_ || (terminal_ && !is_our_terminal())) return;
    const std::string line = progress_line(totals, elapsed_s);
    if (terminal_) {
        // Without line breaks, which could not be taken back.
        std::fprintf(stderr, "\r\033[K\033[?7l%s\033[?7h", line.c_str());
        std::fflush(stderr);
        drawn_ = true;
        return;
    }
    std::fprintf(stderr, "hanare: %s\n", line.c_str());
    next_s_ = (std::floor(elapsed_s / kLineEvery_s) + 1) * kLineEvery_s;
}

void RunProgress::clear() {
    if (drawn_ && is_our_terminal()) std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    drawn_ = false;
}

}  // namespace hanare::cli
