// SPDX-License-Identifier: Apache-2.0
#include "cli/intercept_station.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/units.hpp"
#include "cli/commands.hpp"
#include "config/store_spec.hpp"

namespace hanare::cli {
namespace {

constexpr std::chrono::seconds kPatience{120};
constexpr uint64_t kLocalBytes = 256 * kMiB;
constexpr size_t kFarBytes = 32 * kMiB;

std::string own_path() {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

Result<std::string> text_of(const sys::FileDescriptor& file) {
    std::string text;
    char part[4096];
    ssize_t got = 0;
    while ((got = pread(file.number(), part, sizeof part, static_cast<off_t>(text.size()))) > 0) {
        text.append(part, static_cast<size_t>(got));
    }
    if (got == 0) return text;
    return fail_errno(HANARE_STATUS_SYSTEM, errno, "cannot read the statistics of hanare run");
}

}  // namespace

Result<InterceptStation> InterceptStation::open(bool below_run, const std::string& store,
                                                const sys::Interrupt& interrupt) {
    const std::vector<std::string> worker = {"bench", "intercept", "--worker"};
    std::vector<std::string> arguments = {"hanare"};
    sys::FileDescriptor statistics;
    if (below_run) {
        HANARE_TRY_ASSIGN(const config::StoreSpec spec, config::parse_store_spec(store));
        if (const int error = sys::open_unnamed(spec.directory, statistics); error != 0) {
            return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "cannot create a file in %s",
                              spec.directory.c_str());
        }
        const std::string path =
            "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(statistics.number());
        for (const std::string& argument :
             {std::string("run"), std::string("--local"), std::to_string(kLocalBytes),
              std::string("--store"), store, std::string("--stats"), path, std::string("--"),
              own_path()}) {
            arguments.push_back(argument);
        }
    }
    arguments.insert(arguments.end(), worker.begin(), worker.end());
    HANARE_TRY_ASSIGN(sys::Child child, sys::Child::start(arguments, sys::Child::Input::kFromUs));
    WorkerLines lines(child.output_fd(), interrupt.fd());
    return InterceptStation(std::move(child), std::move(statistics), std::move(lines));
}

Result<double> InterceptStation::measure(const bench::InterceptCase& which, uint64_t for_ns) {
    HANARE_TRY(child_.send(std::string(which.name) + " " + std::to_string(for_ns) + "\n"));
    std::string line;
    switch (lines_.next(WorkerLines::Clock::now() + kPatience, line)) {
        case WorkerLines::Next::kLine: break;
        case WorkerLines::Next::kInterrupted: return fail(HANARE_STATUS_BUSY, "interrupted");
        case WorkerLines::Next::kTooSlow:
            return fail(HANARE_STATUS_INTERNAL, "%s: the worker does not answer", which.name);
        case WorkerLines::Next::kClosed:
            return fail(HANARE_STATUS_INTERNAL, "%s: the worker has ended", which.name);
    }
    char* end = nullptr;
    const double value = std::strtod(line.c_str(), &end);
    if (end == line.c_str() || *end != '\0') {
        return fail(HANARE_STATUS_INTERNAL, "worker: %.200s", line.c_str());
    }
    return value;
}

Result<uint64_t> InterceptStation::close() {
    child_.end_input();
    HANARE_TRY_ASSIGN(const int status, child_.wait());
    if (status != 0) {
        return fail(HANARE_STATUS_INTERNAL, "the worker ended with %s",
                    sys::describe_wait_status(status).c_str());
    }
    if (!statistics_.is_open()) return 0;
    HANARE_TRY_ASSIGN(const std::string text, text_of(statistics_));
    const auto json = nlohmann::json::parse(text, nullptr, false);
    const auto totals = json.is_object() ? json.value("totals", nlohmann::json::object())
                                         : nlohmann::json::object();
    return totals.value("protected_calls", uint64_t{0});
}

int serve_intercept_cases() {
    auto work = bench::InterceptWork::prepare(kFarBytes);
    if (!work) return report(work.error());
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        std::string name;
        uint64_t for_ns = 0;
        words >> name >> for_ns;
        const bench::InterceptCase* const which = bench::find_intercept_case(name);
        const Result<double> value =
            which != nullptr ? work->run(*which, for_ns)
                             : fail(HANARE_STATUS_INVALID_ARGUMENT, "no case %s", name.c_str());
        if (value) {
            std::printf("%.3f\n", *value);
        } else {
            std::printf("%s\n", value.error().text);
        }
        std::fflush(stdout);
    }
    return kExitSuccess;
}

}  // namespace hanare::cli
