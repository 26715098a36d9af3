/* SPDX-License-Identifier: Apache-2.0
 *
 * C++20 over hanare/dsm.h: memory that the tasks of a job have in common, with objects that give
 * back what they have.  Header only.
 *
 *     hanare::dsm::Runtime dsm;                          // all tasks
 *     hanare::dsm::Array<double> grid(dsm, n * n);       // all tasks, the same array
 *     hanare::dsm::Lock lock(dsm, 1);
 *     dsm.barrier();
 *     {
 *         const std::scoped_lock guard(lock);
 *         grid[0] += part;
 *     }
 *     dsm.barrier();
 *
 * What dsm.h says of memory and order holds here.  What is collective is called by one thread of
 * each task, in the same order.
 *
 * Ownership: a Runtime and an Array are movable, not copyable; all else are values that refer to a
 * Runtime, which outlives them, in the place where it is.  A moved-from object may only be assigned
 * to or destroyed.
 *
 * Errors: a call that fails throws hanare::Error.  Destructors do not throw.  A lock's unlock()
 * throws for misuse only, so that guards may call it; that a task is no more shows in the next
 * call.
 */
#ifndef HANARE_DSM_HPP
#define HANARE_DSM_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "hanare/dsm.h"
#include "hanare/hanare.hpp"

