// SPDX-License-Identifier: Apache-2.0
#include "server/lease_table.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "base/units.hpp"
#include "sys/clock.hpp"
#include "sys/random.hpp"
#include "sys/signal.hpp"
#include "telemetry/log.hpp"

namespace hanare::server {
namespace {

constexpr uint64_t kNsPerS = 1'000'000'000;

// What clients know a server by.
uint64_t make_server_number() {
    uint64_t number = 0;
    if (!sys::fill_random(std::as_writable_bytes(std::span(&number, 1)))) number = sys::now_ns();
    return std::max<uint64_t>(number, 1);
}

// OK, or what is wrong with it.
hanare_status read_question(std::span<const std::byte> bytes, lease::Question& question) noexcept {
    if (bytes.size() < sizeof question.version) return HANARE_STATUS_INVALID_ARGUMENT;
    std::memcpy(&question.version, bytes.data(), sizeof question.version);
    if (question.version != lease::kMessageVersion) return HANARE_STATUS_NOT_SUPPORTED;
    if (bytes.size() != sizeof question) return HANARE_STATUS_INVALID_ARGUMENT;
    std::memcpy(&question, bytes.data(), sizeof question);
    return is_sound(question) ? HANARE_STATUS_OK : HANARE_STATUS_INVALID_ARGUMENT;
}

bool is_refusal(hanare_status status) noexcept {
    return status == HANARE_STATUS_STORE_FULL || status == HANARE_STATUS_LIMIT ||
           status == HANARE_STATUS_BUSY;
}

// `count` entries behind the answer, as `entry(i)` makes them: as many as there is room for.
template <typename Entry, typename Make>
void write_answer(lease::Answer answer, size_t count, Make make, std::span<std::byte> room,
                  size_t& bytes) {
    count = std::min(count, (room.size() - sizeof answer) / sizeof(Entry));
    answer.count = static_cast<uint32_t>(count);
    std::memcpy(room.data(), &answer, sizeof answer);
    bytes = sizeof answer;
    for (size_t i = 0; i < count; ++i, bytes += sizeof(Entry)) {
        const Entry entry = make();
        std::memcpy(room.data() + bytes, &entry, sizeof entry);
    }
}

void write_answer(const lease::Answer& answer, std::span<std::byte> room, size_t& bytes) {
    std::memcpy(room.data(), &answer, sizeof answer);
    bytes = sizeof answer;
}

std::vector<LeaseTable::Tenant> all_tenants(const std::vector<LeaseTable::Tenant>& others) {
    std::vector<LeaseTable::Tenant> all = {{.name = "", .quota_bytes = UINT64_MAX}};
    for (const LeaseTable::Tenant& each : others) {
        all.push_back({each.name, round_down(each.quota_bytes, lease::kExtentAlignmentBytes)});
    }
    return all;
}

}  // namespace

LeaseTable::LeaseTable(const Settings& settings, Arena& arena, fabric::ExposedRegions& regions)
    : quota_bytes_(round_down(settings.quota_bytes, lease::kExtentAlignmentBytes)),
      leases_max_(settings.leases_max),
      tenants_(all_tenants(settings.tenants)),
      arena_(arena),
      regions_(regions),
      server_(make_server_number()),
      leased_by_(tenants_.size()) {}

LeaseTable::~LeaseTable() {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    while (!leases_.empty()) end(leases_.begin());
}

// ---- questions

hanare_status LeaseTable::answer_call(uint64_t caller, std::span<const std::byte> question,
                                      std::span<std::byte> room, size_t& bytes) noexcept {
    lease::Question asked;
    const hanare_status fault = read_question(question, asked);
    if (fault != HANARE_STATUS_OK) return fault;
    // Nothing happens of which the client would not learn.
    if (room.size() < sizeof(lease::Answer)) return HANARE_STATUS_OUT_OF_RANGE;
    room = room.first(std::min<size_t>(room.size(), fabric::kMessageBytesMax));
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    hanare_status status = HANARE_STATUS_NO_MEMORY;
    try {
        status = carry_out(caller, asked, room, bytes);
    } catch (const std::bad_alloc&) {
    }
    if (is_refusal(status)) ++refusals_;
    return status;
}

hanare_status LeaseTable::carry_out(uint64_t caller, const lease::Question& asked,
                                    std::span<std::byte> room, size_t& bytes) {
    const size_t tenant = tenant_of(caller);
    switch (asked.what) {
        case lease::Ask::kOpen: return open_lease(caller, asked, room, bytes);
        case lease::Ask::kDrain:
            if (tenant != 0) return HANARE_STATUS_PERMISSION;
            is_draining_ = true;
            [[fallthrough]];
        case lease::Ask::kStatus:
            answer_status(tenant, asked.first, asked.what == lease::Ask::kStatus, room, bytes);
            return HANARE_STATUS_OK;
        case lease::Ask::kJoin:
        case lease::Ask::kGrow:
        case lease::Ask::kExtents:
        case lease::Ask::kEnd:
        case lease::Ask::kFence: break;
    }
    const auto lease = find(asked.lease, tenant);
    if (lease == leases_.end()) return HANARE_STATUS_NOT_FOUND;
    return carry_out_on(lease, caller, asked, room, bytes);
}

hanare_status LeaseTable::carry_out_on(Leases::iterator lease, uint64_t caller,
                                       const lease::Question& asked, std::span<std::byte> room,
                                       size_t& bytes) {
    if (asked.what == lease::Ask::kEnd) {
        end(lease);
        ++leases_ended_;
        write_answer(answer_about({}), room, bytes);
        return HANARE_STATUS_OK;
    }
    if (asked.what == lease::Ask::kJoin) {
        const hanare_status status = join(lease, caller, asked.first);
        if (status != HANARE_STATUS_OK) return status;
        write_answer(answer_about(lease->second), room, bytes);
        return HANARE_STATUS_OK;
    }
    if (asked.what == lease::Ask::kFence) {
        fence(lease->second, caller, asked.bytes);
        write_answer(answer_about(lease->second), room, bytes);
        return HANARE_STATUS_OK;
    }
    if (asked.what == lease::Ask::kGrow) {
        const hanare_status status = grow(lease->second, asked.bytes);
        if (status != HANARE_STATUS_OK) return status;
    }
    answer_extents(lease->second, asked.first, room, bytes);
    return HANARE_STATUS_OK;
}

hanare_status LeaseTable::open_lease(uint64_t caller, const lease::Question& asked,
                                     std::span<std::byte> room, size_t& bytes) {
    if (is_draining_) return HANARE_STATUS_BUSY;
    if (leases_.size() >= leases_max_) {
        if (!std::exchange(has_told_, true)) {
            telemetry::log(telemetry::LogLevel::kWarn,
                           "no client gets a lease any more: there are %zu, the most that there "
                           "can be",
                           leases_.size());
        }
        return HANARE_STATUS_LIMIT;
    }
    const size_t tenant = tenant_of(caller);
    // Of a tenant, his part: none keeps the others out.
    if (tenant != 0 && leases_of(tenant) >= leases_max_ / tenants_.size()) {
        return HANARE_STATUS_LIMIT;
    }
    Lease fresh;
    if (!sys::fill_random(std::as_writable_bytes(std::span(&fresh.key, 1)))) {
        return HANARE_STATUS_SYSTEM;
    }
    fresh.client.assign(asked.client, strnlen(asked.client, sizeof asked.client));
    fresh.tenant = tenant;
    fresh.begin_ns = sys::now_ns();
    const uint64_t number = leases_opened_ + 1;
    const auto lease = leases_.try_emplace(number, std::move(fresh)).first;
    bool is_kept = false;
    try {
        is_kept = keep(caller, number, lease->second.connections);
    } catch (const std::bad_alloc&) {
        leases_.erase(lease);
        throw;
    }
    if (!is_kept) {
        leases_.erase(lease);
        return HANARE_STATUS_LIMIT;
    }
    ++leases_opened_;
    lease::Answer answer = answer_about(lease->second);
    answer.lease = {number, lease->second.key};
    write_answer(answer, room, bytes);
    return HANARE_STATUS_OK;
}

hanare_status LeaseTable::grow(Lease& lease, uint64_t wanted_bytes) {
    if (wanted_bytes <= lease.bytes) return HANARE_STATUS_OK;
    if (is_draining_) return HANARE_STATUS_STORE_FULL;
    const Growth growth = growth_of({.wanted_bytes = wanted_bytes,
                                     .leased_bytes = lease.bytes,
                                     .quota_bytes = quota_bytes_,
                                     .tenant_left_bytes = tenant_left_bytes(lease),
                                     .extents = lease.extents.size(),
                                     .regions = extents_,
                                     .room = arena_.room()});
    if (growth.status != HANARE_STATUS_OK) return growth.status;
    NewPieces pieces(arena_, regions_);
    const hanare_status status = pieces.get(growth, lease::kExtentsMax - lease.extents.size());
    if (status != HANARE_STATUS_OK) return status;
    const size_t extents = lease.extents.size();
    const uint64_t bytes = pieces.move_to(lease.extents);
    extents_ += lease.extents.size() - extents;
    lease.bytes += bytes;
    leased_bytes_ += bytes;
    leased_by_[lease.tenant] += bytes;
    return HANARE_STATUS_OK;
}

// ---- who keeps what

// `member` from 1; 0: none.
hanare_status LeaseTable::join(Leases::iterator lease, uint64_t caller, uint32_t member) {
    std::vector<MemberConnection>& members = lease->second.members;
    members.reserve(members.size() + 1);
    const auto known = std::ranges::find(members, caller, &MemberConnection::caller);
    if (member != 0 && known == members.end() && members.size() >= kMemberConnectionsMax) {
        return HANARE_STATUS_LIMIT;
    }
    if (!keep(caller, lease->first, lease->second.connections)) return HANARE_STATUS_LIMIT;
    if (member == 0) return HANARE_STATUS_OK;
    const uint64_t bit = uint64_t{1} << (member - 1);
    if (known != members.end()) {
        known->member = bit;
    } else {
        members.push_back({caller, bit});
    }
    return HANARE_STATUS_OK;
}

// Who asks goes on.
void LeaseTable::fence(Lease& lease, uint64_t caller, uint64_t members) {
    to_cut_off_.reserve(to_cut_off_.size() + lease.members.size());
    for (const MemberConnection& each : lease.members) {
        if ((each.member & members) != 0 && each.caller != caller) {
            to_cut_off_.push_back(each.caller);
        }
    }
}

uint64_t LeaseTable::next_to_cut_off() noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    if (to_cut_off_.empty()) return 0;
    const uint64_t caller = to_cut_off_.back();
    to_cut_off_.pop_back();
    return caller;
}

