// SPDX-License-Identifier: Apache-2.0
#include "base/result.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace hanare {
namespace {

static_assert(std::is_trivially_copyable_v<Error>);

Result<int> half(int value) {
    if (value % 2 != 0) return fail(HANARE_STATUS_INVALID_ARGUMENT, "%d is odd", value);
    return value / 2;
}

Result<int> quarter(int value) {
    HANARE_TRY_ASSIGN(const int once, half(value));
    HANARE_TRY_ASSIGN(const int twice, half(once));
    return twice;
}

Result<void> check_quarter(int value) {
    HANARE_TRY(quarter(value));
    return {};
}

Result<std::unique_ptr<int>> owned() { return std::make_unique<int>(3); }

Result<int> moved_out() {
    HANARE_TRY_ASSIGN(const std::unique_ptr<int> value, owned());
    return *value;
}

TEST(Result, CarriesValueOrError) {
    EXPECT_EQ(quarter(12).value(), 3);
    const Result<int> bad = quarter(6);
    ASSERT_FALSE(bad.has_value());
    EXPECT_EQ(bad.error().status, HANARE_STATUS_INVALID_ARGUMENT);
    EXPECT_EQ(bad.error().os_errno, 0);
    EXPECT_STREQ(bad.error().text, "3 is odd");
    EXPECT_TRUE(check_quarter(8).has_value());
    EXPECT_STREQ(check_quarter(7).error().text, "7 is odd");
    EXPECT_EQ(moved_out().value(), 3);
}

TEST(Result, SystemErrorsNameTheCause) {
    const Result<int> bad = fail_errno(HANARE_STATUS_SYSTEM, ENOSPC, "writing %s", "x");
    EXPECT_EQ(bad.error().os_errno, ENOSPC);
    EXPECT_EQ(std::string(bad.error().text), std::string("writing x: ") + std::strerror(ENOSPC));
}

TEST(Result, LongTextsAreCutAndTerminated) {
    const std::string text(3 * Error::kTextBytes, 'x');
    const Result<int> bad = fail(HANARE_STATUS_INTERNAL, "%s", text.c_str());
    EXPECT_EQ(std::strlen(bad.error().text), Error::kTextBytes - 1);
    const Result<int> system = fail_errno(HANARE_STATUS_INTERNAL, EIO, "%s", text.c_str());
    EXPECT_EQ(std::strlen(system.error().text), Error::kTextBytes - 1);
}

}  // namespace
}  // namespace hanare
