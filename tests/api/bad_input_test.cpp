// SPDX-License-Identifier: Apache-2.0
//
// Arguments that make no sense: the right status, a text that names the value and what is allowed,
// and nothing changed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "api/far_pool.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 64 * kKiB;
const void* const kUntouched = &kBlock;

// Opens a pool that should not open.
testing::AssertionResult open_fails(hanare_status expected, const std::vector<std::string>& parts,
                                    PoolConfig& config) {
    auto* pool = static_cast<hanare_pool*>(const_cast<void*>(kUntouched));
    const hanare_status status = hanare_pool_open(config.c_options(), &pool);
    if (status == HANARE_STATUS_OK) {
        hanare_pool_close(pool);
    } else if (pool != kUntouched) {
        return testing::AssertionFailure() << "the output was written";
    }
    return fails_with(expected, parts, status);
}

class BadOpenTest : public testing::Test {
protected:
    BadOpenTest() {
        config_.store = "file:" + directory_.path();
        config_.options.local_bytes = 8 * kMiB;
        config_.options.block_bytes = kBlock;
    }

    sys::testing::TemporaryDirectory directory_;
    PoolConfig config_;
};

TEST_F(BadOpenTest, TheConfigurationOfTheseTestsIsGood) {
    hanare_pool* pool = nullptr;
    must(hanare_pool_open(config_.c_options(), &pool));
    must(hanare_pool_close(pool));
}

TEST_F(BadOpenTest, NullArguments) {
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"hanare_pool_open", "pool", "NULL"},
                           hanare_pool_open(config_.c_options(), nullptr)));
}

TEST_F(BadOpenTest, BlockSizes) {
    const uint64_t sizes[] = {1, 512, 4095, 4097, 12 * kKiB, 3 * kMiB, 8 * kMiB, UINT64_MAX};
    for (const uint64_t size : sizes) {
        config_.options.block_bytes = size;
        EXPECT_TRUE(open_fails(HANARE_STATUS_INVALID_ARGUMENT,
                               {"block", std::to_string(size), "power of two", "4M"}, config_))
            << size;
    }
}

TEST_F(BadOpenTest, Engines) {
    for (const char* name : {"nonsense", "", "SIGBUS-MOVE", "sigbus-move "}) {
        config_.engine = name;
        EXPECT_TRUE(open_fails(HANARE_STATUS_INVALID_ARGUMENT,
                               {"engine", name, "auto", "sigbus-move", "segv-remap"}, config_))
            << name;
    }
}

TEST_F(BadOpenTest, StoreSpecs) {
    const char* const specs[] = {"nonsense",     "/var/tmp",         "disk:/var/tmp",
                                 "file:/x?size", "file:/x?size=0",   "file:/x?size=-1",
                                 "file:/x?a=1",  "file:/x?size=12Q", "file:/x?size=1G&b=2"};
    for (const char* spec : specs) {
        config_.store = spec;
        EXPECT_TRUE(open_fails(HANARE_STATUS_INVALID_ARGUMENT, {spec}, config_)) << spec;
    }
    config_.store = "mirror(file:/var/tmp)";
    EXPECT_TRUE(open_fails(HANARE_STATUS_INVALID_ARGUMENT, {"mirror(", "file:DIR"}, config_));
    config_.store = "mirror(file:/no/such/place,file:/var/tmp)";
    EXPECT_TRUE(open_fails(HANARE_STATUS_STORE_UNAVAILABLE, {"/no/such/place"}, config_));
    config_.store = "tcp://127.0.0.1:1";
    EXPECT_TRUE(open_fails(HANARE_STATUS_STORE_UNAVAILABLE, {"tcp://127.0.0.1:1"}, config_));
}

TEST_F(BadOpenTest, StructSizes) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{7}, size_t{5000}, SIZE_MAX}) {
        config_.options.struct_size = size;
        EXPECT_TRUE(open_fails(HANARE_STATUS_INVALID_ARGUMENT,
                               {"struct_size is " + std::to_string(size), "sizeof"}, config_));
    }
}

// A caller built against an older header knows fewer fields; the others mean "default".
TEST_F(BadOpenTest, AShorterStructIsGood) {
    config_.options.struct_size = offsetof(hanare_pool_options, block_bytes);
    config_.options.block_bytes = 12345;
    hanare_pool* pool = nullptr;
    must(hanare_pool_open(config_.c_options(), &pool));
    must(hanare_pool_close(pool));
}

TEST_F(BadOpenTest, UnknownFlagsAndReadAhead) {
    config_.options.flags = 0x80;
    EXPECT_TRUE(open_fails(HANARE_STATUS_INVALID_ARGUMENT, {"flags 0x80", "allowed"}, config_));
    config_.options.flags = 0;
    config_.options.read_ahead_blocks = 1'000'000;
    EXPECT_TRUE(
        open_fails(HANARE_STATUS_INVALID_ARGUMENT, {"read_ahead", "1000000", "1024"}, config_));
}

