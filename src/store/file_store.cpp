// SPDX-License-Identifier: Apache-2.0
#include "store/file_store.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/units.hpp"
#include "store/aio_transfers.hpp"
#include "store/sync_channel.hpp"
#include "store/uring_channel.hpp"
#include "sys/process_usage.hpp"
#include "sys/signal.hpp"

namespace hanare::store {

namespace {

constexpr uint64_t kFileBytesMax = INT64_MAX - (ExtentAllocator::kAlignmentBytes - 1);

uint64_t managed_bytes(const FileStoreOptions& options) {
    return options.size_bytes == 0 ? kFileBytesMax : round_down(options.size_bytes, kOsPageBytes);
}

sys::Aio::Kind kind_of(TransferCapacity capacity) {
    return capacity == TransferCapacity::kMany ? sys::Aio::Kind::kMany : sys::Aio::Kind::kOne;
}

std::unexpected<Error> open_error(const std::string& directory, int os_errno) {
    const char* const name = directory.c_str();
    const auto worded = [&](const char* what) {
        Error error =
            fail(HANARE_STATUS_STORE_UNAVAILABLE, "store directory %s %s", name, what).error();
        error.os_errno = os_errno;
        return std::unexpected(error);
    };
    switch (os_errno) {
        case ENOENT: return worded("does not exist: create it or name another one");
        case ENOTDIR: return worded("is not a directory: name a directory, not a file");
        case EACCES:
        case EPERM:
            return worded("is not writable for this user: change its rights or name another one");
        case EROFS: return worded("is on a read-only file system: name another one");
        case ENOSPC:
        case EDQUOT: return worded("is full: free some room there or name another one");
        default:
            return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, os_errno,
                              "cannot create a file in store directory %s", name);
    }
}

}  // namespace

Result<std::unique_ptr<Store>> open_file_store(const FileStoreOptions& options) {
    if (options.size_bytes != 0 && managed_bytes(options) == 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "store size %s is too small: at least %s",
                    format_size(options.size_bytes).c_str(), format_size(kOsPageBytes).c_str());
    }
    sys::FileDescriptor file;
    if (const int error = sys::open_unnamed(options.directory, file); error != 0) {
        return open_error(options.directory, error);
    }
    auto store = std::make_unique<FileStore>(options, std::move(file));
    HANARE_TRY(store->prepare());
    return store;
}

FileStore::FileStore(const FileStoreOptions& options, sys::FileDescriptor file)
    : options_(options), extents_(managed_bytes(options)) {
    file_.descriptor = std::move(file);
    file_.in_flight_bytes_max = options.in_flight_bytes_max;
}

Result<void> FileStore::prepare() {
    HANARE_TRY(refuse_memory());
    direct_errno_ = options_.use_direct ? sys::bypass_page_cache(file_.descriptor.number()) : 0;
    uring_errno_ = options_.use_uring ? sys::Uring::probe() : 0;
    if (options_.need_uring && uring_errno_ != 0) return no_uring();
    if (options_.size_bytes != 0) HANARE_TRY(allocate(0, managed_bytes(options_)));
    return {};
}

Result<void> FileStore::refuse_memory() const {
    const char* const directory = options_.directory.c_str();
    sys::FileSystem file_system;
    if (const int error = sys::file_system_of(file_.descriptor.number(), file_system); error != 0) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error,
                          "cannot inspect the file system of store directory %s", directory);
    }
    if (!file_system.in_memory || options_.allow_tmpfs) return {};
    return fail(
        HANARE_STATUS_STORE_UNAVAILABLE,
        "store directory %s is on tmpfs, which is memory itself: name a directory on a disk, "
        "or allow tmpfs",
        directory);
}

Result<uint64_t> FileStore::reserve(uint64_t bytes) {
    if (bytes == 0 || bytes > kFileBytesMax) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "cannot reserve %s in a store",
                    format_size(bytes).c_str());
    }
    const uint64_t extent_bytes = round_up(bytes, kOsPageBytes);
    HANARE_TRY_ASSIGN(const uint64_t offset, reserve_extent(extent_bytes, bytes));
    if (options_.size_bytes != 0) return offset;  // allocated at open
    if (auto allocated = allocate(offset, extent_bytes); !allocated) {
        release(offset, extent_bytes);
        return std::unexpected(allocated.error());
    }
    return offset;
}

