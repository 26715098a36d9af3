// SPDX-License-Identifier: Apache-2.0
//
// LocalLink: this process's operations on the memory of another one of this user on this machine.
// Regions whose memory is that of a file are attached to when they are first used, and from then on
// operations are loads and stores here, without the target: they are done when post() returns.  All
// else, and whatever comes while such operations are under way, goes through memory to the target's
// thread as over a socket (TcpLink), so that the order is kept.  Large gets of other regions read
// the target's memory directly where the kernel allows it.  Of a task of the same space all regions
// are within reach: operations are loads and stores in the target's own memory.
//
// Keys: only who shows one gets a region's descriptor, which allows to write only if the key does;
// after revoke() that is memory which nobody else looks at.  A process of the same user that wants
// to do harm has other ways.
//
// Any thread; async-signal-safe but for connect() and the end.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/result.hpp"
#include "base/thread_annotations.hpp"
#include "fabric/exposed_regions.hpp"
#include "fabric/link.hpp"
#include "fabric/local_greeting.hpp"
#include "fabric/tcp_link.hpp"
#include "sys/lock.hpp"

namespace hanare::fabric {

class LocalLink : public Link {
public:
    struct Settings {
        std::string address;  // at which the target serves (TcpService::Settings::local_address)
        uint32_t spin_us = 0;
        int timeout_ms = 30'000;  // of connecting
        // Whether operations may touch memory without the target; else they all go to its thread.
        bool is_direct = true;
    };
    // For ordinary threads.  PEER_LOST: nobody serves there; TIMEOUT; SYSTEM.
    static Result<std::unique_ptr<LocalLink>> connect(const Settings& settings);
    ~LocalLink() override = default;
    LocalLink(const LocalLink&) = delete;
    LocalLink& operator=(const LocalLink&) = delete;

    void post(Operation& operation) noexcept override;
    bool test(Operation& operation) noexcept override;
    hanare_status wait(Operation& operation) noexcept override;
    hanare_status carry_out(Operation& operation) noexcept override;
    void end() noexcept override { stream_->end(); }
    bool is_lost() const noexcept override { return stream_->is_lost(); }
    // Whether operations with that capability go without the target's thread.
    bool is_attached(const Capability& capability) noexcept;

private:
    // A region that was asked for.  What is not atomic changes only while it is closed.
    struct Attached {
        static constexpr uint32_t kClosed = 1u << 31;
        enum class State { kNone, kAsked, kMapped, kForeign };

        std::atomic<uint32_t> users{0};
        State state = State::kNone;
        Capability capability;
        sys::Mapping memory;
        uint64_t address = 0;  // in the target
        uint64_t bytes = 0;    // of the region
    };
    class Use;
    static constexpr size_t kAttachedMax = 256;

    LocalLink(LocalConnection connection, std::unique_ptr<TcpLink> stream, Settings settings);

    static size_t place_of(const Capability& capability) noexcept;
    enum class Outcome {
        kDone,
        kRevoked,  // is done, with BAD_KEY
        kNotHere,  // the target's thread has to do it
        kUnknown,  // likewise, and the region may be asked for
    };
    bool try_directly(Operation& operation) noexcept;
    bool try_in_space(Operation& operation) noexcept;
    Outcome carry_out_on(Attached& attached, Operation& operation) noexcept;
    hanare_status apply(const Attached& attached, Operation& operation) noexcept;
    bool read_foreign(const Attached& attached, Operation& operation,
                      hanare_status& status) noexcept;
    bool is_current(const Capability& capability) const noexcept;
    void attach(const Capability& capability) noexcept;
    void detach(Attached& attached, const Capability& capability) noexcept;
    void ask(Attached& attached, const Capability& capability) noexcept HANARE_REQUIRES(lock_);
    void take_answer(Attached& attached) noexcept HANARE_REQUIRES(lock_);
    static Result<sys::Mapping> map_region(const sys::FileDescriptor& file,
                                           const Attached& attached);
    static bool close(Attached& attached) noexcept;
    static void open(Attached& attached) noexcept;

    const Settings settings_;
    const sys::Mapping page_memory_;
    const RegionPage& page_;
    const int process_;
    const Neighbour neighbour_;
    const std::unique_ptr<TcpLink> stream_;
    std::atomic<bool> may_read_foreign_{true};

    std::array<Attached, kAttachedMax> attached_;
    sys::RankedLock lock_{sys::LockRank::kLeaf};  // who asks for regions, one at a time
    RegionRequest request_ HANARE_GUARDED_BY(lock_);
    Attached* asked_ HANARE_GUARDED_BY(lock_) = nullptr;
    uint32_t failures_ HANARE_GUARDED_BY(lock_) = 0;
};

}  // namespace hanare::fabric
