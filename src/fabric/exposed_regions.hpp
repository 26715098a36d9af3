// SPDX-License-Identifier: Apache-2.0
//
// The memory that this process exposes to its peers, and the check that every operation on it has
// to pass.  Who has passed holds the region until the Access ends: revoke() and conceal() wait for
// that (busily, since it takes no longer than a copy), and then nothing that a key of before allows
// can happen any more.  Therefore an Access lives as long as one copy or one system call that does
// not wait, and whoever goes on later enters again.
//
// Processes of this machine may have the memory itself (attach()), if it is that of a file: they
// find out for themselves whether a key still holds, from what all can read, and revoke()
// and conceal() give the region other memory with the same content, so that nothing they do to the
// old one matters.  That takes as long as a copy of the content, and holds up nobody but who
// revokes, conceals or asks for a capability.
//
// Of regions with the same memory only one may have the file: to replace it for one would leave
// those who have attached to another with memory that nobody looks at.  The others are reached
// through the serving thread.
//
// Tasks of the same space (task/directory.hpp) look at these regions themselves (look()), on a
// visit that revoke() and conceal() wait for, and so does who ends serving before it gives the
// memory back (wait_for_visitors()).  There keys find errors and protect nothing.
//
// enter() and look() are async-signal-safe and take no lock; the rest is for ordinary threads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "base/result.hpp"
#include "base/thread_annotations.hpp"
#include "fabric/capability.hpp"
#include "sys/file.hpp"
#include "sys/life_word.hpp"
#include "sys/lock.hpp"
#include "sys/memory.hpp"
#include "task/directory.hpp"

namespace hanare::fabric {

inline constexpr uint32_t kRegionsMax = 4096;

// What processes of this machine see of a peer's regions.
struct RegionPage {
    sys::LifeWord serving;
    // Who serves, and in which namespace of processes that number counts (0: not known), and those
    // of threads that lie in queues.
    std::atomic<uint32_t> process;
    std::atomic<uint64_t> process_namespace;
    // Of each region, 0 while it is not exposed.
    alignas(64) std::atomic<uint32_t> epochs[kRegionsMax];
};
inline constexpr size_t kRegionPageBytes = 20480;
static_assert(sizeof(RegionPage) <= kRegionPageBytes && offsetof(RegionPage, process) == 40 &&
              offsetof(RegionPage, process_namespace) == 48 && offsetof(RegionPage, epochs) == 64);

class ExposedRegions {
    struct Slot;

public:
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
    // be pinned.  `file`, if it is open, is a shared memory's of which `memory` is all, and no
    // other region of that memory has it.  LIMIT: too many regions; SYSTEM: no random numbers.
    Result<uint32_t> expose(std::span<std::byte> memory, Rights rights,
                            sys::FileDescriptor file = {});
    // Some or all of the rights with which it was exposed; INVALID_ARGUMENT, NOT_FOUND.
    Result<Capability> capability(uint32_t region, Rights rights) const;
    // Replaces all keys.  What this process writes to the memory of a file meanwhile, and what
    // comes through other regions of it, may be lost. After an error the region is concealed.
    Result<void> revoke(uint32_t region);
    // After an error who had attached to the memory has it still.  `file`, if it is not null, gets
    // that of the memory, if there is one.
    Result<void> conceal(uint32_t region, sys::FileDescriptor* file = nullptr);

    // What other processes can see of all regions; a RegionPage.
    Result<sys::FileDescriptor> share_page();
    // The thread that serves while it can; where it ends, whoever has attached finds its peer lost.
    void begin_to_serve() noexcept;
    void end_serving() noexcept;

    struct Attachment {
        sys::FileDescriptor file;  // for reading only if the rights are; not open: there is none
        uint64_t address = 0;      // in this process
        uint64_t bytes = 0;
    };
    // For who has that capability: BAD_KEY; SYSTEM: no more descriptors.
    Result<Attachment> attach(const Capability& capability);

    // OK and `access`; BAD_KEY: no such region, or a key that it has not, or has no more;
    // PERMISSION: the key is right and its rights do not include `needed`; OUT_OF_RANGE.
    hanare_status enter(const Capability& capability, Rights needed, uint64_t offset,
                        uint64_t bytes, Access& access) noexcept;

    // Where these regions are for tasks of the same space; null where this process is in none, or
    // before share_page().
    ExposedRegions* place_in_space() noexcept { return directory_ != nullptr ? this : nullptr; }
    // Whether that is what they take it for: of the same version.
    bool is_understood() const noexcept { return layout_ == kLayout; }
    // After end_serving(): until none of them is in here.
    void wait_for_visitors() const noexcept;
    // For one of them, that visits this task and `region + 1` meanwhile: `region`, and what enter()
    // says.
    hanare_status look(const Capability& capability, Rights needed, uint64_t offset, uint64_t bytes,
                       std::span<std::byte>& region) const noexcept;

private:
    static constexpr uint64_t kLayout = 0x31534e4f49474552;  // "REGIONS1"

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
        // Under lock_, and while it is closed of who has closed it.
        sys::FileDescriptor file;
        bool has_attachments = false;
    };

    static hanare_status check(const Slot& slot, const Capability& capability, Rights needed,
                               uint64_t offset, uint64_t bytes) noexcept;
    Slot* made_slot(const Capability& capability) const noexcept;
    // Of the region if it is exposed, else null.
    Slot* used_slot(uint32_t region) const HANARE_REQUIRES(lock_);
    void close(uint32_t region, Slot& slot) noexcept HANARE_REQUIRES(lock_);
    void open(uint32_t region, Slot& slot) noexcept HANARE_REQUIRES(lock_);
    Result<Slot*> close_with(const Keys& keys, uint32_t region);
    void wait_for_visitors_of(uint32_t region) const noexcept;
    static Result<void> take_from_attached(Slot& slot);
    void forget(Slot& slot) noexcept HANARE_REQUIRES(lock_);

    const uint64_t layout_ = kLayout;
    // Who revokes or conceals, or needs keys that will not change in a moment; for as long as it
    // takes to copy a region.  Before lock_.
    mutable std::mutex changes_;
    mutable sys::RankedLock lock_{sys::LockRank::kLeaf};  // the slots' state; for a moment
    // Made when first wanted, and kept: who enters may look at any time.
    std::array<std::atomic<Slot*>, kRegionsMax> slots_{};
    std::array<std::unique_ptr<Slot>, kRegionsMax> owned_ HANARE_GUARDED_BY(lock_);
    sys::FileDescriptor page_file_ HANARE_GUARDED_BY(lock_);
    sys::Mapping page_memory_ HANARE_GUARDED_BY(lock_);
    RegionPage* page_ = nullptr;  // there, once it is shared
    // From then on, where this process is a task of a space.
    task::Directory* directory_ = nullptr;
    uint32_t task_ = 0;
};

}  // namespace hanare::fabric
