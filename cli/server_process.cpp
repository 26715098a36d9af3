// SPDX-License-Identifier: Apache-2.0
#include "cli/server_process.hpp"

#include <chrono>
#include <utility>
#include <vector>

#include "cli/worker_lines.hpp"
#include "config/rules.hpp"

namespace hanare::cli {
namespace {

constexpr std::chrono::seconds kPatience{30};

// Of "hanare server: tcp://HOST:PORT offers SIZE"; empty for any other line.
std::string url_in(const std::string& line) {
    const size_t begin = line.find("tcp://");
    if (begin == std::string::npos) return {};
    return line.substr(begin, line.find(' ', begin) - begin);
}

}  // namespace

Result<ServerProcess> ServerProcess::start(const std::string& host, uint64_t memory_bytes,
                                           const std::optional<fabric::Secret>& secret,
                                           const sys::Interrupt& interrupt) {
    std::vector<std::string> arguments = {
        "hanare", "server", "--memory", config::exact_size(memory_bytes), "--listen", host + ":0"};
    if (secret) arguments.insert(arguments.end(), {"--secret-file", "-"});
    HANARE_TRY_ASSIGN(sys::Child child, sys::Child::start(arguments, sys::Child::Input::kFromUs));
    if (secret) HANARE_TRY(child.send(secret->text()));
    child.end_input();
    WorkerLines lines(child.output_fd(), interrupt.fd());
    std::string line;
    const WorkerLines::Next next = lines.next(WorkerLines::Clock::now() + kPatience, line);
    if (next == WorkerLines::Next::kInterrupted) return fail(HANARE_STATUS_BUSY, "interrupted");
    std::string url = next == WorkerLines::Next::kLine ? url_in(line) : "";
    if (url.empty()) {
        return fail(HANARE_STATUS_INTERNAL, "hanare server of this bench does not serve: %.150s",
                    line.c_str());
    }
    return ServerProcess(std::move(child), std::move(url));
}

}  // namespace hanare::cli
