// SPDX-License-Identifier: Apache-2.0
#include "sys/aio.hpp"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/units.hpp"
#include "sys/file.hpp"
#include "sys/test_support.hpp"

namespace hanare::sys {
namespace {

class AioTest : public ::testing::TestWithParam<Aio::Kind> {
protected:
    void SetUp() override {
        ASSERT_EQ(open_unnamed(directory_.path(), file_), 0);
        for (size_t i = 0; i < kOsPageBytes; ++i) page_[i] = static_cast<std::byte>(i * 7);
        ASSERT_EQ(write_at(file_.number(), 0, page_, kOsPageBytes), 0);
    }

    bool reads(Aio& aio) {
        alignas(kOsPageBytes) std::byte back[kOsPageBytes] = {};
        const Aio::Transfer read = {0, back, kOsPageBytes, 99};
        Aio::Completion completion;
        if (aio.start(&read, 1) != 1) return false;
        while (aio.collect(&completion, 1, true) == 0) {
        }
        return completion.tag == 99 && completion.result == static_cast<int64_t>(kOsPageBytes) &&
               std::equal(back, back + kOsPageBytes, page_) && aio.is_empty();
    }
    bool opens_and_reads() {
        Aio aio(GetParam(), file_.number());
        return aio.is_empty() && reads(aio) && !aio.is_refused();
    }

    testing::TemporaryDirectory directory_;
    FileDescriptor file_;
    alignas(kOsPageBytes) std::byte page_[kOsPageBytes];
};

INSTANTIATE_TEST_SUITE_P(, AioTest, ::testing::Values(Aio::Kind::kMany, Aio::Kind::kOne),
                         [](const auto& test) {
                             return test.param == Aio::Kind::kMany ? "many" : "one";
                         });

TEST_P(AioTest, ContextsGoOnToTheNext) {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(opens_and_reads());
}

TEST_P(AioTest, WritesArrive) {
    Aio aio(GetParam(), file_.number());
    for (std::byte& byte : page_) byte ^= std::byte{0xff};
    const Aio::Transfer write = {kOsPageBytes, page_, kOsPageBytes, 5, true};
    ASSERT_EQ(aio.start(&write, 1), 1U);
    Aio::Completion completion;
    while (aio.collect(&completion, 1, true) == 0) {
    }
    EXPECT_EQ(completion.tag, 5U);
    EXPECT_EQ(completion.result, static_cast<int64_t>(kOsPageBytes));
    alignas(kOsPageBytes) std::byte back[kOsPageBytes] = {};
    ASSERT_EQ(read_at(file_.number(), kOsPageBytes, back, kOsPageBytes), 0);
    EXPECT_TRUE(std::equal(back, back + kOsPageBytes, page_));
}

TEST_P(AioTest, AReadThatNobodyCollectedIsNotMetByTheNext) {
    alignas(kOsPageBytes) std::byte back[kOsPageBytes];
    {
        Aio aio(GetParam(), file_.number());
        const Aio::Transfer read = {0, back, kOsPageBytes, 1};
        ASSERT_EQ(aio.start(&read, 1), 1u);
    }
    EXPECT_TRUE(opens_and_reads());
}

// More than are kept.
TEST_P(AioTest, ManyAtATime) {
    for (int round = 0; round < 2; ++round) {
        std::vector<std::unique_ptr<Aio>> all;
        for (int i = 0; i < 40; ++i) {
            all.push_back(std::make_unique<Aio>(GetParam(), file_.number()));
            EXPECT_TRUE(reads(*all.back()));
        }
        for (const auto& aio : all) EXPECT_TRUE(reads(*aio));
    }
}

TEST_P(AioTest, ThreadsThatStartTheFirstShareOneContext) {
    for (int round = 0; round < 20; ++round) {
        Aio aio(Aio::Kind::kMany, file_.number());
        constexpr size_t kThreads = 4;
        alignas(kOsPageBytes) std::byte back[kThreads][kOsPageBytes];
        std::atomic<size_t> started{0};
        {
            std::vector<std::jthread> threads;
            for (auto& page : back) {
                threads.emplace_back([&aio, &started, &page] {
                    const Aio::Transfer read = {0, page, kOsPageBytes, 1};
                    started += aio.start(&read, 1);
                });
            }
        }
        ASSERT_EQ(started.load(), kThreads);
        Aio::Completion completion;
        for (size_t collected = 0; collected < kThreads;) {
            collected += aio.collect(&completion, 1, true);
        }
        for (const auto& page : back) EXPECT_TRUE(std::equal(page, page + kOsPageBytes, page_));
    }
}

// It has none of the contexts that its parent keeps.
TEST_P(AioTest, AChildOfForkOpensItsOwn) {
    ASSERT_TRUE(opens_and_reads());
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(opens_and_reads() && opens_and_reads() ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(opens_and_reads());
}

}  // namespace
}  // namespace hanare::sys
