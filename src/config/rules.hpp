// SPDX-License-Identifier: Apache-2.0
//
// What is allowed as the value of an option: one type per rule, each with
//   Result<T> parse(what, text)   `what` names option and source in the error text
//   std::string allowed()         completes "allowed is ..."
//   std::string format(value)     a value as a user would write it
// Used by options.def, and by commands for flags of their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"

namespace hanare::config {

// "WHAT: 'TEXT' WHY; allowed is ALLOWED".
[[nodiscard]] std::unexpected<Error> bad_value(std::string_view what, std::string_view text,
                                               std::string_view why, std::string_view allowed);

// "256K", "3G", "4097": exact, and accepted by parse_size.
std::string exact_size(uint64_t bytes);

// 0 stands for auto.
struct SizeOrAuto {
    Result<uint64_t> parse(std::string_view what, std::string_view text) const;
    std::string allowed() const { return "auto or a positive size such as 512M, 2G or 2GiB"; }
    std::string format(uint64_t value) const { return value == 0 ? "auto" : exact_size(value); }
};

class PowerOfTwo {
public:
    constexpr PowerOfTwo(uint64_t min, uint64_t max) : min_(min), max_(max) {}
    // `and_also` are other words that are allowed.
    Result<uint64_t> parse(std::string_view what, std::string_view text,
                           std::string_view and_also = "") const;
    std::string allowed() const;
    std::string format(uint64_t value) const { return exact_size(value); }

private:
    uint64_t min_;
    uint64_t max_;
};

class Range {
public:
    constexpr Range(uint32_t min, uint32_t max) : min_(min), max_(max) {}
    Result<uint32_t> parse(std::string_view what, std::string_view text) const;
    std::string allowed() const;
    std::string format(uint32_t value) const { return std::to_string(value); }

private:
    uint32_t min_;
    uint32_t max_;
};

// 0 stands for auto.
class PowerOfTwoOrAuto {
public:
    constexpr PowerOfTwoOrAuto(uint64_t min, uint64_t max) : size_(min, max) {}
    Result<uint64_t> parse(std::string_view what, std::string_view text) const;
    std::string allowed() const { return std::string(kAutoOr) + size_.allowed(); }
    std::string format(uint64_t value) const { return value == 0 ? "auto" : size_.format(value); }

private:
    static constexpr std::string_view kAutoOr = "auto or ";
    PowerOfTwo size_;
};

struct Boolean {
    Result<bool> parse(std::string_view what, std::string_view text) const;
    std::string allowed() const { return "true, false, yes, no, on, off, 1 or 0"; }
    std::string format(bool value) const { return value ? "true" : "false"; }
};

// A store SPEC (store_spec.hpp); the empty string stands for auto.
struct StoreOrAuto {
    Result<std::string> parse(std::string_view what, std::string_view text) const;
    std::string allowed() const;
    std::string format(const std::string& value) const { return value.empty() ? "auto" : value; }
};

// A path; the empty string stands for none.
struct FileOrNone {
    Result<std::string> parse(std::string_view what, std::string_view text) const;
    std::string allowed() const { return "none or the name of a file"; }
    std::string format(const std::string& value) const { return value.empty() ? "none" : value; }
};

// One of the names in "a|b|c"; returns its position.
Result<size_t> parse_name(std::string_view what, std::string_view text, std::string_view names);
std::string_view name_at(std::string_view names, size_t position);
// "a, b or c".
std::string enumerate(std::string_view names);

// The enumerators of E are numbered in the order of the names.
template <typename E>
class OneOf {
public:
    explicit constexpr OneOf(std::string_view names) : names_(names) {}
    Result<E> parse(std::string_view what, std::string_view text) const {
        HANARE_TRY_ASSIGN(const size_t position, parse_name(what, text, names_));
        return static_cast<E>(position);
    }
    std::string allowed() const { return enumerate(names_); }
    std::string format(E value) const {
        return std::string(name_at(names_, static_cast<size_t>(value)));
    }

private:
    std::string_view names_;
};

}  // namespace hanare::config
