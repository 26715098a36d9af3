// SPDX-License-Identifier: Apache-2.0
//
// Every class of hanare/dsm.hpp once; below `hanare launch -n N`, two tasks or more.  Prints
// "right" in each.
#include <cstdint>
#include <cstdio>
#include <exception>
#include <hanare/dsm.hpp>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace dsm = hanare::dsm;

static_assert(!std::is_copy_constructible_v<dsm::Runtime>);
static_assert(std::is_nothrow_move_constructible_v<dsm::Runtime>);
static_assert(!std::is_copy_constructible_v<dsm::Array<int>>);
static_assert(std::is_nothrow_move_constructible_v<dsm::Array<int>>);
static_assert(dsm::Shareable<double> && !dsm::Shareable<std::string>);

namespace {

struct Failure {
    const char* what;
};

void expect(bool condition, const char* what) {
    if (!condition) throw Failure{what};
}

template <typename Action>
hanare_status status_of(Action action) {
    try {
        action();
    } catch (const hanare::Error& error) {
        return error.status();
    }
    return HANARE_STATUS_OK;
}

void use_arrays(dsm::Runtime& runtime) {
    dsm::Array<uint64_t> numbers(runtime, 3000);
    dsm::Array<uint64_t> moved = std::move(numbers);
    for (size_t i = runtime.rank(); i < moved.size(); i += runtime.size()) moved[i] = i;
    runtime.barrier();
    expect(std::accumulate(moved.begin(), moved.end(), uint64_t{0}) == 2999 * 1500, "the sum");
    const auto of_last = runtime.share<int>(10, runtime.size() - 1);
    if (runtime.rank() == 0) of_last[9] = 5;
    runtime.barrier();
    expect(of_last.size() == 10 && of_last[9] == 5, "what the last task has allocated");
    runtime.barrier();
    if (runtime.rank() == 0) runtime.free(of_last);
    expect(status_of([&] { runtime.allocate<double>(SIZE_MAX / 8); }) == HANARE_STATUS_NO_MEMORY,
           "more than there is");
    expect(status_of([&] { runtime.allocate<double>(SIZE_MAX / 4); }) == HANARE_STATUS_NO_MEMORY,
           "more than there are addresses");
    runtime.barrier();
}

void use_locks(dsm::Runtime& runtime) {
    dsm::Array<uint64_t> count(runtime, 1);
    dsm::Lock lock(runtime, 3);
    for (int i = 0; i < 100; ++i) {
        const std::scoped_lock guard(lock);
        ++count[0];
    }
    runtime.barrier();
    expect(count[0] == 100 * uint64_t{runtime.size()}, "the count");
    expect(status_of([&] { lock.unlock(); }) == HANARE_STATUS_INVALID_ARGUMENT, "unlock");
    runtime.barrier();
}

// Task 0 waits for all others, and they for its answer.
void use_conditions(dsm::Runtime& runtime) {
    dsm::Array<uint64_t> come(runtime, 2);
    dsm::Lock lock(runtime, 4);
    dsm::ConditionVariable has_come(lock, 1);
    dsm::ConditionVariable is_answered(lock, 2);
    {
        std::unique_lock held(lock);
        if (runtime.rank() == 0) {
            has_come.wait(held, [&] { return come[0] + 1 == runtime.size(); });
            come[1] = 7;
            is_answered.notify_all();
        } else {
            ++come[0];
            has_come.notify_one();
            is_answered.wait(held, [&] { return come[1] != 0; });
        }
        expect(held.owns_lock() && come[1] == 7, "the answer");
    }
    expect(status_of([&] { has_come.notify_one(); }) == HANARE_STATUS_INVALID_ARGUMENT, "notify");
    runtime.barrier();
}

void use_semaphores(dsm::Runtime& runtime) {
    dsm::Array<uint64_t> word(runtime, 1);
    dsm::Semaphore semaphore(runtime, 5);
    if (runtime.rank() == 0) semaphore.make(0);
    dsm::Barrier all(runtime, 8);
    all.arrive_and_wait();
    if (runtime.rank() == 0) word[0] = 9, semaphore.release();
    if (runtime.rank() == 1) {
        semaphore.acquire();
        expect(word[0] == 9, "what was written before");
        semaphore.end();
    }
    dsm::Barrier two(runtime, 9, std::vector<uint32_t>{0, 1});
    if (runtime.rank() < 2) two.arrive_and_wait();
    if (runtime.rank() == 0) {
        expect(status_of([&] { semaphore.release(); }) == HANARE_STATUS_NOT_FOUND, "release");
    }
    all.arrive_and_wait();
}

}  // namespace

int main() {
    try {
        std::optional<dsm::Runtime> first(std::in_place);
        dsm::Runtime runtime = std::move(*first);
        first.reset();
        use_arrays(runtime);
        use_locks(runtime);
        use_conditions(runtime);
        use_semaphores(runtime);
        dsm::Array<int> outlives(runtime, 1);
        expect(runtime.count().barriers > 0, "the counters");
        runtime.finish();
        std::puts("right");
        return 0;
    } catch (const Failure& failure) {
        std::fprintf(stderr, "%s: wrong\n", failure.what);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
    }
    return 1;
}