Result<uint64_t> FileStore::reserve_extent(uint64_t bytes, uint64_t wanted_bytes) {
    uint64_t largest_bytes = 0;
    {
        const sys::SignalBlock block;
        const sys::LockGuard guard(lock_);
        if (const auto offset = extents_.reserve(bytes)) {
            reserved_bytes_ += bytes;
            return *offset;
        }
        largest_bytes = extents_.largest_bytes();
    }
    return fail(HANARE_STATUS_STORE_FULL,
                "store of %s in %s is full: %s wanted, %s free in one piece: open it with a larger "
                "size",
                format_size(managed_bytes(options_)).c_str(), options_.directory.c_str(),
                format_size(wanted_bytes).c_str(), format_size(largest_bytes).c_str());
}

void FileStore::release(uint64_t offset, uint64_t bytes) noexcept {
    const uint64_t extent_bytes = round_up(bytes, kOsPageBytes);
    // Before others may reserve the range.  Failure costs room, not data.
    if (options_.size_bytes == 0) sys::punch_hole(file_.descriptor.number(), offset, extent_bytes);
    release_extent(offset, extent_bytes);
}

void FileStore::release_extent(uint64_t offset, uint64_t bytes) noexcept {
    const sys::SignalBlock block;
    const sys::LockGuard guard(lock_);
    extents_.release(offset, bytes);
    reserved_bytes_ -= bytes;
}

Result<void> FileStore::allocate(uint64_t offset, uint64_t bytes) {
    HANARE_TRY(sys::check_file_bytes("a store file", offset + bytes));
    // Asked first, because a request that cannot succeed would eat the disk empty before it fails.
    if (!room_for(bytes)) return no_room(bytes, ENOSPC);
    if (lazy_.load()) return allocate_lazily(offset, bytes);
    const int error = sys::preallocate(file_.descriptor.number(), offset, bytes);
    switch (error) {
        case 0: return {};
        case EOPNOTSUPP: lazy_ = true; return allocate_lazily(offset, bytes);
        case ENOSPC:
        case EDQUOT:
        case EFBIG: return no_room(bytes, error);
        default:
            return fail_errno(HANARE_STATUS_STORE_IO, error,
                              "cannot allocate %s in store directory %s",
                              format_size(bytes).c_str(), options_.directory.c_str());
    }
}

// Without blocks of our own the best that can be had is that there is room for all of them now.
Result<void> FileStore::allocate_lazily(uint64_t offset, uint64_t bytes) {
    const sys::SignalBlock block;
    int error = 0;
    {
        const sys::LockGuard guard(lock_);
        uint64_t held_bytes = 0;
        error = sys::allocated_bytes(file_.descriptor.number(), held_bytes);
        const uint64_t needed_bytes = std::max(reserved_bytes_, bytes);
        if (error == 0 && needed_bytes > held_bytes && !room_for(needed_bytes - held_bytes)) {
            error = ENOSPC;
        }
        const uint64_t length_bytes = std::max(length_bytes_, offset + bytes);
        if (error == 0) error = sys::set_length(file_.descriptor.number(), length_bytes);
        if (error == 0) length_bytes_ = length_bytes;
    }
    if (error != 0) return no_room(bytes, error);
    return {};
}

bool FileStore::room_for(uint64_t bytes) const {
    sys::FileSystem file_system;
    if (sys::file_system_of(file_.descriptor.number(), file_system) != 0) return true;
    return !file_system.room_known || bytes <= file_system.free_bytes;
}

std::unexpected<Error> FileStore::no_room(uint64_t wanted_bytes, int os_errno) const {
    sys::FileSystem file_system;
    sys::file_system_of(file_.descriptor.number(), file_system);
    const std::string free =
        file_system.room_known ? format_size(file_system.free_bytes) + " free" : "unknown room";
    return fail_errno(HANARE_STATUS_STORE_FULL, os_errno,
                      "store directory %s has no room: %s wanted, %s: free some room there or name "
                      "another one",
                      options_.directory.c_str(), format_size(wanted_bytes).c_str(), free.c_str());
}

