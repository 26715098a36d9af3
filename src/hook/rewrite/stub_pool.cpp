// SPDX-License-Identifier: Apache-2.0
#include "hook/rewrite/stub_pool.hpp"

#include <algorithm>
#include <array>

#include "hook/rewrite/stub.hpp"
#include "sys/code_memory.hpp"

#define HANARE_TEXT_(...) #__VA_ARGS__
#define HANARE_TEXT(...) HANARE_TEXT_(__VA_ARGS__)
#define HANARE_FRAME_RULE HANARE_TEXT(HANARE_STUB_FRAME_BYTES, HANARE_STUB_FRAME)
#define HANARE_RETURN_RULE HANARE_TEXT(HANARE_STUB_RETURN_BYTES, HANARE_STUB_RETURN)

namespace hanare::hook {

namespace {

// libc and ld.so take 570.
constexpr size_t kPoolStubs = 2048;
static_assert(kPoolStubs * kStubBytes == 131072);

}  // namespace

extern "C" uint8_t hanare_hook_stub_pool[];

// 0x0f: DW_CFA_def_cfa_expression; 0x16, 16: DW_CFA_val_expression for rip.
asm(R"(
    .pushsection .text
    .balign 4096
    .globl  hanare_hook_stub_pool
    .hidden hanare_hook_stub_pool
    .type   hanare_hook_stub_pool, @object
hanare_hook_stub_pool:
    .cfi_startproc
    .cfi_signal_frame
    .cfi_escape 0x0f, )" HANARE_FRAME_RULE R"(
    .cfi_escape 0x16, 16, )" HANARE_RETURN_RULE R"(
    .skip   131072, 0xcc
    .cfi_endproc
    .size   hanare_hook_stub_pool, . - hanare_hook_stub_pool
    .balign 4096, 0xcc
    .popsection
)");

namespace {

std::array<bool, kPoolStubs> taken = {};

size_t index_of(const uint8_t* stubs) noexcept {
    return static_cast<size_t>(stubs - hanare_hook_stub_pool) / kStubBytes;
}

bool is_in_reach(const uint8_t* begin, const uint8_t* end) noexcept {
    constexpr uint64_t kReach = (uint64_t{1} << 31) - (uint64_t{1} << 20);
    const auto low = std::min(reinterpret_cast<uint64_t>(begin),
                              reinterpret_cast<uint64_t>(hanare_hook_stub_pool));
    const auto high =
        std::max(reinterpret_cast<uint64_t>(end),
                 reinterpret_cast<uint64_t>(hanare_hook_stub_pool) + kPoolStubs * kStubBytes);
    return high - low < kReach;
}

}  // namespace

uint8_t* StubPool::take(const uint8_t* begin, const uint8_t* end, size_t count) noexcept {
    if (!is_in_reach(begin, end)) return nullptr;
    const auto first = std::search_n(taken.begin(), taken.end(), count, false);
    if (first == taken.end()) return nullptr;
    uint8_t* const stubs =
        hanare_hook_stub_pool + static_cast<size_t>(first - taken.begin()) * kStubBytes;
    if (!sys::make_code_writable(stubs, count * kStubBytes)) return nullptr;
    std::fill_n(first, count, true);
    return stubs;
}

bool StubPool::seal(uint8_t* stubs, size_t count) noexcept {
    return sys::make_executable(stubs, count * kStubBytes).has_value();
}

void StubPool::give_back(uint8_t* stubs, size_t count) noexcept {
    std::fill_n(taken.begin() + static_cast<ptrdiff_t>(index_of(stubs)), count, false);
}

}  // namespace hanare::hook
