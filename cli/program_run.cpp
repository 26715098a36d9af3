// SPDX-License-Identifier: Apache-2.0
#include "cli/program_run.hpp"

#include <unistd.h>

#include <algorithm>

#include "sys/child.hpp"

namespace hanare::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kTick{250};
constexpr std::chrono::seconds kEndTime{60};  // for the end of who was killed
constexpr size_t kLinesKept = 4;
constexpr size_t kOutputMax = 64u << 10;

}  // namespace

std::string ProgramRun::last_said() const {
    if (!error.empty()) return error;
    return said.empty() ? sys::describe_wait_status(end.status) : said.back();
}

ProgramRun run_program(const sys::MeasuredProgram::Launch& launch, std::chrono::seconds patience,
                       int interrupt_fd, const std::function<void()>& look) {
    ProgramRun run;
    if (look) look();  // a fast reader is done before the first tick
    const auto start = Clock::now();
    auto program = sys::MeasuredProgram::start(launch);
    if (!program) return {.error = program.error().text};
    WorkerLines lines(program->error_fd(), interrupt_fd);
    const auto deadline = start + patience;
    std::string line;
    while (true) {
        run.ending = lines.next(std::min(deadline, Clock::now() + kTick), line);
        if (run.ending == WorkerLines::Next::kLine) {
            if (run.said.size() == kLinesKept) run.said.erase(run.said.begin());
            run.said.push_back(line);
        } else if (run.ending != WorkerLines::Next::kTooSlow || Clock::now() >= deadline) {
            break;
        }
        if (look) look();
    }
    run.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (run.ending != WorkerLines::Next::kClosed) {
        program->kill();
        // Those that it has started die, too, and keep its standard error until their memory is
        // gone.
        program->wait_for_last(kEndTime);
    }
    const auto end = program->wait();
    if (!end) return {.error = end.error().text};
    run.end = *end;
    return run;
}

std::string output_text(int file) {
    std::string text(kOutputMax, '\0');
    const ssize_t got = pread(file, text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
}

}  // namespace hanare::cli
