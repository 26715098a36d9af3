// SPDX-License-Identifier: Apache-2.0
//
// A user's C++20 program: every class of hanare.hpp once, on 64 MiB of far memory through 16 MiB of
// local memory.
#include <cstdint>
#include <cstdio>
#include <hanare/hanare.hpp>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>
#include <unistd.h>
#include <utility>

static_assert(!std::is_copy_constructible_v<hanare::Pool>);
static_assert(!std::is_copy_constructible_v<hanare::Array<int>>);
static_assert(!std::is_copy_constructible_v<hanare::Pin>);
static_assert(std::is_nothrow_move_constructible_v<hanare::Array<int>>);

namespace {

int failures = 0;

void expect(bool condition, const char* what) {
    if (condition) return;
    std::fprintf(stderr, "user.cpp: %s: wrong\n", what);
    ++failures;
}

template <typename Action>
hanare_status status_of(Action action) {
    try {
        action();
    } catch (const hanare::Error& error) {
        std::printf("user.cpp: as expected: %s\n", error.what());
        return error.status();
    }
    return HANARE_STATUS_OK;
}

void write_and_sum(const hanare::Pool& pool) {
    auto numbers = pool.array<uint64_t>(8u << 20);
    numbers.advise(hanare::Advice::kSequential);
    std::iota(numbers.begin(), numbers.end(), uint64_t{1});
    const uint64_t count = numbers.size();
    const std::span<const uint64_t> view = numbers;
    expect(std::accumulate(view.begin(), view.end(), uint64_t{0}) == count * (count + 1) / 2,
           "the sum");

    auto moved = std::move(numbers);
    moved[count - 1] = 0;
    moved.prefetch(0, 1000);
    moved.flush();
    expect(moved[0] == 1 && moved[count - 1] == 0, "the elements after a move");
    expect(moved.region().stats().virtual_bytes >= count * sizeof(uint64_t), "the size");
    expect(pool.stats().written_bytes > 0, "the write-back");
}

// What is pinned and what is allocated outlives the handles it came from.
void destroy_in_any_order() {
    std::optional<hanare::Pool> pool(
        std::in_place, hanare::PoolOptions{.local_bytes = 16u << 20, .store = "file:/var/tmp"});
    std::optional<hanare::Array<char>> letters(pool->array<char>(1u << 20));
    (*letters)[0] = 'a';
    hanare::Pin pin = letters->pin(0, 1, hanare::Access::kWrite);
    pool.reset();
    letters.reset();
    expect(*static_cast<const char*>(pin.data()) == 'a', "a pinned element without its array");
}

// In one process for once: the same memory twice.
void view_a_region() {
    std::optional<hanare::Pool> pool;
    const hanare_status opened = status_of([&] {
        pool.emplace(hanare::PoolOptions{
            .local_bytes = 16u << 20, .store = "file:/var/tmp", .engine = "shared"});
    });
    if (opened == HANARE_STATUS_NOT_SUPPORTED) return;
    expect(opened == HANARE_STATUS_OK, "a pool with the engine shared");
    auto letters = pool->array<char>(1u << 20);
    const hanare::Pin pin = letters.pin(0, 1, hanare::Access::kWrite);
    letters[0] = 'b';
    const int descriptor = letters.region().export_descriptor();
    hanare::View first(descriptor);
    hanare::View view(descriptor);
    close(descriptor);
    view = std::move(first);
    expect(view.bytes() >= 1u << 20, "the size of a view");
    expect(*static_cast<const char*>(view.data()) == 'b', "an element seen through a view");
    letters[0] = 'c';
    expect(*static_cast<const volatile char*>(view.data()) == 'c', "the same after a write");
    expect(status_of([] { const hanare::View none(0); }) == HANARE_STATUS_INVALID_ARGUMENT,
           "a view of something else");
}

}  // namespace

int main() {
    try {
        const hanare::Pool pool({.local_bytes = 16u << 20, .store = "file:/var/tmp"});
        write_and_sum(pool);
        destroy_in_any_order();
        view_a_region();
        expect(status_of([&] { (void)pool.array<int>(0); }) == HANARE_STATUS_INVALID_ARGUMENT,
               "an empty array");
        expect(status_of([&] { (void)pool.array<int>(SIZE_MAX / 2); }) ==
                   HANARE_STATUS_INVALID_ARGUMENT,
               "an absurd array");
        expect(status_of([] { const hanare::Pool none({.store = "file:/does/not/exist"}); }) ==
                   HANARE_STATUS_STORE_UNAVAILABLE,
               "a store that does not exist");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "user.cpp: %s\n", error.what());
        return 1;
    }
    return failures == 0 ? 0 : 1;
}
