// SPDX-License-Identifier: Apache-2.0
//
// Memory for code that is made at run time, near code that exists, and changing the latter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.hpp"

namespace hanare::sys {

size_t round_up_to_page(size_t bytes) noexcept;

// Where the kernel has mapped the code that it gives to every process; 0 if nowhere.
uintptr_t vdso_address() noexcept;

// A private mapping, readable and writable, of whole pages that code anywhere in [begin, end) can
// jump to and address with 32 bits.  NO_MEMORY if there is no room so near.
Result<uint8_t*> map_near(const uint8_t* begin, const uint8_t* end, size_t bytes);
void unmap_code(uint8_t* memory, size_t bytes) noexcept;

// These pages, and what else lies in them, are writable as well as executable from now on.  False
// where the system does not allow that.
bool make_code_writable(uint8_t* memory, size_t bytes) noexcept;

// The pages are readable and executable from now on, not writable.  NOT_SUPPORTED where the system
// does not allow memory to become executable that was writable (SELinux).
Result<void> make_executable(uint8_t* memory, size_t bytes) noexcept;

// Whole pages are readable and executable from now on, and writable or not.  False where the system
// refuses.  Without libc: for code that runs in a thread of another one.
bool protect_code(const uint8_t* memory, size_t bytes, bool is_writable) noexcept;

// While alive, the pages around [begin, end) are writable as well as executable; then readable and
// executable.  `allowed()` is false where the system refuses that.
class WritableCode {
public:
    WritableCode(const uint8_t* begin, const uint8_t* end) noexcept;
    ~WritableCode();
    WritableCode(const WritableCode&) = delete;
    WritableCode& operator=(const WritableCode&) = delete;

    bool allowed() const noexcept { return errno_value_ == 0; }
    int errno_value() const noexcept { return errno_value_; }

private:
    uint8_t* begin_;
    size_t bytes_;
    int errno_value_;
};

// The content of a file that is open for reading, as it is while nobody truncates the file.  Empty
// where it cannot be mapped.
class FileBytes {
public:
    explicit FileBytes(int descriptor) noexcept;
    ~FileBytes();
    FileBytes(const FileBytes&) = delete;
    FileBytes& operator=(const FileBytes&) = delete;

    std::span<const uint8_t> bytes() const noexcept { return bytes_; }

private:
    std::span<const uint8_t> bytes_;
};

}  // namespace hanare::sys
