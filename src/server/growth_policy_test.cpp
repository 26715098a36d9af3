// SPDX-License-Identifier: Apache-2.0
//
// Whether clients that ask for little at a time come to have what a server has, whatever its size:
// the formula alone, without memory.  They ask for the next 4 MiB when they have used all.
#include <algorithm>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "lease/messages.hpp"
#include "server/growth.hpp"
#include "store/extents.hpp"

namespace hanare::server {
namespace {

constexpr uint64_t kUnit = lease::kExtentAlignmentBytes;
constexpr uint64_t kTiB = 1024 * kGiB;

// A server's memory, as its arena gives it out.
class Clients {
public:
    struct Extent {
        uint64_t offset = 0;
        uint64_t bytes = 0;
    };
    struct Client {
        uint64_t bytes = 0;
        std::vector<Extent> extents = {};
        size_t tenant = 0;
    };

    explicit Clients(uint64_t server_bytes, uint64_t quota_bytes = UINT64_MAX,
                     std::vector<uint64_t> tenants = {UINT64_MAX})
        : memory_(server_bytes),
          free_(server_bytes),
          quota_bytes_(quota_bytes),
          tenants_left_(std::move(tenants)) {}

    // Another one may come and go meanwhile.
    Client& come(size_t tenant = 0) { return clients_.emplace_back(Client{.tenant = tenant}); }
    void leave(Client& client) {
        free_ += client.bytes;
        tenants_left_[client.tenant] += client.bytes;
        regions_ -= client.extents.size();
        for (const Extent& extent : client.extents) memory_.release(extent.offset, extent.bytes);
        client.bytes = 0;
        client.extents.clear();
    }

    // LIMIT: it or the server has no more extents.
    hanare_status grow(Client& client, uint64_t wanted_bytes) {
        if (wanted_bytes <= client.bytes) return HANARE_STATUS_OK;
        const Growth growth =
            growth_of({.wanted_bytes = wanted_bytes,
                       .leased_bytes = client.bytes,
                       .quota_bytes = quota_bytes_,
                       .tenant_left_bytes = tenants_left_[client.tenant],
                       .extents = client.extents.size(),
                       .regions = regions_,
                       .room = {.free_bytes = free_, .largest_bytes = memory_.largest_bytes()}});
        if (growth.status != HANARE_STATUS_OK) return growth.status;
        EXPECT_LE(growth.best_bytes, std::min(free_, tenants_left_[client.tenant]));
        EXPECT_LE(client.bytes + growth.best_bytes, quota_bytes_);
        EXPECT_EQ(growth.best_bytes % kUnit, 0u);
        const uint64_t largest = memory_.largest_bytes();
        uint64_t left = largest < growth.least_bytes ? growth.least_bytes
                                                     : std::min(growth.best_bytes, largest);
        // What it has got already stays, as nobody goes on after that.
        for (uint64_t bytes = 0; left > 0; left -= bytes) {
            if (client.extents.size() == lease::kExtentsMax) return HANARE_STATUS_LIMIT;
            if (regions_ == fabric::kRegionsMax) return HANARE_STATUS_LIMIT;
            bytes = std::min(left, memory_.largest_bytes());
            client.extents.push_back({memory_.reserve(bytes).value(), bytes});
            client.bytes += bytes;
            tenants_left_[client.tenant] -= bytes;
            free_ -= bytes;
            ++regions_;
        }
        EXPECT_GE(client.bytes, wanted_bytes);
        return HANARE_STATUS_OK;
    }
    // By 4 MiB again and again.
    hanare_status grow_until_refused(Client& client, uint64_t bytes_max = UINT64_MAX) {
        while (client.bytes < bytes_max) {
            const hanare_status status = grow(client, client.bytes + kUnit);
            if (status != HANARE_STATUS_OK) return status;
        }
        return HANARE_STATUS_OK;
    }
    // All of them, one after the other and again, for as long as any gets something.
    void grow_in_turn() {
        bool has_grown = true;
        while (has_grown) {
            has_grown = false;
            for (Client& client : clients_) {
                const hanare_status status = grow(client, client.bytes + kUnit);
                ASSERT_NE(status, HANARE_STATUS_LIMIT)
                    << free_ / kMiB << " MiB free, " << client.extents.size() << " extents of "
                    << regions_;
                has_grown = has_grown || status == HANARE_STATUS_OK;
            }
        }
    }

