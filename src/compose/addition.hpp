// SPDX-License-Identifier: Apache-2.0
//
// Addition: a store that somebody wants to be added to others, from who asks to the thread that
// opens it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <string_view>

namespace hanare::compose {

class Addition {
public:
    static constexpr size_t kTextBytes = 512;

    // Any thread, never waits: false while another one is under way, or if it is too long.
    bool ask(std::string_view spec) noexcept;
    // As store::Store::added().
    const char* outcome() const noexcept;

    // By the one thread that carries it out: the SPEC, "" if there is none; then what is wrong with
    // it, or "".
    std::string_view wanted() const noexcept;
    void finish(std::string_view outcome) noexcept;

private:
    enum class State { kNone, kAsking, kWanted };

    std::atomic<State> state_{State::kNone};
    std::array<char, kTextBytes> spec_ = {};
    std::array<char, kTextBytes> outcome_ = {};
};

}  // namespace hanare::compose
