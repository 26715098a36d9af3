// SPDX-License-Identifier: Apache-2.0
//
// A client of a memory server on 127.0.0.1: opens a lease, lets it grow, prints one line,
//   NUMBER BYTES EXTENTS
// and ends the lease when its standard input says "end", or leaves without a word.
//
//   lease_probe PORT NAME BYTES [SECRET_FILE [authenticated]]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "fabric/tcp_link.hpp"
#include "lease/ask.hpp"
#include "sys/clock.hpp"

namespace {

using namespace hanare;
using lease::Ask;

constexpr uint64_t kPatience_ns = 20'000'000'000;

[[noreturn]] void end_with(const char* what, const char* why) {
    std::fprintf(stderr, "lease_probe: %s: %s\n", what, why);
    std::exit(3);
}

std::unique_ptr<fabric::TcpLink> connect(int argc, char** argv) {
    fabric::TcpLink::Settings settings;
    settings.host = "127.0.0.1";
    settings.port = static_cast<uint16_t>(std::atoi(argv[1]));
    if (argc > 4) {
        auto secret = fabric::Secret::read_file(argv[4]);
        if (!secret) end_with("secret", secret.error().text);
        settings.secret = std::move(*secret);
    }
    if (argc > 5) settings.protection = fabric::Protection::kAuthenticated;
    auto link = fabric::TcpLink::connect(settings);
    if (!link) end_with("connecting", link.error().text);
    return std::move(*link);
}

// With BUSY the server asks for patience, but for an open.
void ask(fabric::Link& link, const lease::Question& question, lease::Reply& reply) {
    const uint64_t end_ns = sys::now_ns() + kPatience_ns;
    hanare_status status = HANARE_STATUS_BUSY;
    do {
        status = lease::ask(link, question, end_ns, reply);
    } while (status == HANARE_STATUS_BUSY && question.what != Ask::kOpen && sys::now_ns() < end_ns);
    if (status != HANARE_STATUS_OK) end_with("asking", hanare_status_name(status));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    const auto link = connect(argc, argv);
    lease::Reply reply;
    lease::Question question = {.what = Ask::kOpen};
    std::memcpy(question.client, argv[2], std::min(std::strlen(argv[2]), sizeof question.client));
    ask(*link, question, reply);

    question = {.what = Ask::kGrow,
                .lease = reply.answer.lease,
                .bytes = std::strtoull(argv[3], nullptr, 10)};
    const uint64_t number = reply.answer.lease.number;
    ask(*link, question, reply);
    std::printf("%llu %llu %zu\n", static_cast<unsigned long long>(number),
                static_cast<unsigned long long>(reply.answer.leased_bytes), reply.extents.size());
    std::fflush(stdout);

    char word[16] = {};
    if (std::fgets(word, sizeof word, stdin) == nullptr || std::string_view(word) != "end\n") {
        return 0;
    }
    question.what = Ask::kEnd;
    ask(*link, question, reply);
    return 0;
}
