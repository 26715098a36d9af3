// SPDX-License-Identifier: Apache-2.0
#include "cli/intercept_station.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.hpp"
#include "config/store_spec.hpp"

namespace hanare::cli {
namespace {

constexpr std::chrono::seconds kPatience{120};
constexpr uint64_t kLocalBytes = 256 * kMiB;

constexpr const char* kWorker = "hanare-bench-intercept";

// Beside this program.
Result<std::string> worker_path() {
    std::error_code ignored;
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", ignored);
    const std::string path = (own.parent_path() / kWorker).string();
    if (access(path.c_str(), X_OK) == 0) return path;
    return fail(HANARE_STATUS_NOT_FOUND, "there is no program %s beside this one", kWorker);
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
    HANARE_TRY_ASSIGN(const std::string worker, worker_path());
    if (!below_run) return start({kWorker}, worker, {}, interrupt);
    HANARE_TRY_ASSIGN(const config::StoreSpec spec, config::parse_store_spec(store));
    sys::FileDescriptor statistics;
    if (const int error = sys::open_unnamed(spec.directory, statistics); error != 0) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "cannot create a file in %s",
                          spec.directory.c_str());
    }
    const std::string path =
        "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(statistics.number());
    return start({"hanare", "run", "--quiet", "--local", std::to_string(kLocalBytes), "--store",
                  store, "--stats", path, "--", worker},
                 "/proc/self/exe", std::move(statistics), interrupt);
}

Result<InterceptStation> InterceptStation::start(const std::vector<std::string>& arguments,
                                                 const std::string& program,
                                                 sys::FileDescriptor statistics,
                                                 const sys::Interrupt& interrupt) {
    using sys::Child;
    HANARE_TRY_ASSIGN(Child child, Child::start(arguments, Child::Input::kFromUs,
                                                Child::Output::kAlone, program.c_str()));
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

}  // namespace hanare::cli
