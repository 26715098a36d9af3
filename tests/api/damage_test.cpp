// SPDX-License-Identifier: Apache-2.0
//
// A block that comes back different from what was written: found in the store's file on disk and
// changed there.  The access ends in one line and SIGBUS, never in wrong data.
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 64 * kKiB;
constexpr uint64_t kBlocks = 24;
constexpr uint64_t kBytes = kBlocks * kBlock;
constexpr uint64_t kWords = kBlock / sizeof(uint64_t);
constexpr uint64_t kVictim = 5;

// Flips one bit in the middle of the block on disk that holds this content.
bool flip_on_disk(const FarPool& pool, const std::vector<uint64_t>& content) {
    const int file = pool.open_store_file();
    std::vector<uint64_t> found(content.size());
    const size_t bytes = content.size() * sizeof(uint64_t);
    off_t offset = 0;
    while (pread(file, found.data(), bytes, offset) == static_cast<ssize_t>(bytes)) {
        if (found == content) {
            found[content.size() / 2] ^= 0x100;
            const bool done =
                pwrite(file, found.data(), bytes, offset) == static_cast<ssize_t>(bytes) &&
                fsync(file) == 0;
            return close(file) == 0 && done;
        }
        offset += static_cast<off_t>(bytes);
    }
    return false;
}

// A pool whose only region is absent and damaged in block kVictim.
class Scene {
public:
    explicit Scene(const std::string& engine)
        : pool_({engine.c_str(), kBlock}, 32, kBytes), words_(pool_.alloc_words(kBytes)) {
        fill(words_, kBytes, 1);
        const std::vector<uint64_t> content(words_ + kVictim * kWords,
                                            words_ + (kVictim + 1) * kWords);
        pool_.make_absent(words_, kBytes);
        is_damaged_ = flip_on_disk(pool_, content);
    }
    bool is_damaged() const { return is_damaged_; }
    FarPool& pool() { return pool_; }
    volatile uint64_t* block(uint64_t index) { return words_ + index * kWords; }
    uint64_t* words() { return words_; }
    bool other_blocks_are_right() {
        for (uint64_t i = 0; i < kBytes / sizeof(uint64_t); ++i) {
            if (i / kWords != kVictim && words_[i] != pattern(1, i)) return false;
        }
        return true;
    }

private:
    FarPool pool_;
    uint64_t* words_;
    bool is_damaged_ = false;
};

API_TEST_SCENARIO(read_damaged_block) {
    std::signal(SIGBUS, SIG_DFL);
    Scene scene(arguments[0]);
    SCENARIO_CHECK(scene.is_damaged());
    SCENARIO_CHECK(scene.other_blocks_are_right());
    if (arguments[1] == "write") {
        scene.block(kVictim)[0] = 1;
    } else {
        SCENARIO_CHECK(scene.block(kVictim)[0] == 0);  // dies here
    }
    return 0;
}

sigjmp_buf resume;
void on_sigbus(int) { siglongjmp(resume, 1); }

bool access_fails(volatile uint64_t* word) {
    if (sigsetjmp(resume, 1) != 0) return true;
    *word = *word + 1;
    return false;
}

API_TEST_SCENARIO(survive_damaged_block) {
    std::signal(SIGBUS, on_sigbus);
    Scene scene(arguments[0]);
    SCENARIO_CHECK(scene.is_damaged());
    SCENARIO_CHECK(access_fails(scene.block(kVictim)));
    SCENARIO_CHECK(scene.other_blocks_are_right());
    SCENARIO_CHECK(access_fails(scene.block(kVictim) + 100));
    // One for each access, and one more if the others looked like a stream that leads to it.
    const uint64_t errors = scene.pool().stats().checksum_errors;
    SCENARIO_CHECK(errors == 2 || errors == 3);
    SCENARIO_CHECK(
        fails_with(HANARE_STATUS_CORRUPT, {"does not match its checksum"},
                   hanare_pin(scene.pool().get(), scene.words(), 8 * kBlock, HANARE_ACCESS_READ)));
    SCENARIO_CHECK(scene.pool().stats().pinned_bytes == 0);
    // Read-ahead must not deliver it, either: it is found when it is mapped, and when it is read
    // once more.
    const hanare_counters before = scene.pool().stats();
    const auto* victim = const_cast<const uint64_t*>(scene.block(kVictim));
    must(hanare_prefetch(scene.pool().get(), victim, 1));
    SCENARIO_CHECK(eventually(
        [&] { return scene.pool().stats().prefetch_reads == before.prefetch_reads + 1; }));
    SCENARIO_CHECK(access_fails(scene.block(kVictim)));
    SCENARIO_CHECK(scene.pool().stats().checksum_errors == before.checksum_errors + 2);
    must(hanare_prefetch(scene.pool().get(), scene.words(), kBytes));
    SCENARIO_CHECK(access_fails(scene.block(kVictim)));
    SCENARIO_CHECK(scene.other_blocks_are_right());
    must(hanare_free(scene.pool().get(), scene.words()));
    uint64_t* const fresh = scene.pool().alloc_words(kBytes);
    SCENARIO_CHECK(non_zeros(fresh, kBytes) == 0);
    return 0;
}

class DamageTest : public EngineTest {};
API_TEST_WITH_ENGINES(DamageTest);

void expect_death_with_one_line(const Outcome& outcome, const std::string& access) {
    EXPECT_TRUE(outcome.died_of(SIGBUS)) << outcome.describe();
    ASSERT_EQ(outcome.lines().size(), 1u) << outcome.errors;
    EXPECT_NE(outcome.errors.find("hanare: cannot serve a " + access + " of far memory"),
              std::string::npos);
    EXPECT_NE(outcome.errors.find("(block 5): the block came back from the store different"),
              std::string::npos);
}

TEST_P(DamageTest, ReadingADamagedBlockDies) {
    expect_death_with_one_line(run_scenario("read_damaged_block", {GetParam(), "read"}), "read");
}

TEST_P(DamageTest, WritingADamagedBlockDies) {
    expect_death_with_one_line(run_scenario("read_damaged_block", {GetParam(), "write"}), "write");
}

TEST_P(DamageTest, AHandlerMayLeaveAndTheProgramGoesOn) {
    const Outcome outcome = run_scenario("survive_damaged_block", {GetParam()});
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    EXPECT_EQ(outcome.lines().size(), 4u) << outcome.errors;
}

}  // namespace

}  // namespace hanare::api_test
