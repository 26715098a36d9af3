// SPDX-License-Identifier: Apache-2.0
//
// Lanes: each is what one thread needs to have transfers under way with several members at once,
// and to work on what they bring.
//
// Any thread, async-signal-safe, but for make().
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "compose/layout.hpp"
#include "compose/members.hpp"
#include "store/store.hpp"
#include "sys/memory.hpp"

namespace hanare::compose {

// A transfer of one member's, with its status when it is done.
struct Piece {
    Member* member = nullptr;
    uint32_t role = 0;
    store::IoRequest request = {};
    store::SharedTransfers* transfers = nullptr;  // that it was started on
};

class Lanes {
public:
    static Result<Lanes> make();
    Lanes(Lanes&& other) noexcept : memory_(std::move(other.memory_)) {}

    // A lane, held until it goes out of scope; who finds none waits for one.
    class Lane {
    public:
        explicit Lane(Lanes& lanes) noexcept;
        ~Lane();
        Lane(const Lane&) = delete;
        Lane& operator=(const Lane&) = delete;

        // Scratch memory for a strip; there is one for each role.
        std::byte* strip(uint32_t number) const noexcept {
            return memory_ + number * Layout::kStripBytesMax;
        }
        // All of them, of different members, at the same time; returns when they are done.
        void carry_out(std::span<Piece> pieces) noexcept;

    private:
        Lanes& lanes_;
        uint32_t number_ = 0;
        std::byte* memory_ = nullptr;
    };

private:
    static constexpr size_t kLaneBytes = Layout::kRolesMax * Layout::kStripBytesMax;

    explicit Lanes(sys::Mapping memory) noexcept : memory_(std::move(memory)) {}

    sys::Mapping memory_;
    std::atomic<uint32_t> used_{0};  // bits
};

}  // namespace hanare::compose
