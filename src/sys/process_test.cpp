// SPDX-License-Identifier: Apache-2.0
//
// Tests of small things the demo asks the system: interruption, usage, text files, devices.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "sys/block_device.hpp"
#include "sys/file.hpp"
#include "sys/file_mapping.hpp"
#include "sys/interrupt.hpp"
#include "sys/process_usage.hpp"
#include "sys/text_file.hpp"

namespace hanare::sys {
namespace {

TEST(Interrupt, RemembersTheFirstSignal) {
    const Interrupt interrupt;
    EXPECT_FALSE(Interrupt::requested());
    pollfd waited = {interrupt.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&waited, 1, 0), 0);
    raise(SIGTERM);
    raise(SIGHUP);
    EXPECT_EQ(Interrupt::signal(), SIGTERM);
    EXPECT_EQ(poll(&waited, 1, 0), 1);
}

TEST(Interrupt, RestoresHandlers) {
    struct sigaction before = {};
    sigaction(SIGTERM, nullptr, &before);
    {
        const Interrupt interrupt;
    }
    struct sigaction after = {};
    sigaction(SIGTERM, nullptr, &after);
    EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(Interrupt, LeavesIgnoredSignalsIgnored) {
    struct sigaction ignore = {};
    ignore.sa_handler = SIG_IGN;
    struct sigaction before = {};
    sigaction(SIGHUP, &ignore, &before);
    {
        const Interrupt interrupt;
        raise(SIGHUP);
        EXPECT_FALSE(Interrupt::requested());
    }
    sigaction(SIGHUP, &before, nullptr);
}

TEST(ProcessUsage, CountsFaultsAndPeak) {
    const auto before = process_usage();
    ASSERT_TRUE(before) << before.error().text;
    const auto mapping = Mapping::reserve(8 * kMiB, kOsPageBytes);
    ASSERT_TRUE(mapping);
    advise_huge_pages(*mapping, false);
    for (size_t at = 0; at < mapping->bytes(); at += kOsPageBytes) {
        *static_cast<volatile std::byte*>(mapping->address() + at) = std::byte{1};
    }
    const auto after = process_usage();
    ASSERT_TRUE(after);
    EXPECT_GE(after->minor_faults - before->minor_faults, mapping->bytes() / kOsPageBytes);
    EXPECT_GE(after->peak_resident_bytes, mapping->bytes());
}

TEST(ProcessUsage, CountsPagesAndTheirTables) {
    constexpr size_t kTables = 256;
    constexpr size_t kTableBytes = 2 * kMiB;  // mapped by one
    const auto mapping = Mapping::reserve(kTables * kTableBytes, kTableBytes);
    ASSERT_TRUE(mapping);
    advise_huge_pages(*mapping, false);
    const OwnMemory before = own_memory();
    EXPECT_GE(before.address_bytes, mapping->bytes());
    for (size_t at = 0; at < mapping->bytes(); at += kTableBytes) {
        *static_cast<volatile std::byte*>(mapping->address() + at) = std::byte{1};
    }
    const OwnMemory after = own_memory();
    // Before Linux 6.16 these are counted in batches; ThreadSanitizer has pages of its own for
    // each.
    constexpr uint64_t kExpected = kTables * kOsPageBytes;
    for (const uint64_t grown : {after.anonymous_bytes - before.anonymous_bytes,
                                 after.page_table_bytes - before.page_table_bytes}) {
        EXPECT_GE(grown, kExpected / 2);
        EXPECT_LT(grown, 5 * kExpected);
    }
}

TEST(TextFile, ReportsWhatFails) {
    EXPECT_TRUE(read_text_file("/proc/self/status"));
    const auto missing = read_text_file("/nonexistent");
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().status, HANARE_STATUS_NOT_FOUND);
    EXPECT_FALSE(write_text_file("/proc/self/status", "x"));
}

TEST(BlockDevice, CountsWhatIsWritten) {
    const auto device = block_device_of("/var/tmp");
    if (!device) GTEST_SKIP() << device.error().text;
    const auto before = block_device_bytes(*device);
    ASSERT_TRUE(before) << before.error().text;
    FileDescriptor file;
    ASSERT_EQ(open_unnamed("/var/tmp", file), 0);
    const std::vector<std::byte> data(4 * kMiB, std::byte{7});
    ASSERT_EQ(write_at(file.number(), 0, data.data(), data.size()), 0);
    ASSERT_TRUE(sync_file_system("/var/tmp"));
    const auto after = block_device_bytes(*device);
    ASSERT_TRUE(after);
    EXPECT_GE(after->written - before->written, data.size());
}

// Pages of the file at `mapping` that are in the page cache.
size_t cached_pages(const FileMapping& mapping, size_t bytes) {
    std::vector<unsigned char> pages(bytes / kOsPageBytes);
    EXPECT_EQ(mincore(mapping.address(), bytes, pages.data()), 0);
    size_t count = 0;
    for (const unsigned char page : pages) count += page & 1;
    return count;
}

TEST(FileMapping, IsDroppedFromThePageCacheAfterAFlush) {
    constexpr size_t kBytes = 4 * kMiB;
    FileDescriptor file;
    ASSERT_EQ(open_unnamed("/var/tmp", file), 0);
    ASSERT_EQ(preallocate(file.number(), 0, kBytes), 0);
    auto mapping = FileMapping::create(file.number(), 0, kBytes, kOsPageBytes);
    ASSERT_TRUE(mapping) << mapping.error().text;
    for (const AccessOrder order :
         {AccessOrder::kSequential, AccessOrder::kRandom, AccessOrder::kUnknown}) {
        EXPECT_TRUE(mapping->expect(order));
    }
    for (size_t at = 0; at < kBytes; at += kOsPageBytes) mapping->address()[at] = std::byte{7};
    EXPECT_EQ(cached_pages(*mapping, kBytes), kBytes / kOsPageBytes);
    ASSERT_TRUE(mapping->flush());
    ASSERT_TRUE(mapping->unload());
    ASSERT_TRUE(drop_cached_pages(file.number()));
    EXPECT_EQ(cached_pages(*mapping, kBytes), 0u);
    EXPECT_EQ(mapping->address()[kBytes - kOsPageBytes], std::byte{7});
}

TEST(ProcessUsage, TheHeapBeginsWhereItIsMapped) {
    ASSERT_NE(sbrk(4096), reinterpret_cast<void*>(-1));  // so that there is one
    const std::string maps = read_text_file("/proc/self/maps").value();
    const size_t heap = maps.find("[heap]");
    ASSERT_NE(heap, std::string::npos);
    const size_t line = maps.rfind('\n', heap) + 1;
    EXPECT_EQ(heap_begin(), std::strtoull(maps.c_str() + line, nullptr, 16));
    EXPECT_LT(heap_begin(), reinterpret_cast<uintptr_t>(sbrk(0)));
}

TEST(BlockDevice, NoneBelowProc) { EXPECT_FALSE(block_device_of("/proc")); }

}  // namespace
}  // namespace hanare::sys
