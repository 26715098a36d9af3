// SPDX-License-Identifier: Apache-2.0
//
// The memory that this process exposes to its peers, and the check that every operation on it has
// to pass.  Who has passed holds the region until the Access ends: revoke() and conceal() wait for
// that (busily, since it takes no longer than a copy), and then nothing that a key of before allows
// can happen any more.  Therefore an Access lives as long as one copy or one system call that does
// not wait, and whoever goes on later enters again.
//
// enter() is async-signal-safe and takes no lock; the rest is for ordinary threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.hpp"
#include "base/thread_annotations.hpp"
#include "fabric/capability.hpp"
#include "sys/lock.hpp"

namespace hanare::fabric {

class ExposedRegions {
    struct Slot;

public:
    static constexpr uint32_t kRegionsMax = 1024;

    ExposedRegions() = default;
    ExposedRegions(const ExposedRegions&) = delete;
    ExposedRegions& operator=(const ExposedRegions&) = delete;

    // Permission to touch a range of a region.
    class Access {
    public:
        Access() = default;
        ~Access() { end(); }
        Access(const Access&) = delete;
        Access& operator=(const Access&) = delete;

        std::byte* address() const noexcept { return address_; }
        std::span<std::byte> region() const noexcept { return slot_->memory; }
        void end() noexcept;

    private:
        friend class ExposedRegions;
        Slot* slot_ = nullptr;
        std::byte* address_ = nullptr;
    };

    // The memory stays the caller's and must be valid until conceal(), and local: far memory has to
    // be pinned.  LIMIT: too many regions;
    // SYSTEM: no random numbers.
    Result<uint32_t> expose(std::span<std::byte> memory, Rights rights);
    // Some or all of the rights with which it was exposed; INVALID_ARGUMENT, NOT_FOUND.
    Result<Capability> capability(uint32_t region, Rights rights) const;
    // Replaces all keys.
    Result<void> revoke(uint32_t region);
    Result<void> conceal(uint32_t region);

    // OK and `access`; BAD_KEY: no such region, or a key that it has not, or has no more;
    // PERMISSION: the key is right and its rights do not include `needed`; OUT_OF_RANGE.
    hanare_status enter(const Capability& capability, Rights needed, uint64_t offset,
                        uint64_t bytes, Access& access) noexcept;

private:
    // One key for each set of rights.
    using Keys = std::array<Key, kAllRights + 1>;

    struct Slot {
        static constexpr uint32_t kClosed = 1u << 31;

        // Who is inside; kClosed: nobody may come in.  What follows changes only while it is closed
        // and nobody is inside.
        std::atomic<uint32_t> users{kClosed};
        uint32_t epoch = 0;
        Rights rights = 0;
        std::span<std::byte> memory;
        Keys keys{};
    };

    // Of the region if it is exposed, else null.
    Slot* used_slot(uint32_t region) const HANARE_REQUIRES(lock_);
    static void close(Slot& slot) noexcept;
    static void open(Slot& slot) noexcept;

    mutable sys::RankedLock lock_{sys::LockRank::kLeaf};  // who exposes, revokes or conceals
    // Made when first wanted, and kept: who enters may look at any time.
    std::array<std::atomic<Slot*>, kRegionsMax> slots_{};
    std::array<std::unique_ptr<Slot>, kRegionsMax> owned_ HANARE_GUARDED_BY(lock_);
};

}  // namespace hanare::fabric