TEST_F(BadOpenTest, BudgetBelowTheMinimumSaysWhatToDo) {
    for (const uint64_t budget : {uint64_t{1}, kBlock, 15 * kBlock, 16 * kBlock}) {
        config_.options.local_bytes = budget;
        EXPECT_TRUE(open_fails(
            HANARE_STATUS_LIMIT,
            {"local budget of", "blocks of 64 KiB", "at least 16", "raise the budget", "smaller"},
            config_))
            << budget;
    }
}

TEST_F(BadOpenTest, AbsurdBudgetsFailCleanly) {
    for (const uint64_t budget : {UINT64_MAX, uint64_t{1} << 63, uint64_t{1} << 50}) {
        config_.options.local_bytes = budget;
        hanare_pool* pool = nullptr;
        const hanare_status status = hanare_pool_open(config_.c_options(), &pool);
        EXPECT_TRUE(status == HANARE_STATUS_NO_MEMORY || status == HANARE_STATUS_INVALID_ARGUMENT)
            << budget << " " << hanare_status_name(status);
        if (status == HANARE_STATUS_OK) hanare_pool_close(pool);
    }
}

TEST_F(BadOpenTest, EnvironmentValuesAreNamed) {
    config_.options.block_bytes = 0;
    setenv("HANARE_BLOCK", "5K", 1);
    EXPECT_TRUE(open_fails(HANARE_STATUS_INVALID_ARGUMENT, {"HANARE_BLOCK", "5K", "power of two"},
                           config_));
    unsetenv("HANARE_BLOCK");
}

class BadCallTest : public testing::Test {
protected:
    hanare_status alloc(uint64_t bytes, uint64_t block_bytes = 0) {
        const hanare_alloc_options options = {sizeof options, block_bytes, nullptr};
        void* address = const_cast<void*>(kUntouched);
        const hanare_status status = hanare_alloc(pool_.get(), bytes, &options, &address);
        EXPECT_TRUE(status == HANARE_STATUS_OK || address == kUntouched);
        return status;
    }

    FarPool pool_{PoolSetup{}, 32, kMiB};
    std::byte* region_ = pool_.alloc(10 * kBlock + 1);
};

TEST_F(BadCallTest, NullPools) {
    hanare_counters counters = {};
    counters.struct_size = sizeof counters;
    void* address = nullptr;
    const hanare_status results[] = {
        hanare_pool_close(nullptr),
        hanare_alloc(nullptr, 1, nullptr, &address),
        hanare_free(nullptr, region_),
        hanare_advise(nullptr, region_, 1, HANARE_ADVICE_NORMAL),
        hanare_prefetch(nullptr, region_, 1),
        hanare_pin(nullptr, region_, 1, HANARE_ACCESS_READ),
        hanare_unpin(nullptr, region_, 1),
        hanare_flush(nullptr, nullptr, 0),
        hanare_stats(nullptr, nullptr, &counters),
    };
    for (const hanare_status status : results) EXPECT_EQ(status, HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(last_error(), "hanare_stats: pool must not be NULL");
}

TEST_F(BadCallTest, NullOutputsAndAddresses) {
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"hanare_alloc", "address", "NULL"},
                           hanare_alloc(pool_.get(), 1, nullptr, nullptr)));
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"hanare_stats", "counters", "NULL"},
                           hanare_stats(pool_.get(), nullptr, nullptr)));
    EXPECT_EQ(hanare_free(pool_.get(), nullptr), HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(hanare_pin(pool_.get(), nullptr, 1, HANARE_ACCESS_READ),
              HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hanare_advise(pool_.get(), nullptr, 0, HANARE_ADVICE_NORMAL),
              HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hanare_flush(pool_.get(), nullptr, 5), HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(hanare_last_error(nullptr, 0), last_error().size());
}

TEST_F(BadCallTest, AllocSizes) {
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"size: 0 bytes", "allowed"}, alloc(0)));
    for (const uint64_t bytes : {UINT64_MAX, static_cast<uint64_t>(-4096), uint64_t{1} << 47}) {
        EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT,
                               {"size: " + std::to_string(bytes), "allowed is 1 byte to 64 TiB"},
                               alloc(bytes)));
    }
    EXPECT_EQ(alloc(uint64_t{1} << 45, 4 * kKiB), HANARE_STATUS_INVALID_ARGUMENT);  // 2^33 blocks
    EXPECT_EQ(pool_.stats().virtual_bytes, 11 * kBlock);
}