    uint64_t free_bytes() const { return free_; }
    size_t regions() const { return regions_; }
    std::deque<Client>& all() { return clients_; }

private:
    store::ExtentAllocator memory_;
    uint64_t free_;
    const uint64_t quota_bytes_;
    std::vector<uint64_t> tenants_left_;
    size_t regions_ = 0;
    std::deque<Client> clients_;
};

// Powers of two, and in between.
std::vector<uint64_t> server_sizes() {
    std::vector<uint64_t> sizes;
    for (uint64_t bytes = 16 * kMiB; bytes <= 4 * kTiB; bytes *= 2) {
        sizes.push_back(bytes);
        if (bytes < 4 * kTiB) sizes.push_back(round_down(bytes * 3 / 2 + kUnit, kUnit));
    }
    return sizes;
}

TEST(GrowthPolicy, OneClientHasAllOfAnEmptyServer) {
    for (const uint64_t bytes : server_sizes()) {
        Clients clients(bytes);
        Clients::Client& one = clients.come();
        EXPECT_EQ(clients.grow_until_refused(one), HANARE_STATUS_STORE_FULL) << bytes / kMiB;
        EXPECT_EQ(one.bytes, bytes) << bytes / kMiB;
    }
}

TEST(GrowthPolicy, ALateClientHasAllThatIsLeft) {
    for (const uint64_t bytes : server_sizes()) {
        for (const uint64_t percent : {10, 50, 88, 95, 99}) {
            Clients clients(bytes);
            clients.grow(clients.come(), bytes / 100 * percent);
            const uint64_t left = clients.free_bytes();
            Clients::Client& late = clients.come();
            EXPECT_EQ(clients.grow_until_refused(late), HANARE_STATUS_STORE_FULL);
            EXPECT_EQ(late.bytes, left) << percent << " % of " << bytes / kMiB << " MiB";
        }
    }
}

// Those that grow at the same time end with about as much.
TEST(GrowthPolicy, ManyClientsHaveAllOfAServerAndPartsAlike) {
    for (const uint64_t bytes : server_sizes()) {
        for (const size_t count : {2, 16, 100, 1000}) {
            Clients clients(bytes);
            for (size_t i = 0; i < count; ++i) clients.come();
            clients.grow_in_turn();
            EXPECT_EQ(clients.free_bytes(), 0u);
            EXPECT_LE(clients.regions(), fabric::kRegionsMax);
            const auto [least, most] =
                std::ranges::minmax(clients.all(), {}, &Clients::Client::bytes);
            if (bytes / count < 16 * kUnit) continue;
            EXPECT_GE(least.bytes, bytes / count / 3) << count << " of " << bytes / kMiB << " MiB";
            EXPECT_LE(most.bytes, bytes / count * 3) << count << " of " << bytes / kMiB << " MiB";
        }
    }
}

// Each wants no more than 4 MiB.
TEST(GrowthPolicy, SmallClientsLeaveMostOfTheServerToALargeOne) {
    for (const uint64_t bytes : server_sizes()) {
        Clients clients(bytes);
        const uint64_t count = std::min<uint64_t>(bytes / 4 / kUnit, 999);
        for (uint64_t i = 0; i < count; ++i) {
            ASSERT_EQ(clients.grow(clients.come(), kUnit), HANARE_STATUS_OK);
        }
        const uint64_t left = clients.free_bytes();
        EXPECT_GE(left, bytes / 3) << bytes / kMiB;
        Clients::Client& large = clients.come();
        EXPECT_EQ(clients.grow_until_refused(large), HANARE_STATUS_STORE_FULL);
        EXPECT_EQ(large.bytes, left) << bytes / kMiB;
    }
}

TEST(GrowthPolicy, AllHaveTheirQuota) {
    for (const uint64_t bytes : server_sizes()) {
        for (const size_t count : {4, 50, 1000}) {
            const uint64_t quota = round_down(bytes / count, kUnit);
            Clients clients(bytes, quota);
            for (size_t i = 0; i < count; ++i) clients.come();
            clients.grow_in_turn();
            for (const auto& client : clients.all()) ASSERT_EQ(client.bytes, quota);
        }
    }
}

TEST(GrowthPolicy, TenantsHaveTheirs) {
    for (const uint64_t bytes : server_sizes()) {
        for (const size_t count : {2, 7, 30}) {
            const uint64_t quota = round_down(bytes / count, kUnit);
            Clients clients(bytes, UINT64_MAX, std::vector<uint64_t>(count, quota));
            std::vector<uint64_t> has(count);
            for (size_t i = 0; i < 10 * count; ++i) clients.come(i % count);
            clients.grow_in_turn();
            for (const auto& client : clients.all()) has[client.tenant] += client.bytes;
            for (const uint64_t each : has) ASSERT_EQ(each, quota);
        }
    }
}

// A tenant's first client leaves most to its others.
TEST(GrowthPolicy, ATenantsClientsShareWhatItHas) {
    Clients clients(4 * kTiB, UINT64_MAX, {UINT64_MAX, kGiB});
    for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(clients.grow(clients.come(1), kUnit), HANARE_STATUS_OK);
    }
}

// Some grow at once, some slot by slot, to sizes that differ by a factor of a thousand; some end
// when they are as large as they want, some when the server is full.  What they leave are pieces.
// Where extents run out, the memory has as good as run out, too.
TEST(GrowthPolicy, ClientsThatComeAndGo) {
    for (const uint64_t bytes : {kGiB, 16 * kGiB, 100 * kGiB, 512 * kGiB, 4 * kTiB}) {
        for (uint64_t seed = 1; seed <= 8; ++seed) {
            Prng prng(seed);
            Clients clients(bytes);
            const size_t count = 5 + prng.below(400);
            std::vector<uint64_t> wanted(count);
            for (size_t i = 0; i < count; ++i) clients.come();
            for (int step = 0; step < 20'000; ++step) {
                const size_t number = prng.below(count);
                Clients::Client& client = clients.all()[number];
                if (client.bytes >= wanted[number]) {
                    clients.leave(client);
                    wanted[number] = 1 + ((4 * bytes / count) >> prng.below(10));
                }
                const bool is_at_once = number % 3 == 0;
                const hanare_status status =
                    clients.grow(client, is_at_once ? wanted[number] : client.bytes + kUnit);
                if (status == HANARE_STATUS_OK) continue;
                if (status == HANARE_STATUS_LIMIT) {
                    ASSERT_LE(clients.free_bytes(), bytes / 50)
                        << bytes / kMiB << " MiB, seed " << seed << ": " << client.extents.size()
                        << " extents of " << clients.regions();
                }
                if (prng.below(4) == 0) wanted[number] = 0;
            }
        }
    }
}

// One that has always got the crumbs of a server that is nearly full has the rest when that is
// free, though half of its extents are small.
TEST(GrowthPolicy, WhoHasGrownByCrumbsMayBecomeLarge) {
    Clients clients(4 * kTiB);
    Clients::Client& other = clients.come();
    ASSERT_EQ(clients.grow(other, 4 * kTiB - 64 * kMiB), HANARE_STATUS_OK);
    Clients::Client& one = clients.come();
    while (one.extents.size() < lease::kExtentsMax / 2) {
        const uint64_t before = clients.free_bytes();
        ASSERT_EQ(clients.grow(one, one.bytes + kUnit), HANARE_STATUS_OK);
        // Others go, and more come for what is free but 64 MiB.
        clients.leave(other);
        ASSERT_EQ(clients.grow(other, clients.free_bytes() - std::min<uint64_t>(before, 64 * kMiB)),
                  HANARE_STATUS_OK);
    }
    clients.leave(other);
    EXPECT_EQ(clients.grow_until_refused(one), HANARE_STATUS_STORE_FULL);
    EXPECT_EQ(one.bytes, 4 * kTiB);
}

}  // namespace
}  // namespace hanare::server
