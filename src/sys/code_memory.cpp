// SPDX-License-Identifier: Apache-2.0
#include "sys/code_memory.hpp"

#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "sys/memory.hpp"
#include "sys/raw_call.hpp"

namespace hanare::sys {

namespace {

size_t page_bytes() noexcept {
    static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

// That [begin, end) lies in.
struct Pages {
    Pages(const uint8_t* first, const uint8_t* end) noexcept {
        const uintptr_t low = reinterpret_cast<uintptr_t>(first) & ~(page_bytes() - 1);
        begin = reinterpret_cast<uint8_t*>(low);
        bytes = round_up_to_page(reinterpret_cast<uintptr_t>(end) - low);
    }
    uint8_t* begin;
    size_t bytes;
};

uint8_t* map_at(uintptr_t address, size_t bytes) noexcept {
    void* memory = raw::mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

}  // namespace

size_t round_up_to_page(size_t bytes) noexcept {
    return (bytes + page_bytes() - 1) & ~(page_bytes() - 1);
}

uintptr_t vdso_address() noexcept { return ::getauxval(AT_SYSINFO_EHDR); }

Result<uint8_t*> map_near(const uint8_t* begin, const uint8_t* end, size_t bytes) {
    constexpr uintptr_t kReach = (uintptr_t{1} << 31) - (uintptr_t{1} << 20);
    const uintptr_t low = reinterpret_cast<uintptr_t>(begin) & ~(page_bytes() - 1);
    const uintptr_t high = round_up_to_page(reinterpret_cast<uintptr_t>(end));
    // Both ways from the code, at distances that grow by a quarter: libraries lie in clusters.
    for (uintptr_t distance = 0; distance + bytes + (high - low) < kReach;
         distance = round_up_to_page(distance + distance / 4 + bytes)) {
        if (low > distance + bytes) {
            if (uint8_t* memory = map_at(low - distance - bytes, bytes)) return memory;
        }
        if (uint8_t* memory = map_at(high + distance, bytes)) return memory;
    }
    return fail(HANARE_STATUS_NO_MEMORY, "no room for %zu bytes of code near %p", bytes,
                static_cast<const void*>(begin));
}

void unmap_code(uint8_t* memory, size_t bytes) noexcept { raw::munmap(memory, bytes); }

bool make_code_writable(uint8_t* memory, size_t bytes) noexcept {
    const Pages pages(memory, memory + bytes);
    return protect(pages.begin, pages.bytes, PROT_READ | PROT_WRITE | PROT_EXEC) == 0;
}

bool protect_code(const uint8_t* memory, size_t bytes, bool is_writable) noexcept {
    const uint64_t protection = PROT_READ | PROT_EXEC | (is_writable ? PROT_WRITE : 0);
    return raw_call3(SYS_mprotect, reinterpret_cast<uint64_t>(memory), bytes, protection) == 0;
}

Result<void> make_executable(uint8_t* memory, size_t bytes) noexcept {
    const Pages pages(memory, memory + bytes);
    const int error = protect(pages.begin, pages.bytes, PROT_READ | PROT_EXEC);
    if (error != 0) return fail_errno(HANARE_STATUS_NOT_SUPPORTED, error, "code made at run time");
    return {};
}

WritableCode::WritableCode(const uint8_t* begin, const uint8_t* end) noexcept {
    const Pages pages(begin, end);
    begin_ = pages.begin;
    bytes_ = pages.bytes;
    errno_value_ = protect(begin_, bytes_, PROT_READ | PROT_WRITE | PROT_EXEC);
}

WritableCode::~WritableCode() {
    if (allowed()) protect(begin_, bytes_, PROT_READ | PROT_EXEC);
}

FileBytes::FileBytes(int descriptor) noexcept {
    struct stat status;
    if (::fstat(descriptor, &status) != 0 || status.st_size <= 0) return;
    const auto bytes = static_cast<size_t>(status.st_size);
    void* memory = raw::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (memory != MAP_FAILED) bytes_ = {static_cast<const uint8_t*>(memory), bytes};
}

FileBytes::~FileBytes() {
    if (!bytes_.empty()) raw::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

}  // namespace hanare::sys