TEST_F(BadCallTest, AllocBlockSizes) {
    for (const uint64_t size : {uint64_t{1}, uint64_t{4095}, 6 * kKiB, 8 * kMiB}) {
        EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT,
                               {"block size: " + std::to_string(size), "power of two from 4 KiB"},
                               alloc(kMiB, size)));
    }
    EXPECT_TRUE(fails_with(HANARE_STATUS_LIMIT, {"local budget of", "blocks of 4 MiB"},
                           alloc(4 * kMiB, 4 * kMiB)));
}

TEST_F(BadCallTest, AllocAddresses) {
    const auto alloc_at = [&](void* wanted) {
        const hanare_alloc_options options = {sizeof options, kBlock, wanted};
        void* address = const_cast<void*>(kUntouched);
        const hanare_status status = hanare_alloc(pool_.get(), kBlock, &options, &address);
        EXPECT_EQ(address, kUntouched);
        return status;
    };
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"address: 0x", "block size"},
                           alloc_at(region_ + kOsPageBytes)));
    EXPECT_TRUE(fails_with(HANARE_STATUS_NO_MEMORY, {"address space at 0x", "File exists"},
                           alloc_at(region_)));
    EXPECT_EQ(pool_.stats().virtual_bytes, 11 * kBlock);
}

TEST_F(BadCallTest, TablesThatDoNotFitTheBudgetAreRefused) {
    // 256 GiB in blocks of 4 KiB need tables of 1 GiB; whichever limit is met first, it is told.
    const hanare_status status = alloc(256 * kGiB, 4 * kKiB);
    EXPECT_TRUE(fails_with(HANARE_STATUS_LIMIT, {"tables need", "larger blocks"}, status));
    EXPECT_EQ(pool_.stats().virtual_bytes, 11 * kBlock);
}

TEST_F(BadCallTest, RangesMustLieInOneRegion) {
    const uint64_t bytes = 10 * kBlock + 1;
    struct Range {
        const std::byte* address;
        uint64_t bytes;
    };
    const Range ranges[] = {{region_ - 1, 1},
                            {region_, bytes + 1},
                            {region_ + bytes, 1},
                            {region_ + bytes + 5, 1},
                            {region_, 0},
                            {region_, UINT64_MAX},
                            {region_ + 1, UINT64_MAX - 5},
                            {region_ + bytes + 100, kGiB}};
    for (const Range& range : ranges) {
        const auto refused = [&](hanare_status status) {
            return fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"not inside one region"}, status);
        };
        hanare_pool* const pool = pool_.get();
        EXPECT_TRUE(refused(hanare_pin(pool, range.address, range.bytes, HANARE_ACCESS_READ)));
        EXPECT_TRUE(refused(hanare_unpin(pool, range.address, range.bytes)));
        EXPECT_TRUE(refused(hanare_flush(pool, range.address, range.bytes)));
        EXPECT_TRUE(refused(hanare_prefetch(pool, range.address, range.bytes)));
        EXPECT_TRUE(
            refused(hanare_advise(pool, range.address, range.bytes, HANARE_ADVICE_DONTNEED)));
    }
}

TEST_F(BadCallTest, UnknownAdviceAndAccess) {
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"advice: 6"},
                           hanare_advise(pool_.get(), region_, 1, static_cast<hanare_advice>(6))));
    for (const int access : {0, 3}) {
        EXPECT_TRUE(
            fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"access: " + std::to_string(access)},
                       hanare_pin(pool_.get(), region_, 1, static_cast<hanare_access>(access))));
    }
}

TEST_F(BadCallTest, FreeTakesTheStartOfARegionOnce) {
    EXPECT_TRUE(fails_with(HANARE_STATUS_NOT_FOUND, {"not the start of a region"},
                           hanare_free(pool_.get(), region_ + kBlock)));
    must(hanare_free(pool_.get(), region_));
    EXPECT_EQ(hanare_free(pool_.get(), region_), HANARE_STATUS_NOT_FOUND);
    EXPECT_EQ(hanare_free(pool_.get(), &pool_), HANARE_STATUS_NOT_FOUND);
}

TEST_F(BadCallTest, StatsStructSizes) {
    hanare_counters counters = {};
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"struct_size is 0"},
                           hanare_stats(pool_.get(), nullptr, &counters)));
    counters.struct_size = offsetof(hanare_counters, upgrade_faults);
    counters.upgrade_faults = 4711;
    touch(region_, kBlock, 0);
    must(hanare_stats(pool_.get(), nullptr, &counters));
    EXPECT_EQ(counters.read_faults, 1u);
    EXPECT_EQ(counters.upgrade_faults, 4711u);
    counters.struct_size = sizeof counters;
    EXPECT_EQ(hanare_stats(pool_.get(), &counters, &counters), HANARE_STATUS_INVALID_ARGUMENT);
}

}  // namespace

}  // namespace hanare::api_test
