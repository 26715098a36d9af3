// SPDX-License-Identifier: Apache-2.0
//
// What the tests of this folder share.  Included by *_test.cpp only.
#pragma once

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "store/store.hpp"
#include "sys/file.hpp"
#include "sys/inject.hpp"
#include "sys/memory.hpp"
#include "sys/test_support.hpp"

namespace hanare::store {

inline std::unique_ptr<Store> open_or_fail(const FileStoreOptions& options) {
    auto store = open_file_store(options);
    EXPECT_TRUE(store) << store.error().text;
    return store ? std::move(*store) : nullptr;
}

inline uint64_t reserve_or_fail(Store& store, uint64_t bytes) {
    const auto offset = store.reserve(bytes);
    EXPECT_TRUE(offset) << offset.error().text;
    return offset ? *offset : 0;
}

// Page-aligned memory for transfers.
class Buffer {
public:
    explicit Buffer(size_t bytes) {
        auto mapping = sys::Mapping::reserve(bytes, kOsPageBytes);
        EXPECT_TRUE(mapping);
        mapping_ = std::move(*mapping);
    }
    Buffer(size_t bytes, Prng& prng) : Buffer(bytes) { randomize(prng); }

    void randomize(Prng& prng) {
        for (size_t at = 0; at < bytes(); at += sizeof(uint64_t)) {
            *reinterpret_cast<uint64_t*>(data() + at) = prng.next();
        }
    }
    std::byte* data() const { return mapping_.address(); }
    size_t bytes() const { return mapping_.bytes(); }
    friend bool operator==(const Buffer& a, const Buffer& b) {
        return a.bytes() == b.bytes() && std::equal(a.data(), a.data() + a.bytes(), b.data());
    }

private:
    sys::Mapping mapping_;
};

// A directory of its own, a seed, and nothing left behind.
class StoreTest : public ::testing::Test {
protected:
    ~StoreTest() override {
        sys::inject::disarm_all();
        EXPECT_EQ(directory_.entry_count(), 0u) << "something was left behind";
    }

    FileStoreOptions options() const {
        FileStoreOptions options;
        options.directory = directory_.path();
        options.allow_tmpfs = true;  // wherever the tests are told to work
        return options;
    }

    sys::testing::TemporaryDirectory directory_;
    Prng prng_{sys::testing::test_seed()};
};

}  // namespace hanare::store
