// SPDX-License-Identifier: Apache-2.0
//
// Silence: for how long a server that owes an answer has done nothing, in the eyes of one who
// looks again and again.  While nobody looks (the program computes, or is stopped) no time passes:
// what the server has done meanwhile was not taken notice of.
//
// A few bytes are nothing, but where a request was sent or answered with them: a server that lets
// a byte pass now and then would hold a fault up for days.
#pragma once

#include <cstdint>

#include "fabric/tcp_link.hpp"

namespace hanare::remote {

class Silence {
public:
    // Within the limit; a link of 100 kbit/s moves as much in a third of a second.
    static constexpr uint64_t kLeastBytes = 4096;

    bool is_longer_than(uint64_t limit_ns, const fabric::TcpLink::Progress& progress,
                        uint64_t now_ns) noexcept {
        const bool has_moved =
            progress.requests != last_.requests || progress.bytes - last_.bytes >= kLeastBytes;
        if (has_moved || now_ns - looked_ns_ > kGap_ns) {
            last_ = progress;
            since_ns_ = now_ns;
        }
        looked_ns_ = now_ns;
        return now_ns - since_ns_ >= limit_ns;
    }

    // How often who waits looks.
    static constexpr uint64_t kSlice_ns = 50'000'000;

private:
    static constexpr uint64_t kGap_ns = 10 * kSlice_ns;

    fabric::TcpLink::Progress last_ = {.bytes = 0, .requests = UINT64_MAX};
    uint64_t since_ns_ = 0;
    uint64_t looked_ns_ = 0;
};

}  // namespace hanare::remote