// Without an error also when it does already.  False: it keeps too many.
bool LeaseTable::keep(uint64_t caller, uint64_t number, uint32_t& connections) {
    std::vector<uint64_t>& kept = kept_[caller];
    if (std::ranges::find(kept, number) != kept.end()) return true;
    if (kept.size() >= kLeasesPerConnectionMax) {
        std::erase_if(kept, [this](uint64_t other)
                                HANARE_REQUIRES(lock_) { return !leases_.contains(other); });
    }
    if (kept.size() >= kLeasesPerConnectionMax) return false;
    kept.push_back(number);
    ++connections;
    return true;
}

void LeaseTable::caller_left(uint64_t caller) noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    tenant_of_.erase(caller);
    const auto kept = kept_.find(caller);
    if (kept == kept_.end()) return;
    for (const uint64_t number : kept->second) {
        const auto lease = leases_.find(number);
        if (lease == leases_.end()) continue;
        std::erase_if(lease->second.members,
                      [caller](const MemberConnection& each) { return each.caller == caller; });
        if (--lease->second.connections != 0) continue;
        end(lease);
        ++leases_abandoned_;
    }
    kept_.erase(kept);
}

// From conceal() on nobody touches the memory any more.
void LeaseTable::end(Leases::iterator lease) noexcept {
    for (const ExposedPiece& piece : lease->second.extents) {
        (void)regions_.conceal(piece.capability.region);
        arena_.give_back(piece.memory);
    }
    extents_ -= lease->second.extents.size();
    leased_bytes_ -= lease->second.bytes;
    leased_by_[lease->second.tenant] -= lease->second.bytes;
    leases_.erase(lease);
}

