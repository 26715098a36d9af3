// SPDX-License-Identifier: Apache-2.0
//
// Frames keep their pages: once a pool has grown to its budget, blocks come and go without the
// kernel allocating memory.  Counted by the kernel itself (tracepoint kmem:mm_page_alloc).  Nor do
// they lose them when a region ends.
#include <fstream>
#include <linux/perf_event.h>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/far_pool.hpp"

namespace hanare::api_test {

namespace {

// Allocations, of one or many pages each, by this process and by threads that begin later.
class PageAllocations {
public:
    PageAllocations() {
        std::ifstream file("/sys/kernel/tracing/events/kmem/mm_page_alloc/id");
        uint64_t id = 0;
        if (!(file >> id)) return;
        perf_event_attr attributes = {};
        attributes.type = PERF_TYPE_TRACEPOINT;
        attributes.size = sizeof attributes;
        attributes.config = id;
        attributes.inherit = 1;
        event_ = static_cast<int>(
            syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
    }
    PageAllocations(const PageAllocations&) = delete;
    PageAllocations& operator=(const PageAllocations&) = delete;
    ~PageAllocations() {
        if (works()) close(event_);
    }
    bool works() const { return event_ >= 0; }
    uint64_t count() const {
        uint64_t value = 0;
        EXPECT_EQ(read(event_, &value, sizeof value), ssize_t{sizeof value});
        return value;
    }

private:
    int event_ = -1;
};

void touch_new_pages(uint64_t pages) {
    const uint64_t bytes = pages * kOsPageBytes;
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    for (uint64_t i = 0; i < bytes; i += kOsPageBytes) static_cast<volatile char*>(memory)[i] = 1;
    munmap(memory, bytes);
}

class PageAllocationTest : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(, PageAllocationTest,
                         testing::Values("sigbus-move", "segv-remap", "thread"), engine_test_name);

TEST_P(PageAllocationTest, StreamsNeedNoneOnceThePoolHasGrown) {
    const PageAllocations allocations;
    if (!allocations.works()) GTEST_SKIP() << "no right to count the kernel's page allocations";
    const uint64_t begin = allocations.count();
    touch_new_pages(100);
    ASSERT_GE(allocations.count() - begin, 100u);

    constexpr uint64_t kBlock = 256 * kKiB;
    constexpr uint64_t kBlocks = 200;
    constexpr uint64_t kPages = kBlock / kOsPageBytes;
    FarPool pool(setup(kBlock), kBlocks / 4, kBlocks * kBlock, 16);
    uint64_t* const words = pool.alloc_words(kBlocks * kBlock);
    must(hanare_advise(pool.get(), words, kBlocks * kBlock, HANARE_ADVICE_SEQUENTIAL));
    fill(words, kBlocks * kBlock, 1);
    EXPECT_EQ(mismatches(words, kBlocks * kBlock, 1), 0u);

    const uint64_t grown = allocations.count();
    const uint64_t written = pool.stats().written_bytes;
    fill(words, kBlocks * kBlock, 2);
    EXPECT_EQ(mismatches(words, kBlocks * kBlock, 2), 0u);
    EXPECT_GT(pool.stats().written_bytes - written, kBlocks * kBlock / 2);
    // Page tables, and the system's own needs for transfers.
    EXPECT_LT(allocations.count() - grown, 2 * kBlocks * kPages / 50);
}

TEST_P(PageAllocationTest, AFreedRegionLeavesItsPagesToTheNext) {
    constexpr uint64_t kBlock = 256 * kKiB;
    constexpr uint64_t kBlocks = 50;
    constexpr uint64_t kBytes = kBlocks * kBlock;
    FarPool pool(setup(kBlock), 2 * kBlocks, kBytes);
    uint64_t* words = pool.alloc_words(kBytes);
    fill(words, kBytes, 1);
    const uint64_t frame_bytes = pool.stats().frame_bytes;
    const uint64_t local_bytes = status_bytes("VmRSS");
    must(hanare_free(pool.get(), words));
    EXPECT_GE(status_bytes("VmRSS"), local_bytes - kBytes / 2);
    EXPECT_GE(pool.stats().frame_bytes, frame_bytes);
    EXPECT_GE(pool.stats().free_frame_bytes, kBytes);

    words = pool.alloc_words(kBytes);
    EXPECT_EQ(non_zeros(words, kBytes), 0u);
    fill(words, kBytes, 2);
    EXPECT_EQ(mismatches(words, kBytes, 2), 0u);
    EXPECT_EQ(pool.stats().written_bytes, 0u);
}

TEST_P(PageAllocationTest, FramesOfFreedRegionsMakeRoomForBlocksOfAnotherSize) {
    constexpr uint64_t kBytes = 50 * 256 * kKiB;
    FarPool pool(setup(256 * kKiB), 64, kBytes);
    uint64_t* words = pool.alloc_words(kBytes);
    fill(words, kBytes, 1);
    must(hanare_free(pool.get(), words));
    EXPECT_GE(pool.stats().free_frame_bytes, kBytes);
    words = pool.alloc_words(kBytes, 64 * kKiB);
    EXPECT_EQ(pool.stats().free_frame_bytes, 0u);
    fill(words, kBytes, 2);
    EXPECT_EQ(mismatches(words, kBytes, 2), 0u);
    EXPECT_EQ(pool.stats().written_bytes, 0u);
}

}  // namespace

}  // namespace hanare::api_test
