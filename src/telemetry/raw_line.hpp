// SPDX-License-Identifier: Apache-2.0
//
// RawLine: one line of text for places where nothing else is allowed, a fault handler above all.
// Fixed buffer, no allocation, no locks, no locale, async-signal-safe; errno is kept.  What does
// not fit is cut off and the line then ends in "...".
//
//   RawLine line;
//   line.text("hanare: cannot read block ").decimal(block).text(" at ").hex(address);
//   line.write_stderr();
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unistd.h>

#include "sys/raw_write.hpp"

namespace hanare::telemetry {

class RawLine {
public:
    static constexpr size_t kTextBytes = 508;

    RawLine& text(const char* text) noexcept {
        if (text == nullptr) text = "(null)";
        while (*text != '\0') put(*text++);
        return *this;
    }
    RawLine& text(std::string_view text) noexcept {
        for (const char c : text) put(c);
        return *this;
    }

    RawLine& decimal(uint64_t value) noexcept { return digits(value, 10); }
    RawLine& signed_decimal(int64_t value) noexcept {
        if (value < 0) put('-');
        const auto magnitude = static_cast<uint64_t>(value);
        return digits(value < 0 ? 0 - magnitude : magnitude, 10);
    }
    // With "0x" in front.
    RawLine& hex(uint64_t value) noexcept {
        put('0');
        put('x');
        return digits(value, 16);
    }
    RawLine& hex(const void* address) noexcept { return hex(reinterpret_cast<uintptr_t>(address)); }

    std::string_view view() const noexcept { return {buffer_, used_}; }

    // Ends the line and writes it, in one write(2) unless the kernel splits it.  Once per line.
    void write_to(int descriptor) noexcept {
        const int saved_errno = errno;
        if (is_cut_) buffer_[used_ - 1] = buffer_[used_ - 2] = buffer_[used_ - 3] = '.';
        buffer_[used_++] = '\n';
        size_t done = 0;
        while (done < used_) {
            const long written = sys::raw_write(descriptor, buffer_ + done, used_ - done);
            if (written > 0) {
                done += static_cast<size_t>(written);
            } else if (written == 0 || errno != EINTR) {
                break;  // nobody is left to be told
            }
        }
        errno = saved_errno;
        used_ = 0;
        is_cut_ = false;
    }
    void write_stderr() noexcept { write_to(STDERR_FILENO); }

private:
    // A line stays one line, and cannot drive a terminal.
    void put(char c) noexcept {
        if (used_ == kTextBytes) {
            is_cut_ = true;
        } else {
            const auto byte = static_cast<unsigned char>(c);
            buffer_[used_++] = byte < 0x20 || byte == 0x7f ? ' ' : c;
        }
    }

    RawLine& digits(uint64_t value, unsigned base) noexcept {
        char reversed[20];
        size_t count = 0;
        do {
            reversed[count++] = "0123456789abcdef"[value % base];
            value /= base;
        } while (value != 0);
        while (count > 0) put(reversed[--count]);
        return *this;
    }

    char buffer_[kTextBytes + 1];
    size_t used_ = 0;
    bool is_cut_ = false;
};

}  // namespace hanare::telemetry
