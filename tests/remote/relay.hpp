// SPDX-License-Identifier: Apache-2.0
//
// A relay between clients and a memory server on loopback, which harms what passes, as a broken
// machine on the way or somebody who sits there could.  A thread of its own; made before clients.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "sys/file.hpp"

namespace hanare::test {

class Relay {
public:
    enum class Harm {
        kNone,
        kChange,   // a bit of what the server sends
        kReplay,   // what the server has sent before, again in the place of what it sends
        kSilence,  // nothing passes any more
    };
    // Harms so often, after the server has sent `after_bytes`; kSilence from then on.
    Relay(uint16_t server_port, Harm harm, uint64_t after_bytes, uint32_t times = 1);
    ~Relay();
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    uint16_t port() const { return port_; }
    std::string spec() const { return "tcp://127.0.0.1:" + std::to_string(port_); }
    bool has_harmed() const { return harms_.load() > 0; }

private:
    struct Line {
        sys::FileDescriptor client;
        sys::FileDescriptor server;
    };

    void run();
    void accept();
    bool pass_on(const sys::FileDescriptor& from, const sys::FileDescriptor& to, bool is_answer);
    void harm(std::vector<std::byte>& bytes);

    const uint16_t server_port_;
    const Harm harm_;
    const uint64_t after_bytes_;
    const uint32_t times_;
    uint16_t port_ = 0;
    sys::FileDescriptor listener_;
    sys::FileDescriptor end_from_;
    sys::FileDescriptor end_to_;
    std::vector<Line> lines_;
    uint64_t answered_bytes_ = 0;
    std::vector<std::byte> seen_;  // the first that is long
    std::atomic<uint32_t> harms_{0};
    std::jthread thread_;
};

}  // namespace hanare::test