namespace hanare {
inline namespace cpp {
namespace dsm {

/* What may lie in shared memory: it begins as zeros, and moves between machines as bytes. */
template <typename T>
concept Shareable = std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>;

/* See hanare_dsm_options; zero means "default". */
struct Options {
    std::uint64_t memory_bytes = 0;
    int timeout_ms = 0;
    bool shares_machine = true; /* false: HANARE_DSM_NO_SHARED_MEMORY */
};

/* This task's part in the shared memory of its job; one in a process. */
class [[nodiscard]] Runtime {
public:
    explicit Runtime(const Options& options = {}) {
        hanare_dsm_options c_options = {};
        c_options.struct_size = sizeof c_options;
        c_options.memory_bytes = options.memory_bytes;
        c_options.timeout_ms = options.timeout_ms;
        c_options.flags = options.shares_machine ? 0 : HANARE_DSM_NO_SHARED_MEMORY;
        hanare_dsm* started = nullptr;
        check(hanare_dsm_start(&c_options, &started));
        dsm_.reset(started);
    }
    /* Collective, and so is the destructor of one that was not finished. */
    void finish() { check(hanare_dsm_finish(dsm_.release())); }

    std::uint32_t rank() const {
        std::uint32_t rank = 0;
        check(hanare_dsm_rank(get(), &rank));
        return rank;
    }
    std::uint32_t size() const {
        std::uint32_t size = 0;
        check(hanare_dsm_size(get(), &size));
        return size;
    }

    /* Zeros, of which only this task knows. */
    template <Shareable T>
    std::span<T> allocate(std::size_t count) {
        if (count > SIZE_MAX / sizeof(T)) {
            throw Error(HANARE_STATUS_NO_MEMORY, "more elements than there are addresses");
        }
        void* address = nullptr;
        check(hanare_dsm_allocate(get(), count * sizeof(T), &address));
        return {static_cast<T*>(address), count};
    }
    /* What any task has allocated. */
    template <Shareable T>
    void free(std::span<T> memory) {
        check(hanare_dsm_free(get(), memory.data()));
    }
    /* Collective: what task `root` allocates, in all tasks. */
    template <Shareable T>
    std::span<T> share(std::size_t count, std::uint32_t root = 0) {
        static void* address; /* at the same place of the program in all tasks */
        if (rank() == root) {
            address = allocate<T>(count).data();
            distribute(address);
        }
        barrier(kShareBarrier);
        const std::span<T> shared(static_cast<T*>(address), count);
        /* Nobody tells another address before all have seen this one. */
        barrier(kShareBarrier);
        return shared;
    }
    /* The variable's value, to the same variable of all other tasks, after the next barrier. */
    template <Shareable T>
    void distribute(const T& variable) {
        check(hanare_dsm_distribute(get(), std::addressof(variable), sizeof variable));
    }

    /* Collective. */
    void barrier(std::uint32_t id = 0) { check(hanare_dsm_barrier(get(), id)); }
    /* Of these tasks. */
    void barrier(std::uint32_t id, std::span<const std::uint32_t> tasks) {
        check(hanare_dsm_barrier_group(get(), id, tasks.data(), tasks.size()));
    }

    hanare_dsm_counters count() const {
        hanare_dsm_counters counters = {};
        counters.struct_size = sizeof counters;
        check(hanare_dsm_count(get(), &counters));
        return counters;
    }

    hanare_dsm* get() const noexcept { return dsm_.get(); }

private:
    static constexpr std::uint32_t kShareBarrier = UINT32_MAX - 2;

    struct Finish {
        void operator()(hanare_dsm* dsm) const noexcept { (void)hanare_dsm_finish(dsm); }
    };
    std::unique_ptr<hanare_dsm, Finish> dsm_;
};

/* What task 0 allocates and, when its own Array goes, frees: the others do not use it any more by
 * then.  Made by all tasks, in the same order. */
template <Shareable T>
class [[nodiscard]] Array {
public:
    Array(Runtime& runtime, std::size_t count)
        : runtime_(runtime.rank() == 0 ? runtime.get() : nullptr),
          elements_(runtime.share<T>(count)) {}
    Array(Array&& other) noexcept
        : runtime_(std::exchange(other.runtime_, nullptr)),
          elements_(std::exchange(other.elements_, {})) {}
    Array& operator=(Array&& other) noexcept {
        if (this != &other) {
            release();
            runtime_ = std::exchange(other.runtime_, nullptr);
            elements_ = std::exchange(other.elements_, {});
        }
        return *this;
    }
    ~Array() { release(); }

    T* data() const noexcept { return elements_.data(); }
    std::size_t size() const noexcept { return elements_.size(); }
    T& operator[](std::size_t index) const noexcept { return elements_[index]; }
    T* begin() const noexcept { return data(); }
    T* end() const noexcept { return data() + size(); }
    operator std::span<T>() const noexcept { return elements_; }

private:
    void release() noexcept {
        hanare_dsm* running = nullptr;
        /* The runtime may have ended, and the memory with it. */
        if (runtime_ == nullptr || hanare_dsm_running(&running) != HANARE_STATUS_OK) return;
        if (running == runtime_) (void)hanare_dsm_free(runtime_, elements_.data());
    }

    hanare_dsm* runtime_; /* nullptr: not to be freed here */
    std::span<T> elements_;
};

/* A number below HANARE_DSM_LOCKS.  For std::scoped_lock, std::lock_guard, std::unique_lock. */
class Lock {
public:
    Lock(Runtime& runtime, std::uint32_t number) noexcept : runtime_(&runtime), number_(number) {}

    void lock() { check(hanare_dsm_lock(runtime_->get(), number_)); }
    void unlock() {
        const hanare_status status = hanare_dsm_unlock(runtime_->get(), number_);
        if (status == HANARE_STATUS_INVALID_ARGUMENT) check(status);
    }

    std::uint32_t number() const noexcept { return number_; }
    Runtime& runtime() const noexcept { return *runtime_; }

private:
    Runtime* runtime_;
    std::uint32_t number_;
};

/* A number below HANARE_DSM_CONDITIONS, by one lock, which the caller has. */
class ConditionVariable {
public:
    ConditionVariable(Lock& lock, std::uint32_t number) noexcept : lock_(&lock), number_(number) {}

    /* `held` owns the lock of this, and does so again afterwards, unless a task is no more. */
    void wait(std::unique_lock<Lock>& held) {
        const hanare_status status =
            hanare_dsm_wait(lock_->runtime().get(), lock_->number(), number_);
        if (status == HANARE_STATUS_PEER_LOST) held.release();
        check(status);
    }
    template <typename Predicate>
    void wait(std::unique_lock<Lock>& held, Predicate holds) {
        while (!holds()) wait(held);
    }
    void notify_one() {
        check(hanare_dsm_signal(lock_->runtime().get(), lock_->number(), number_));
    }
    void notify_all() {
        check(hanare_dsm_broadcast(lock_->runtime().get(), lock_->number(), number_));
    }

private:
    Lock* lock_;
    std::uint32_t number_;
};

/* A number below HANARE_DSM_SEMAPHORES, which one task makes. */
class Semaphore {
public:
    Semaphore(Runtime& runtime, std::uint32_t number) noexcept
        : runtime_(&runtime), number_(number) {}

    void make(std::uint32_t count) {
        check(hanare_dsm_semaphore_make(runtime_->get(), number_, count));
    }
    void end() { check(hanare_dsm_semaphore_end(runtime_->get(), number_)); }
    void acquire() { check(hanare_dsm_semaphore_wait(runtime_->get(), number_)); }
    void release() { check(hanare_dsm_semaphore_post(runtime_->get(), number_)); }

private:
    Runtime* runtime_;
    std::uint32_t number_;
};

/* Of all tasks, or of some, the same in all of them. */
class Barrier {
public:
    explicit Barrier(Runtime& runtime, std::uint32_t id = 0) noexcept
        : runtime_(&runtime), id_(id) {}
    Barrier(Runtime& runtime, std::uint32_t id, std::vector<std::uint32_t> tasks)
        : runtime_(&runtime), id_(id), tasks_(std::move(tasks)), has_all_(false) {}

    void arrive_and_wait() {
        if (has_all_) {
            runtime_->barrier(id_);
        } else {
            runtime_->barrier(id_, tasks_);
        }
    }

private:
    Runtime* runtime_;
    std::uint32_t id_;
    std::vector<std::uint32_t> tasks_;
    bool has_all_ = true;
};

}  // namespace dsm
}  // namespace cpp
}  // namespace hanare

#endif