Result<SlotTable> FileStore::open_slots(uint64_t slot_bytes) {
    // More than any disk has; the table takes memory as it is used.  Where addresses are limited,
    // the table takes one in so many of them, of eight bytes a slot.
    constexpr uint64_t kSlotsMax = uint64_t{1} << 26;
    constexpr uint64_t kAddressesShare = 16;
    const uint64_t slots =
        std::min({managed_bytes(options_) / slot_bytes, kSlotsMax,
                  sys::free_address_bytes() / kAddressesShare / sizeof(uint64_t)});
    if (slots == 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "store size %s is too small for a block of %s",
                    format_size(options_.size_bytes).c_str(), format_size(slot_bytes).c_str());
    }
    return SlotTable::create(static_cast<uint32_t>(slots), file_.descriptor.number());
}

// In steps: the last page of each is enough to make the file that long.  Other processes do the
// same; nobody shortens it.
hanare_status FileStore::cover(uint64_t end) noexcept {
    if (end <= covered_bytes_.load(std::memory_order_relaxed)) return HANARE_STATUS_OK;
    if (options_.size_bytes != 0 && end > managed_bytes(options_)) return HANARE_STATUS_STORE_FULL;
    constexpr uint64_t kStepBytes = 64 * kMiB;
    uint64_t wanted = round_up(end, kStepBytes);
    if (options_.size_bytes != 0) wanted = std::min(wanted, managed_bytes(options_));
    int error = sys::extend(file_.descriptor.number(), wanted);
    if (error == EFBIG || error == ENOSPC) {
        wanted = end;
        error = sys::extend(file_.descriptor.number(), wanted);
    }
    if (error != 0) return file_.errors.note(error);
    uint64_t covered = covered_bytes_.load(std::memory_order_relaxed);
    while (covered < wanted && !covered_bytes_.compare_exchange_weak(covered, wanted)) {
    }
    return HANARE_STATUS_OK;
}

hanare_status FileStore::read(uint64_t offset, std::byte* memory, size_t bytes) noexcept {
    return file_.errors.note(sys::read_at(file_.descriptor.number(), offset, memory, bytes));
}

hanare_status FileStore::write(uint64_t offset, const std::byte* memory, size_t bytes) noexcept {
    return file_.errors.note(sys::write_at(file_.descriptor.number(), offset, memory, bytes));
}

std::unexpected<Error> FileStore::no_uring() const {
    return fail_errno(HANARE_STATUS_NOT_SUPPORTED, uring_errno_,
                      "io = uring was asked for and io_uring is refused (auto and sync work)");
}

Result<std::unique_ptr<IoChannel>> FileStore::open_channel() {
    if (options_.use_uring && uring_errno_ == 0) {
        auto channel = UringChannel::open(file_);
        if (channel) return channel;
        uring_errno_ = channel.error().os_errno;
        if (options_.need_uring) return no_uring();
    }
    return std::make_unique<SyncChannel>(file_);
}

std::unique_ptr<SharedTransfers> FileStore::open_transfers(TransferCapacity capacity) {
    // Through the page cache the start of a read would be all of it.
    if (!options_.use_uring || !options_.use_direct || direct_errno_ != 0) return nullptr;
    return std::make_unique<AioTransfers>(file_, kind_of(capacity));
}

std::string FileStore::describe() const {
    std::string text = "file in " + options_.directory;
    if (options_.size_bytes != 0)
        text += ", " + format_size(managed_bytes(options_)) + " preallocated";
    if (!options_.use_direct) {
        text += ", through the page cache";
    } else if (direct_errno_ != 0) {
        text += std::string(", through the page cache (O_DIRECT refused: ") +
                text_of_errno(direct_errno_) + ")";
    } else {
        text += ", O_DIRECT";
    }
    const int uring_errno = uring_errno_;
    if (!options_.use_uring) {
        text += ", pread and pwrite";
    } else if (uring_errno != 0) {
        text += std::string(", pread and pwrite (io_uring refused: ") + text_of_errno(uring_errno) +
                ")";
    } else {
        text += ", io_uring";
    }
    return text;
}

void FileStore::abandon_in_child() noexcept {
    file_.channels.abandon_in_child();
    file_.descriptor.close();
}

}  // namespace hanare::store
