// SPDX-License-Identifier: Apache-2.0
//
// Secrets leave no copies in the heap: what held one is overwritten before its memory is given
// back.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace hanare::job {

inline void wipe(std::string& text) noexcept { explicit_bzero(text.data(), text.size()); }
inline void wipe(std::vector<std::byte>& bytes) noexcept {
    explicit_bzero(bytes.data(), bytes.size());
}
inline void wipe(std::vector<std::string>& texts) noexcept {
    for (std::string& text : texts) wipe(text);
}

// Wipes at its end, however that comes.
template <typename Held>
class WipeAtEnd {
public:
    explicit WipeAtEnd(Held& held) noexcept : held_(held) {}
    WipeAtEnd(const WipeAtEnd&) = delete;
    WipeAtEnd& operator=(const WipeAtEnd&) = delete;
    ~WipeAtEnd() { wipe(held_); }

private:
    Held& held_;
};

}  // namespace hanare::job
