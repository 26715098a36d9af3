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
    static constexpr size_t kLeasesPerConnectionMax = 64;  // that it keeps
    static constexpr size_t kMemberConnectionsMax = 512;   // of a lease

    // Who has a secret of its own: it sees its own leases only, has a limit for all of them, and
    // cannot drain the server.
    struct Tenant {
        std::string name;                   // of printable ASCII, at most lease::kTenantNameBytes
        uint64_t quota_bytes = UINT64_MAX;  // whole extents of it
    };
    struct Settings {
        uint64_t quota_bytes = UINT64_MAX;  // of each lease; whole extents of it
        uint32_t leases_max = 1000;
        std::vector<Tenant> tenants = {};  // the first has the secret of number 1
    };
    // Both outlive it.
    LeaseTable(const Settings& settings, Arena& arena, fabric::ExposedRegions& regions);
    ~LeaseTable() override;
    LeaseTable(const LeaseTable&) = delete;
    LeaseTable& operator=(const LeaseTable&) = delete;

    hanare_status answer_call(uint64_t caller, std::span<const std::byte> question,
                              std::span<std::byte> room, size_t& bytes) noexcept override;
    uint64_t next_to_cut_off() noexcept override;
    bool caller_came(uint64_t caller, size_t secret) noexcept override;
    void caller_left(uint64_t caller) noexcept override;

    void drain() noexcept;
    bool is_draining() const noexcept;

    struct Row {
        uint64_t number = 0;
        std::string client;
        std::string tenant = {};  // empty: whose server it is
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
        struct TenantRow {
            std::string name;
            uint64_t quota_bytes = 0;
            uint64_t leased_bytes = 0;
        };
        std::vector<TenantRow> tenants;
    };
    Status status() const;

private:
    struct MemberConnection {
        uint64_t caller = 0;
        uint64_t member = 0;  // a bit
    };
    struct Lease {
        fabric::Key key;
        std::string client;
        size_t tenant = 0;
        uint32_t connections = 0;
        uint64_t bytes = 0;
        uint64_t begin_ns = 0;
        std::vector<ExposedPiece> extents;
        std::vector<MemberConnection> members;
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
    hanare_status join(Leases::iterator lease, uint64_t caller, uint32_t member)
        HANARE_REQUIRES(lock_);
    void fence(Lease& lease, uint64_t caller, uint64_t members) HANARE_REQUIRES(lock_);
    bool keep(uint64_t caller, uint64_t number, uint32_t& connections) HANARE_REQUIRES(lock_);
    void end(Leases::iterator lease) noexcept HANARE_REQUIRES(lock_);
    Leases::iterator find(const lease::LeaseId& id, size_t tenant) noexcept HANARE_REQUIRES(lock_);
    size_t leases_of(size_t tenant) const noexcept HANARE_REQUIRES(lock_);
    size_t tenant_of(uint64_t caller) const noexcept HANARE_REQUIRES(lock_);
    // How much more may be leased, whatever there is.
    uint64_t tenant_left_bytes(const Lease& lease) const noexcept HANARE_REQUIRES(lock_);
    uint64_t allowance_of(const Lease& lease) const noexcept HANARE_REQUIRES(lock_);

    lease::Answer any_answer() const HANARE_REQUIRES(lock_);
    lease::Answer answer_about(const Lease& lease) const HANARE_REQUIRES(lock_);
    void answer_extents(const Lease& lease, uint32_t first, std::span<std::byte> room,
                        size_t& bytes) const HANARE_REQUIRES(lock_);
    void answer_status(size_t tenant, uint32_t first, bool with_rows, std::span<std::byte> room,
                       size_t& bytes) const HANARE_REQUIRES(lock_);

    const uint64_t quota_bytes_;
    const uint32_t leases_max_;
    const std::vector<Tenant> tenants_;  // the first is whose server it is
    Arena& arena_;
    fabric::ExposedRegions& regions_;
    const uint64_t server_;

    mutable sys::RankedLock lock_{sys::LockRank::kLeases};
    Leases leases_ HANARE_GUARDED_BY(lock_);
    // The leases that each connection keeps, and some that have ended meanwhile: numbers are not
    // used again.
    std::unordered_map<uint64_t, std::vector<uint64_t>> kept_ HANARE_GUARDED_BY(lock_);
    // Connections that were fenced and are still open.
    std::vector<uint64_t> to_cut_off_ HANARE_GUARDED_BY(lock_);
    // Connections of tenants.
    std::unordered_map<uint64_t, size_t> tenant_of_ HANARE_GUARDED_BY(lock_);
    std::vector<uint64_t> leased_by_ HANARE_GUARDED_BY(lock_);  // each tenant
    bool is_draining_ HANARE_GUARDED_BY(lock_) = false;
    bool has_told_ HANARE_GUARDED_BY(lock_) = false;  // that there are no more leases, ever
    uint64_t leased_bytes_ HANARE_GUARDED_BY(lock_) = 0;
    size_t extents_ HANARE_GUARDED_BY(lock_) = 0;  // of all leases
    uint64_t leases_opened_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t leases_ended_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t leases_abandoned_ HANARE_GUARDED_BY(lock_) = 0;
    uint64_t refusals_ HANARE_GUARDED_BY(lock_) = 0;
};

}  // namespace hanare::server
