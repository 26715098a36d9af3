// SPDX-License-Identifier: Apache-2.0
//
// What the library allocates comes from memory of its own (sys/private_memory.hpp).  Hidden: the
// program's operators are its own.
#include <cstdlib>
#include <new>

#include "sys/private_memory.hpp"

namespace {

void* allocate_or_throw(std::size_t bytes, std::size_t alignment = 16) {
    if (void* memory = hanare::sys::allocate_private(bytes, alignment)) return memory;
    throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return hanare::sys::allocate_private(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
    return hanare::sys::allocate_private(bytes);
}
void operator delete(void* memory) noexcept { hanare::sys::release_private(memory); }
void operator delete[](void* memory) noexcept { hanare::sys::release_private(memory); }
void operator delete(void* memory, std::size_t) noexcept { hanare::sys::release_private(memory); }
void operator delete[](void* memory, std::size_t) noexcept { hanare::sys::release_private(memory); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
    return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory, std::align_val_t) noexcept {
    hanare::sys::release_private(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
    hanare::sys::release_private(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    hanare::sys::release_private(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
    hanare::sys::release_private(memory);
}
