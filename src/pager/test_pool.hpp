// SPDX-License-Identifier: Apache-2.0
//
// For tests: a pool whose store is in $TMPDIR, or in /var/tmp.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "pager/pool.hpp"

namespace hanare::pager {

// nullptr, and the test has failed, where it cannot be opened.
inline std::unique_ptr<Pool> open_test_pool(uint64_t local_bytes, uint64_t block_bytes) {
    PoolOptions options;
    options.local_bytes = local_bytes;
    options.block_bytes = block_bytes;
    options.read_ahead_blocks = 8;
    const char* const directory = std::getenv("TMPDIR");
    options.store.directory = directory == nullptr ? "/var/tmp" : directory;
    auto pool = Pool::open(options);
    EXPECT_TRUE(pool) << pool.error().text;
    return pool ? std::move(*pool) : nullptr;
}

}  // namespace hanare::pager
