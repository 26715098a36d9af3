// SPDX-License-Identifier: Apache-2.0
//
// Silence: for how long a server that owes an answer has done nothing, in the eyes of one who
// looks again and again.  While nobody looks (the program computes, or is stopped) no time passes:
// what the server has done meanwhile was not taken notice of.
#pragma once

#include <cstdint>

namespace hanare::remote {

class Silence {
public:
    // Bytes that have moved on the connection, ever, and the time.
    bool is_longer_than(uint64_t limit_ns, uint64_t moved_bytes, uint64_t now_ns) noexcept {
        if (moved_bytes != moved_bytes_ || now_ns - looked_ns_ > kGap_ns) {
            moved_bytes_ = moved_bytes;
            since_ns_ = now_ns;
        }
        looked_ns_ = now_ns;
        return now_ns - since_ns_ >= limit_ns;
    }

    // How often who waits looks.
    static constexpr uint64_t kSlice_ns = 50'000'000;

private:
    static constexpr uint64_t kGap_ns = 10 * kSlice_ns;

    uint64_t moved_bytes_ = UINT64_MAX;
    uint64_t since_ns_ = 0;
    uint64_t looked_ns_ = 0;
};

}  // namespace hanare::remote
