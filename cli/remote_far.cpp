// SPDX-License-Identifier: Apache-2.0
#include "cli/remote_far.hpp"

#include <chrono>
#include <cstdio>
#include <iostream>

#include "base/units.hpp"
#include "bench/raw_stream.hpp"
#include "cli/fabric_network.hpp"
#include "cli/server_process.hpp"
#include "sys/memory.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::cli {
namespace {

constexpr std::chrono::seconds kPatience{120};
constexpr int kConnectMs = 30'000;
constexpr const char* kLoopbackHost = "127.0.0.1";
// What the two say to each other.
constexpr const char* kRaw = "raw";
constexpr const char* kRawDone = "raw done";

void say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
}

Result<void> enter_network(const RemoteFarJob& job) {
    if (job.network != kVeth) return {};
    HANARE_TRY(meet_source());
    HANARE_TRY(open_to_everybody(NetworkEnd::kTarget));
    return job.rate_mbit == 0 ? Result<void>{} : limit_rate(NetworkEnd::kTarget, job.rate_mbit);
}

Result<sys::Mapping> touched_memory(uint64_t bytes) {
    HANARE_TRY_ASSIGN(sys::Mapping memory, sys::Mapping::reserve(bytes, kOsPageBytes));
    for (size_t at = 0; at < bytes; at += kOsPageBytes) memory.address()[at] = std::byte{1};
    return memory;
}

class Far {
public:
    static Result<Far> open(const RemoteFarJob& job, const sys::Interrupt& interrupt) {
        const bool is_veth = job.network == kVeth;
        const std::string plain_host = is_veth ? kVethPlainHost : kLoopbackHost;
        Far far;
        for (const uint64_t bytes : job.servers) {
            HANARE_TRY_ASSIGN(ServerProcess server,
                              ServerProcess::start(plain_host, bytes, std::nullopt, interrupt));
            far.told_.servers.push_back({server.url(), server.pid()});
            far.servers_.push_back(std::move(server));
        }
        if (job.sealed_bytes != 0) {
            HANARE_TRY(far.start_sealed(is_veth ? kVethTargetHost : kLoopbackHost, job, interrupt));
        }
        if (job.raw_bytes != 0) HANARE_TRY(far.listen_raw(plain_host, job));
        return far;
    }

    const RemoteFar& told() const { return told_; }

    Result<void> serve_raw() {
        sys::wait_for_socket(listener_.number(), {.to_read = true}, kConnectMs);
        const sys::FileDescriptor socket = sys::accept_tcp(listener_);
        if (!socket.is_open()) return fail(HANARE_STATUS_TIMEOUT, "nobody has connected");
        return bench::serve_raw_stream(socket, {memory_.address(), memory_.bytes()});
    }

private:
    Result<void> start_sealed(const char* host, const RemoteFarJob& job,
                              const sys::Interrupt& interrupt) {
        HANARE_TRY_ASSIGN(const fabric::Secret secret, fabric::Secret::make());
        HANARE_TRY_ASSIGN(ServerProcess sealed,
                          ServerProcess::start(host, job.sealed_bytes, secret, interrupt));
        told_.sealed = {sealed.url(), sealed.pid()};
        told_.secret = secret.text();
        servers_.push_back(std::move(sealed));
        return {};
    }
    Result<void> listen_raw(const std::string& host, const RemoteFarJob& job) {
        HANARE_TRY_ASSIGN(memory_, touched_memory(job.raw_bytes));
        HANARE_TRY_ASSIGN(listener_, sys::listen_tcp(host, 0));
        HANARE_TRY_ASSIGN(told_.raw_port, sys::port_of(listener_));
        told_.raw_host = host;
        return {};
    }

    sys::Mapping memory_;
    std::vector<ServerProcess> servers_;
    sys::FileDescriptor listener_;
    RemoteFar told_;
};

}  // namespace

Result<RemoteFarProcess> RemoteFarProcess::start(const RemoteFarJob& job,
                                                 const sys::Interrupt& interrupt) {
    HANARE_TRY_ASSIGN(sys::Child child, sys::Child::start({"hanare", "bench", "remote", "--far",
                                                           nlohmann::json(job).dump()},
                                                          sys::Child::Input::kFromUs));
    WorkerLines lines(child.output_fd(), interrupt.fd());
    RemoteFarProcess far(std::move(child), std::move(lines));
    if (job.network == kVeth) HANARE_TRY(far.join(job));
    HANARE_TRY_ASSIGN(const std::string line, far.next_line());
    const auto told = nlohmann::json::parse(line, nullptr, false);
    if (!told.is_object()) return fail(HANARE_STATUS_INTERNAL, "far end: %.100s", line.c_str());
    far.far_ = told.get<RemoteFar>();
    return far;
}

Result<void> RemoteFarProcess::join(const RemoteFarJob& job) {
    HANARE_TRY(meet_target(child_, lines_));
    HANARE_TRY(open_to_everybody(NetworkEnd::kSource));
    return job.rate_mbit == 0 ? Result<void>{} : limit_rate(NetworkEnd::kSource, job.rate_mbit);
}

Result<std::string> RemoteFarProcess::next_line() {
    std::string line;
    switch (lines_.next(WorkerLines::Clock::now() + kPatience, line)) {
        case WorkerLines::Next::kLine: return line;
        case WorkerLines::Next::kInterrupted: return fail(HANARE_STATUS_BUSY, "interrupted");
        case WorkerLines::Next::kTooSlow:
            return fail(HANARE_STATUS_INTERNAL, "the far end does not answer");
        case WorkerLines::Next::kClosed: break;
    }
    return fail(HANARE_STATUS_INTERNAL, "the far end has ended");
}

Result<void> RemoteFarProcess::expect(const char* line) {
    HANARE_TRY_ASSIGN(const std::string found, next_line());
    if (found == line) return {};
    return fail(HANARE_STATUS_INTERNAL, "far end: unknown line %.100s", found.c_str());
}

Result<void> RemoteFarProcess::begin_raw() { return child_.send(std::string(kRaw) + "\n"); }

Result<void> RemoteFarProcess::end_raw() { return expect(kRawDone); }

Result<void> serve_as_remote_far(const std::string& text, const sys::Interrupt& interrupt) {
    const auto parsed = nlohmann::json::parse(text, nullptr, false);
    if (!parsed.is_object()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "--far: only the bench itself may use it");
    }
    const auto job = parsed.get<RemoteFarJob>();
    HANARE_TRY(enter_network(job));
    HANARE_TRY_ASSIGN(Far far, Far::open(job, interrupt));
    say(nlohmann::json(far.told()).dump());
    for (std::string line; std::getline(std::cin, line);) {
        if (line != kRaw) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT, "far end: unknown line %.50s",
                        line.c_str());
        }
        HANARE_TRY(far.serve_raw());
        say(kRawDone);
    }
    return {};
}

}  // namespace hanare::cli