// To a tenant there are no leases but its own.
LeaseTable::Leases::iterator LeaseTable::find(const lease::LeaseId& id, size_t tenant) noexcept {
    const auto lease = leases_.find(id.number);
    const bool is_there =
        lease != leases_.end() && lease->second.key == id.key && lease->second.tenant == tenant;
    return is_there ? lease : leases_.end();
}

bool LeaseTable::caller_came(uint64_t caller, size_t secret) noexcept {
    if (secret == 0 || secret >= tenants_.size()) return secret == 0;
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    try {
        tenant_of_.emplace(caller, secret);
    } catch (const std::bad_alloc&) {
        return false;
    }
    return true;
}

size_t LeaseTable::leases_of(size_t tenant) const noexcept {
    return static_cast<size_t>(std::ranges::count_if(
        leases_, [&](const auto& each) { return each.second.tenant == tenant; }));
}

size_t LeaseTable::tenant_of(uint64_t caller) const noexcept {
    const auto found = tenant_of_.find(caller);
    return found == tenant_of_.end() ? 0 : found->second;
}

uint64_t LeaseTable::tenant_left_bytes(const Lease& lease) const noexcept {
    return tenants_[lease.tenant].quota_bytes - leased_by_[lease.tenant];
}

uint64_t LeaseTable::allowance_of(const Lease& lease) const noexcept {
    return std::min(quota_bytes_ - lease.bytes, tenant_left_bytes(lease));
}

