// SPDX-License-Identifier: Apache-2.0
//
// Answer: text, JSON above all, put together in memory of the caller's.  Nothing allocates; what
// does not fit is left out, and is_complete() tells.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hanare::control {

class Answer {
public:
    Answer(char* memory, size_t bytes) noexcept : memory_(memory), bytes_(bytes) {}

    Answer& text(std::string_view value) noexcept {
        for (const char c : value) put(c);
        return *this;
    }
    Answer& decimal(uint64_t value) noexcept {
        char digits[20];
        size_t count = 0;
        do {
            digits[count++] = static_cast<char>('0' + value % 10);
            value /= 10;
        } while (value != 0);
        while (count > 0) put(digits[--count]);
        return *this;
    }
    // As JSON has strings.  What is no UTF-8 becomes question marks.
    Answer& quoted(std::string_view value) noexcept;

    // JSON.  A separator comes by itself, from what is in front.
    Answer& open(char bracket) noexcept {
        separate();
        put(bracket);
        return *this;
    }
    Answer& close(char bracket) noexcept {
        put(bracket);
        return *this;
    }
    Answer& name(std::string_view value) noexcept {
        string(value);
        put(':');
        return *this;
    }
    Answer& number(uint64_t value) noexcept {
        separate();
        return decimal(value);
    }
    Answer& string(std::string_view value) noexcept {
        separate();
        return quoted(value);
    }
    Answer& member(std::string_view of, uint64_t value) noexcept { return name(of).number(value); }
    Answer& member(std::string_view of, std::string_view value) noexcept {
        return name(of).string(value);
    }

    bool is_complete() const noexcept { return !is_cut_; }
    std::string_view view() const noexcept { return {memory_, used_}; }
    // Forgets what was put in.
    void clear() noexcept {
        used_ = 0;
        is_cut_ = false;
    }

private:
    void put(char c) noexcept {
        if (used_ < bytes_) {
            memory_[used_++] = c;
        } else {
            is_cut_ = true;
        }
    }
    void separate() noexcept {
        if (used_ == 0) return;
        const char last = memory_[used_ - 1];
        if (last != '{' && last != '[' && last != ':') put(',');
    }

    char* const memory_;
    const size_t bytes_;
    size_t used_ = 0;
    bool is_cut_ = false;
};

}  // namespace hanare::control
