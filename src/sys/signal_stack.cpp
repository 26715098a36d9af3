// SPDX-License-Identifier: Apache-2.0
#include "sys/signal_stack.hpp"

#include <algorithm>
#include <csignal>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sys/raw_call.hpp"

namespace hanare::sys {

namespace {
constexpr size_t kOsPageBytes = 4096;
constexpr size_t kOldKernelFrameBytes = 2048;  // MINSIGSTKSZ before it became a function
}  // namespace

size_t signal_stack_bytes(size_t handler_bytes) noexcept {
    const auto from_libc = static_cast<size_t>(std::max(0L, sysconf(_SC_MINSIGSTKSZ)));
    const size_t from_kernel = getauxval(AT_MINSIGSTKSZ);
    const size_t frame = std::max({from_libc, from_kernel, kOldKernelFrameBytes});
    return (frame + handler_bytes + kOsPageBytes - 1) / kOsPageBytes * kOsPageBytes;
}

void* map_signal_stack(size_t bytes) noexcept {
    void* mapping = raw::mmap(nullptr, kOsPageBytes + bytes, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED) return nullptr;
    void* stack = static_cast<std::byte*>(mapping) + kOsPageBytes;
    if (raw::mprotect(stack, bytes, PROT_READ | PROT_WRITE) != 0) {
        raw::munmap(mapping, kOsPageBytes + bytes);
        return nullptr;
    }
    return stack;
}

void unmap_signal_stack(void* stack, size_t bytes) noexcept {
    raw::munmap(static_cast<std::byte*>(stack) - kOsPageBytes, kOsPageBytes + bytes);
}

}  // namespace hanare::sys
