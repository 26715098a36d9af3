// SPDX-License-Identifier: Apache-2.0
//
// Store directories that cannot be used.  Mounts are private to the scenario's process.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"

namespace hanare::api_test {

namespace {

using sys::testing::TemporaryDirectory;

hanare_status open_in(const std::string& directory, uint32_t flags = 0) {
    PoolConfig config;
    config.store = "file:" + directory;
    config.options.local_bytes = 8 * kMiB;
    config.options.flags = flags;
    hanare_pool* pool = nullptr;
    const hanare_status status = hanare_pool_open(config.c_options(), &pool);
    if (status != HANARE_STATUS_OK) return status;
    std::byte* region = nullptr;
    must(hanare_alloc(pool, kMiB, nullptr, reinterpret_cast<void**>(&region)));
    poke(region, 256 * kKiB, 1, 5);
    must(hanare_advise(pool, region, kMiB, HANARE_ADVICE_DONTNEED));
    if (touch(region, 256 * kKiB, 1) != 5) return HANARE_STATUS_INTERNAL;
    return hanare_pool_close(pool);
}

bool refused(const std::string& directory, const std::string& reason) {
    const testing::AssertionResult result =
        fails_with(HANARE_STATUS_STORE_UNAVAILABLE, {directory, reason}, open_in(directory));
    if (!result) std::fprintf(stderr, "%s\n", result.message());
    return result;
}

TEST(BadStoreTest, MissingDirectory) {
    const TemporaryDirectory parent;
    EXPECT_TRUE(refused(parent.path() + "/missing", "does not exist"));
}

TEST(BadStoreTest, AFileInstead) {
    EXPECT_TRUE(refused("/proc/self/exe", "is not a directory"));
    EXPECT_TRUE(refused("/dev/null", "is not a directory"));
}

TEST(BadStoreTest, TmpfsOnlyWhenAllowed) {
    const std::string directory = "/dev/shm";
    struct stat status;
    if (stat(directory.c_str(), &status) != 0) GTEST_SKIP() << "no " << directory;
    EXPECT_TRUE(refused(directory, "is on tmpfs"));
    EXPECT_EQ(open_in(directory, HANARE_POOL_ALLOW_TMPFS), HANARE_STATUS_OK) << last_error();
}

API_TEST_SCENARIO(store_not_writable_for_nobody) {
    SCENARIO_CHECK(geteuid() != 0 || sys::testing::become_nobody());
    SCENARIO_CHECK(refused(arguments[0], "is not writable for this user"));
    return 0;
}

TEST(BadStoreTest, NotWritableForThisUser) {
    const TemporaryDirectory directory;
    ASSERT_EQ(chmod(directory.path().c_str(), 0555), 0);
    const Outcome outcome = run_scenario("store_not_writable_for_nobody", {directory.path()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

API_TEST_SCENARIO(store_on_read_only_mount) {
    if (!sys::testing::private_mounts_work()) {
        std::fprintf(stderr, "private mounts are refused here\n");
        return kScenarioSkipped;
    }
    const char* const directory = arguments[0].c_str();
    SCENARIO_CHECK(sys::testing::enter_private_mounts());
    SCENARIO_CHECK(mount(directory, directory, nullptr, MS_BIND, nullptr) == 0);
    SCENARIO_CHECK(mount(nullptr, directory, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) ==
                   0);
    SCENARIO_CHECK(refused(arguments[0], "read-only file system"));
    return 0;
}

TEST(BadStoreTest, ReadOnlyMount) {
    const TemporaryDirectory directory;
    const Outcome outcome = run_scenario("store_on_read_only_mount", {directory.path()});
    SKIP_IF_SCENARIO_WAS(outcome);
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

}  // namespace

}  // namespace hanare::api_test