void LeaseTable::drain() noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    is_draining_ = true;
}

bool LeaseTable::is_draining() const noexcept {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    return is_draining_;
}

// ---- answers

lease::Answer LeaseTable::any_answer() const {
    lease::Answer answer;
    if (is_draining_) answer.flags = lease::kDraining;
    answer.server = server_;
    answer.total_bytes = arena_.total_bytes();
    return answer;
}

lease::Answer LeaseTable::answer_about(const Lease& lease) const {
    const bool may_grow = !is_draining_ && lease.extents.size() < lease::kExtentsMax;
    lease::Answer answer = any_answer();
    answer.leased_bytes = lease.bytes;
    if (may_grow) answer.free_bytes = std::min(arena_.free_bytes(), allowance_of(lease));
    answer.extents = lease.extents.size();
    return answer;
}

void LeaseTable::answer_extents(const Lease& lease, uint32_t first, std::span<std::byte> room,
                                size_t& bytes) const {
    auto extent = lease.extents.begin() +
                  static_cast<ptrdiff_t>(std::min<size_t>(first, lease.extents.size()));
    const auto next = [&extent] {
        const ExposedPiece& piece = *extent++;
        return lease::Extent{piece.capability, piece.memory.size()};
    };
    const auto count = static_cast<size_t>(lease.extents.end() - extent);
    write_answer<lease::Extent>(answer_about(lease), count, next, room, bytes);
}

// Of all leases, or those of a tenant.
void LeaseTable::answer_status(size_t tenant, uint32_t first, bool with_rows,
                               std::span<std::byte> room, size_t& bytes) const {
    const auto is_shown = [tenant](const Leases::value_type& lease) {
        return tenant == 0 || lease.second.tenant == tenant;
    };
    const auto shown = static_cast<size_t>(std::ranges::count_if(leases_, is_shown));
    lease::Answer answer = any_answer();
    answer.leased_bytes = tenant == 0 ? leased_bytes_ : leased_by_[tenant];
    answer.free_bytes =
        std::min(arena_.free_bytes(), tenants_[tenant].quota_bytes - leased_by_[tenant]);
    answer.extents = shown;
    const size_t skipped = std::min<size_t>(first, shown);
    auto lease = leases_.begin();
    const auto end = leases_.end();
    const auto go_on = [&lease, end, is_shown] { lease = std::find_if(lease, end, is_shown); };
    go_on();
    for (size_t i = 0; i < skipped; ++i, go_on()) ++lease;
    const uint64_t now = sys::now_ns();
    const auto next = [this, &lease, &go_on, now] {
        const auto& [number, content] = *lease++;
        lease::StatusRow row = {.number = number,
                                .bytes = content.bytes,
                                .connections = content.connections,
                                .age_s = static_cast<uint32_t>((now - content.begin_ns) / kNsPerS)};
        std::memcpy(row.client, content.client.data(), content.client.size());
        const std::string& name = tenants_[content.tenant].name;
        std::memcpy(row.tenant, name.data(), std::min(name.size(), sizeof row.tenant));
        go_on();
        return row;
    };
    write_answer<lease::StatusRow>(answer, with_rows ? shown - skipped : 0, next, room, bytes);
}

LeaseTable::Status LeaseTable::status() const {
    const sys::SignalBlock no_signals;
    const sys::LockGuard guard(lock_);
    const Arena::Room room = arena_.room();
    Status status = {.server = server_,
                     .total_bytes = arena_.total_bytes(),
                     .leased_bytes = leased_bytes_,
                     .free_bytes = room.free_bytes,
                     .unwiped_bytes = room.unwiped_bytes,
                     .touched_bytes = arena_.touched_bytes(),
                     .is_draining = is_draining_,
                     .leases_opened = leases_opened_,
                     .leases_ended = leases_ended_,
                     .leases_abandoned = leases_abandoned_,
                     .refusals = refusals_,
                     .leases = {},
                     .tenants = {}};
    const uint64_t now = sys::now_ns();
    for (const auto& [number, lease] : leases_) {
        status.leases.push_back({.number = number,
                                 .client = lease.client,
                                 .tenant = tenants_[lease.tenant].name,
                                 .bytes = lease.bytes,
                                 .connections = lease.connections,
                                 .extents = static_cast<uint32_t>(lease.extents.size()),
                                 .age_s = (now - lease.begin_ns) / kNsPerS});
    }
    for (size_t i = 1; i < tenants_.size(); ++i) {
        status.tenants.push_back({.name = tenants_[i].name,
                                  .quota_bytes = tenants_[i].quota_bytes,
                                  .leased_bytes = leased_by_[i]});
    }
    return status;
}

}  // namespace hanare::server
