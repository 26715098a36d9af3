// SPDX-License-Identifier: Apache-2.0
//
// LeaseTable: who has how much of the arena.  Answers what clients ask (lease/messages.hpp) in the
// thread that serves the fabric; looked at by others for status.  Each extent of a lease is exposed
// as a region of its own, until the lease ends.
//
// Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/thread_annotations.hpp"
#include "fabric/call_handler.hpp"
#include "fabric/exposed_regions.hpp"
#include "lease/messages.hpp"
#include "server/arena.hpp"
#include "server/growth.hpp"
#include "sys/lock.hpp"

namespace hanare::server {

class LeaseTable : public fabric::CallHandler {
public:
    // Nobody gets more, whatever the settings.
    static constexpr size_t kExtentsMax = 256;             // of a lease
    static constexpr size_t kLeasesPerConnectionMax = 64;  // that it keeps

    struct Settings {
        uint64_t quota_bytes = UINT64_MAX;  // of each lease; whole extents of it
        uint32_t leases_max = 1000;
    };
    // Both outlive it.
    LeaseTable(const Settings& settings, Arena& arena, fabric::ExposedRegions& regions);
    ~LeaseTable() override;
    LeaseTable(const LeaseTable&) = delete;
    LeaseTable& operator=(const LeaseTable&) = delete;

    hanare_status answer_call(uint64_t caller, std::span<const std::byte> question,
                              std::span<std::byte> room, size_t& bytes) noexcept override;
    void caller_left(uint64_t caller) noexcept override;

    void drain() noexcept;
    bool is_draining() const noexcept;

    struct Row {
        uint64_t number = 0;
        std::string client;
        uint64_t bytes = 0;
        uint32_t connections = 0;
        uint32_t extents = 0;
        uint64_t age_s = 0;
    };
    // At one moment: leased, free and unwiped bytes are all there are.
    struct Status {
        uint64_t server = 0;  // its number, another one after each start
        uint64_t total_bytes = 0;
        uint64_t leased_bytes = 0;
        uint64_t free_bytes = 0;
        uint64_t unwiped_bytes = 0;
        uint64_t touched_bytes = 0;
        bool is_draining = false;
        // Since the start.
        uint64_t leases_opened = 0;
        uint64_t leases_ended = 0;      // by their clients' word
        uint64_t leases_abandoned = 0;  // whose clients have gone
        uint64_t refusals = 0;          // STORE_FULL, LIMIT or BUSY
        std::vector<Row> leases;
    };
    Status status() const;

private:
    struct Lease {
        fabric::Key key;
        std::string client;
        uint32_t connections = 0;
        uint64_t bytes = 0;
        uint64_t begin_ns = 0;
        std::vector<ExposedPiece> extents;
    };
    using Leases = std::map<uint64_t, Lease>;  // by number, so by age

    hanare_status carry_out(uint64_t caller, const lease::Question& asked,
                            std::span<std::byte> room, size_t& bytes) HANARE_REQUIRES(lock_);
    hanare_status carry_out_on(Leases::iterator lease, uint64_t caller,
                               const lease::Question& asked, std::span<std::byte> room,
                               size_t& bytes) HANARE_REQUIRES(lock_);
    hanare_status open_lease(uint64_t caller, const lease::Question& asked,
                             std::span<std::byte> room, size_t& bytes) HANARE_REQUIRES(lock_);
    hanare_status grow(Lease& lease, uint64_t wanted_bytes) HANARE_REQUIRES(lock_);
    bool keep(uint64_t caller, uint64_t number, uint32_t& connections) HANARE_REQUIRES(lock_);
    void end(Leases::iterator lease) noexcept HANARE_REQUIRES(lock_);
    Leases::iterator find(const lease::LeaseId& id) noexcept HANARE_REQUIRES(lock_);

    lease::Answer any_answer() const HANARE_REQUIRES(lock_);
    lease::Answer answer_about(const Lease& lease) const HANARE_REQUIRES(lock_);
    void answer_extents(const Lease& lease, uint32_t first, std::span<std::byte> room,
                        size_t& bytes) const HANARE_REQUIRES(lock_);
    void answer_status(uint32_t first, bool with_rows, std::span<std::byte> room,
                       size_t& bytes) const HANARE_REQUIRES(lock_);

    const uint64_t quota_bytes_;
    const uint32_t leases_max_;
    Arena& arena_;
    fabric::ExposedRegions& regions_;
    const uint64_t server_;

    mutable sys::RankedLock lock_{sys::LockRank::kLeases};
    Leases leases_ HANARE_GUARDED_BY(lock_);
    // The leases that each connection keeps, and some that have ended meanwhile: numbers are not
    // used again.
    std::unordered_map<uint64_t, std::vector<uint64_t>> kept_ HANARE_GUARDED_BY(lock_);
    bool is_draining_ HANARE_GUARDED_BY(lock_) = false;
    uint64_t leased_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t leases_opened_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t leases_ended_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t leases_abandoned_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t refusals_ HANARE_GUARDED_BY(lock_) = 0;
};

}  // namespace hanare::server
