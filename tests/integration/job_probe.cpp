// SPDX-License-Identifier: Apache-2.0
//
// A task that joins its job, publishes a card, asks for those of all others, and prints one line:
//   LAUNCHER RANK SIZE HOST SECRET CARD CARD ...
// where SECRET is a number that follows from the secret, or "none".
//
//   job_probe                 does just that
//   job_probe wait            then waits for its standard input to end, or a signal
//   job_probe fail RANK N     that rank ends with status N before it publishes, the others wait for
//   it job_probe lost RANK       that rank ends with 0 before it publishes; the others say what
//   they see
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "fabric/crc32c.hpp"
#include "job/job.hpp"

namespace {

using hanare::job::Job;

constexpr int kTimeout_ms = 60'000;

std::string card_text(uint32_t rank) { return "card-" + std::to_string(rank); }

[[noreturn]] void end_with(const hanare::Error& error) {
    std::fprintf(stderr, "job_probe: %s\n", error.text);
    std::exit(3);
}

std::string line_of(Job& job) {
    std::string line = std::string(job.launcher()) + " " + std::to_string(job.rank()) + " " +
                       std::to_string(job.size()) + " " + job.host();
    const auto& secret = job.secret();
    line += " " + (secret ? std::to_string(hanare::fabric::crc32c(0, secret->bytes().data(), 32))
                          : "none");
    for (uint32_t rank = 0; rank < job.size(); ++rank) {
        const auto card = job.card_of(rank, kTimeout_ms);
        if (!card) end_with(card.error());
        line += " " + std::string(reinterpret_cast<const char*>(card->data()), card->size());
    }
    return line + "\n";
}

void wait_for_end_of_input() {
    char ignored[64];
    while (read(STDIN_FILENO, ignored, sizeof ignored) > 0) {
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    const auto joined = Job::join(kTimeout_ms);
    if (!joined) end_with(joined.error());
    Job& job = **joined;
    const bool is_meant = argc > 2 && std::to_string(job.rank()) == argv[2];
    if (what == "fail" && is_meant) return std::atoi(argv[3]);
    if (what == "lost" && is_meant) return 0;
    const std::string card = card_text(job.rank());
    const auto published = job.publish(std::as_bytes(std::span(card)), kTimeout_ms);
    if (!published) end_with(published.error());
    const std::string line = line_of(job);
    // In one piece, whatever the others write.
    if (write(STDOUT_FILENO, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
        return 4;
    }
    if (what == "wait") wait_for_end_of_input();
    return 0;
}
