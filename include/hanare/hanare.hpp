/* SPDX-License-Identifier: Apache-2.0
 *
 * C++20 over the C API: handles that release themselves, typed arrays, exceptions.  Header only.
 *
 *     hanare::Pool pool({.local_bytes = 512u << 20, .store = "file:/scratch"});
 *     auto a = pool.array<double>(n * n);           // larger than memory, zero-filled
 *     for (double& x : a) x = 1.0;
 *
 * Ownership: Pool, Region, Array, Pin and View are movable, not copyable.  Each keeps alive what it
 * needs: a region lives until its Region or Array and all its Pins are gone, a pool until its Pool
 * and all its regions are gone, so that the order of destruction does not matter.  A moved-from
 * object may only be assigned to or destroyed.
 *
 * Threads: as in the C API.  Any thread may use an object at any time, but it must not be moved or
 * destroyed meanwhile.
 *
 * Errors: a call that fails throws hanare::Error and changes nothing.  Destructors do not throw.
 */
#ifndef HANARE_HANARE_HPP
#define HANARE_HANARE_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "hanare/hanare.h"

namespace hanare {
/* Keeps these names apart from the library's own when both end up in one program. */
inline namespace cpp {

class Error : public std::runtime_error {
public:
    Error(hanare_status status, const std::string& text)
        : std::runtime_error(text), status_(status) {}

    hanare_status status() const noexcept { return status_; }

private:
    hanare_status status_;
};

/* Throws what the calling thread's last call left behind, unless it succeeded. */
inline void check(hanare_status status) {
    if (status == HANARE_STATUS_OK) return;
    std::string text(hanare_last_error(nullptr, 0), '\0');
    if (text.empty()) throw Error(status, hanare_status_text(status));
    /* The terminator goes where std::string keeps its own. */
    hanare_last_error(text.data(), text.size() + 1);
    throw Error(status, text);
}

enum class Access { kRead = HANARE_ACCESS_READ, kWrite = HANARE_ACCESS_WRITE };

enum class Advice {
    kNormal = HANARE_ADVICE_NORMAL,
    kSequential = HANARE_ADVICE_SEQUENTIAL,
    kRandom = HANARE_ADVICE_RANDOM,
    kWillNeed = HANARE_ADVICE_WILLNEED,
    kDontNeed = HANARE_ADVICE_DONTNEED,
    kDiscard = HANARE_ADVICE_DISCARD,
};

/* See hanare_pool_options; zero and empty mean "default". */
struct PoolOptions {
    std::uint64_t local_bytes = 0;
    std::string store = {};
    std::uint64_t block_bytes = 0;
    std::string engine = {};
    std::uint32_t read_ahead_blocks = 0;
    bool allow_tmpfs = false;
    std::string replacement = {};
    std::string background = {};
    bool syscalls = false;
};

namespace detail {

struct PoolHandle {
    hanare_pool* pool = nullptr;

    explicit PoolHandle(const PoolOptions& options) {
        hanare_pool_options c_options = {};
        c_options.struct_size = sizeof c_options;
        c_options.local_bytes = options.local_bytes;
        c_options.store = options.store.empty() ? nullptr : options.store.c_str();
        c_options.block_bytes = options.block_bytes;
        c_options.engine = options.engine.empty() ? nullptr : options.engine.c_str();
        c_options.read_ahead_blocks = options.read_ahead_blocks;
        c_options.flags = (options.allow_tmpfs ? HANARE_POOL_ALLOW_TMPFS : 0) |
                          (options.syscalls ? HANARE_POOL_SYSCALLS : 0);
        c_options.replacement = options.replacement.empty() ? nullptr : options.replacement.c_str();
        c_options.background = options.background.empty() ? nullptr : options.background.c_str();
        check(hanare_pool_open(&c_options, &pool));
    }
    PoolHandle(const PoolHandle&) = delete;
    PoolHandle& operator=(const PoolHandle&) = delete;
    ~PoolHandle() { (void)hanare_pool_close(pool); }
};

struct RegionHandle {
    std::shared_ptr<PoolHandle> owner;
    void* address = nullptr;
    std::size_t bytes = 0;

    RegionHandle(std::shared_ptr<PoolHandle> pool_handle, std::size_t size_bytes,
                 std::uint64_t block_bytes)
        : owner(std::move(pool_handle)), bytes(size_bytes) {
        hanare_alloc_options c_options = {};
        c_options.struct_size = sizeof c_options;
        c_options.block_bytes = block_bytes;
        check(hanare_alloc(owner->pool, bytes, &c_options, &address));
    }
    RegionHandle(const RegionHandle&) = delete;
    RegionHandle& operator=(const RegionHandle&) = delete;
    ~RegionHandle() { (void)hanare_free(owner->pool, address); }

    hanare_pool* pool() const noexcept { return owner->pool; }
};

inline hanare_counters stats_of(hanare_pool* pool, const void* address) {
    hanare_counters counters = {};
    counters.struct_size = sizeof counters;
    check(hanare_stats(pool, address, &counters));
    return counters;
}

}  // namespace detail

/* Keeps a range resident, so that it may be handed to system calls and devices. */
class [[nodiscard]] Pin {
public:
    Pin(Pin&&) noexcept = default;
    Pin& operator=(Pin&& other) noexcept {
        if (this != &other) {
            release();
            region_ = std::move(other.region_);
            address_ = other.address_;
            bytes_ = other.bytes_;
        }
        return *this;
    }
    ~Pin() { release(); }

    const void* data() const noexcept { return address_; }
    std::size_t bytes() const noexcept { return bytes_; }

private:
    friend class Region;

    Pin(std::shared_ptr<detail::RegionHandle> region, const void* address, std::size_t bytes,
        Access access)
        : address_(address), bytes_(bytes) {
        check(hanare_pin(region->pool(), address, bytes, static_cast<hanare_access>(access)));
        region_ = std::move(region);
    }

    void release() noexcept {
        if (region_) (void)hanare_unpin(region_->pool(), address_, bytes_);
        region_.reset();
    }

    std::shared_ptr<detail::RegionHandle> region_;
    const void* address_;
    std::size_t bytes_;
};

/* A contiguous range of far memory, zero-filled when new.  Offsets and sizes are in bytes; a range
 * that reaches beyond the region is refused by the library. */
class Region {
public:
    Region(Region&&) noexcept = default;
    Region& operator=(Region&&) noexcept = default;

    void* data() const noexcept { return handle_->address; }
    std::size_t bytes() const noexcept { return handle_->bytes; }

    Pin pin(std::size_t offset, std::size_t bytes, Access access) const {
        return Pin(handle_, at(offset), bytes, access);
    }
    void advise(Advice advice) const { this->advise(0, bytes(), advice); }
    void advise(std::size_t offset, std::size_t bytes, Advice advice) const {
        check(
            hanare_advise(handle_->pool(), at(offset), bytes, static_cast<hanare_advice>(advice)));
    }
    void prefetch(std::size_t offset, std::size_t bytes) const {
        check(hanare_prefetch(handle_->pool(), at(offset), bytes));
    }
    void flush() const { check(hanare_flush(handle_->pool(), data(), bytes())); }
    hanare_counters stats() const { return detail::stats_of(handle_->pool(), data()); }
    /* For a View in another process (engine "shared"); the caller closes it. */
    int export_descriptor() const {
        int descriptor = -1;
        check(hanare_region_export(handle_->pool(), data(), &descriptor));
        return descriptor;
    }

private:
    friend class Pool;

    explicit Region(std::shared_ptr<detail::RegionHandle> handle) : handle_(std::move(handle)) {}

    const void* at(std::size_t offset) const noexcept {
        return static_cast<const char*>(data()) + offset;
    }

    std::shared_ptr<detail::RegionHandle> handle_;
};

/* `size()` elements of T in a region of their own: a contiguous range like std::span, which it
 * converts to.  T is not constructed: it must be trivially copyable and valid when all its bytes
 * are zero.  No bounds checks. */
template <typename T>
class Array {
    static_assert(std::is_trivially_copyable_v<T>, "blocks move as bytes");
    static_assert(!std::is_const_v<T> && !std::is_volatile_v<T>);
    static_assert(alignof(T) <= 4096, "regions are aligned to blocks of at least 4096 bytes");

public:
    using value_type = T;
    using iterator = T*;
    using const_iterator = const T*;

    Array(Array&&) noexcept = default;
    Array& operator=(Array&&) noexcept = default;

    T* data() noexcept { return data_; }
    const T* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    T& operator[](std::size_t index) noexcept { return data_[index]; }
    const T& operator[](std::size_t index) const noexcept { return data_[index]; }
    iterator begin() noexcept { return data_; }
    iterator end() noexcept { return data_ + size_; }
    const_iterator begin() const noexcept { return data_; }
    const_iterator end() const noexcept { return data_ + size_; }

    /* `count` elements from `index`. */
    Pin pin(std::size_t index, std::size_t count, Access access) const {
        return region_.pin(index * sizeof(T), count * sizeof(T), access);
    }
    void prefetch(std::size_t index, std::size_t count) const {
        region_.prefetch(index * sizeof(T), count * sizeof(T));
    }
    void advise(Advice advice) const { region_.advise(advice); }
    void flush() const { region_.flush(); }
    const Region& region() const noexcept { return region_; }

private:
    friend class Pool;

    Array(Region region, std::size_t size)
        : region_(std::move(region)), data_(static_cast<T*>(region_.data())), size_(size) {}

    Region region_;
    T* data_;
    std::size_t size_;
};

/* A region that another process has exported, mapped for reading.  Only what is in the local memory
 * of that process can be read: an access to anything else raises SIGBUS (hanare_view_open). */
class [[nodiscard]] View {
public:
    /* The descriptor may be closed afterwards. */
    explicit View(int descriptor) { check(hanare_view_open(descriptor, &address_, &bytes_)); }
    View(View&& other) noexcept
        : address_(std::exchange(other.address_, nullptr)), bytes_(other.bytes_) {}
    View& operator=(View&& other) noexcept {
        if (this != &other) {
            close();
            address_ = std::exchange(other.address_, nullptr);
            bytes_ = other.bytes_;
        }
        return *this;
    }
    ~View() { close(); }

    const void* data() const noexcept { return address_; }
    /* The region's, in whole blocks. */
    std::size_t bytes() const noexcept { return bytes_; }

private:
    void close() noexcept {
        if (address_ != nullptr) (void)hanare_view_close(address_);
    }

    const void* address_ = nullptr;
    std::size_t bytes_ = 0;
};

/* A local byte budget plus a store. */
class Pool {
public:
    explicit Pool(const PoolOptions& options = {})
        : handle_(std::make_shared<detail::PoolHandle>(options)) {}
    Pool(Pool&&) noexcept = default;
    Pool& operator=(Pool&&) noexcept = default;

    /* `block_bytes` 0: the pool's. */
    Region allocate(std::size_t bytes, std::uint64_t block_bytes = 0) const {
        return Region(std::make_shared<detail::RegionHandle>(handle_, bytes, block_bytes));
    }
    template <typename T>
    Array<T> array(std::size_t count, std::uint64_t block_bytes = 0) const {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
            throw Error(HANARE_STATUS_INVALID_ARGUMENT,
                        "an array of this many elements has more "
                        "bytes than an address has bits");
        }
        return Array<T>(allocate(count * sizeof(T), block_bytes), count);
    }
    /* Returns when everything written so far is in the store. */
    void flush() const { check(hanare_flush(handle_->pool, nullptr, 0)); }
    hanare_counters stats() const { return detail::stats_of(handle_->pool, nullptr); }
    /* For calls of the C API; stays the Pool's. */
    hanare_pool* handle() const noexcept { return handle_->pool; }

private:
    std::shared_ptr<detail::PoolHandle> handle_;
};

}  // namespace cpp
}  // namespace hanare

#endif
