// SPDX-License-Identifier: Apache-2.0
#include "stencil/storage.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <unistd.h>

#include "base/units.hpp"
#include "sys/clock.hpp"
#include "sys/signal.hpp"
#include "sys/uring.hpp"

namespace hanare::stencil {

namespace {

constexpr uint64_t kLockPatienceNs = 30'000'000'000;

hanare_status status_of(int error, hanare_status other) {
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) return HANARE_STATUS_STORE_FULL;
    return other;
}

struct FreePages {
    void operator()(std::byte* memory) const { std::free(memory); }
};

std::unique_ptr<std::byte, FreePages> header_page() {
    return std::unique_ptr<std::byte, FreePages>(
        static_cast<std::byte*>(std::aligned_alloc(kHeaderPageBytes, kHeaderPageBytes)));
}

}  // namespace

hanare_status transfer_status(int os_errno) noexcept {
    return status_of(os_errno, HANARE_STATUS_STORE_IO);
}

void Storage::lay_out(const Geometry& geometry) {
    uint64_t offset = kHeaderBytes;
    regions_.clear();
    first_region_.clear();
    for (const FieldSpec& field : header_.fields) {
        first_region_.push_back(regions_.size());
        const int levels = field.kind == HANARE_FIELD_TWO_LEVELS ? 2 : 1;
        const bool is_twice = field.kind != HANARE_FIELD_CONSTANT &&
                              header_.durability == HANARE_DURABILITY_PING_PONG;
        for (int level = 0; level < levels; ++level) {
            regions_.push_back(offset);
            if (is_twice) offset += geometry.stored_bytes();
            regions_.push_back(offset);
            offset += geometry.stored_bytes();
        }
    }
    header_.file_bytes = offset;
}

uint64_t Storage::region(uint32_t field, uint32_t level, uint32_t copy) const {
    return regions_[first_region_[field] + 2 * level + copy];
}

Result<std::unique_ptr<Storage>> Storage::create(const Options& options, FileHeader header,
                                                 const Geometry& geometry) {
    std::unique_ptr<Storage> storage(new Storage(options));
    storage->header_ = std::move(header);
    storage->lay_out(geometry);
    if (options.io == HANARE_GRID_IO_SWAP) {
        const size_t bytes = round_up(storage->file_bytes(), kHugePageBytes);
        HANARE_TRY_ASSIGN(storage->memory_, sys::Mapping::reserve(bytes, kHugePageBytes));
        storage->mapped_ = storage->memory_.address();
        return storage;
    }
    HANARE_TRY(storage->create_file(geometry));
    Result<void> made = storage->check_transfers();
    if (made) made = storage->allocate();
    if (made) made = storage->lock();
    if (made && options.io == HANARE_GRID_IO_MMAP) made = storage->map();
    if (made) made = storage->commit(storage->header_.step, 0, false);
    if (!made) {
        storage->remove();
        return std::unexpected(made.error());
    }
    return storage;
}

// Said now, and not by the first run.
Result<void> Storage::check_transfers() const {
    if (options_.io != HANARE_GRID_IO_URING || options_.read_only) return {};
    if (const auto ring = sys::Uring::open(1, file_.number()); !ring) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "io: HANARE_GRID_IO_URING, which cannot be had here: %.150s",
                    ring.error().text);
    }
    return {};
}

void Storage::remove() noexcept {
    if (!options_.path.empty()) unlink(options_.path.c_str());
}

Result<void> Storage::create_file(const Geometry&) {
    HANARE_TRY(sys::check_file_bytes("the file of a grid", file_bytes()));
    const bool is_named = !options_.path.empty();
    const char* const where = is_named ? options_.path.c_str() : options_.directory.c_str();
    if (is_named) {
        const int number =
            sys::above_standard(::open(where, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (number < 0) {
            return fail_errno(
                errno == EEXIST ? HANARE_STATUS_BUSY : HANARE_STATUS_STORE_UNAVAILABLE, errno,
                "cannot make the grid's file %.150s", where);
        }
        file_ = sys::FileDescriptor(number);
    } else if (const int error = sys::open_unnamed(options_.directory, file_); error != 0) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error,
                          "cannot make the grid's file in %.150s", where);
    }
    return {};
}

Result<void> Storage::allocate() {
    const std::string where = options_.path.empty() ? options_.directory : options_.path;
    sys::FileSystem file_system;
    if (sys::file_system_of(file_.number(), file_system) == 0) {
        if (file_system.in_memory && !options_.allow_tmpfs) {
            return fail(HANARE_STATUS_STORE_UNAVAILABLE,
                        "%.150s is on tmpfs, which is memory: choose another directory, or "
                        "HANARE_GRID_ALLOW_TMPFS",
                        where.c_str());
        }
        if (file_system.room_known && file_system.free_bytes < file_bytes()) {
            return fail(HANARE_STATUS_STORE_FULL, "the grid needs %s in %.120s, where %s are free",
                        format_size(file_bytes()).c_str(), where.c_str(),
                        format_size(file_system.free_bytes).c_str());
        }
    }
    // Where the file system does not take such transfers, they go through the page cache.
    if (options_.io != HANARE_GRID_IO_MMAP) {
        const int error = sys::bypass_page_cache(file_.number());
        if (error != 0 && error != EINVAL && error != EOPNOTSUPP) {
            return fail_errno(status_of(error, HANARE_STATUS_STORE_UNAVAILABLE), error,
                              "cannot write to %.150s", where.c_str());
        }
    }
    int error = sys::preallocate(file_.number(), 0, file_bytes());
    if (error == EOPNOTSUPP) error = sys::set_length(file_.number(), file_bytes());
    if (error == 0) return {};
    return fail_errno(status_of(error, HANARE_STATUS_STORE_UNAVAILABLE), error,
                      "the grid needs %s in %.120s", format_size(file_bytes()).c_str(),
                      where.c_str());
}

// Two locks, of one byte each.  The first belongs to a descriptor that ends with its process: who
// does not get it is told so at once.  The second belongs to the one of the transfers, which the
// kernel keeps open until they have ended, also those of a process that was killed: nobody reads
// or writes while these might still write.
Result<void> Storage::lock() {
    if (options_.path.empty()) return {};
    const int flags = (options_.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK;
    lock_file_ = sys::FileDescriptor(sys::above_standard(::open(options_.path.c_str(), flags)));
    if (!lock_file_.is_open()) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, errno, "cannot lock %.150s",
                          options_.path.c_str());
    }
    const bool is_got =
        set_lock(lock_file_.number(), 0, 0) && set_lock(file_.number(), 1, kLockPatienceNs);
    if (is_got) return {};
    return fail(HANARE_STATUS_BUSY, "another process, or handle, has the grid %.150s",
                options_.path.c_str());
}

// Where the file system has no locks there is nothing to wait for.
bool Storage::set_lock(int file, off_t byte, uint64_t patience_ns) const {
    const uint64_t end_ns = sys::now_ns() + patience_ns;
    struct flock lock = {};
    lock.l_type = options_.read_only ? F_RDLCK : F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    while (fcntl(file, F_OFD_SETLK, &lock) != 0) {
        if (errno != EAGAIN && errno != EACCES) return true;
        if (sys::now_ns() >= end_ns) return false;
        poll(nullptr, 0, 2);
    }
    return true;
}

// A ring that is being taken down keeps the file open a little longer.
Storage::~Storage() {
    if (!file_.is_open() || options_.path.empty()) return;
    struct flock lock = {};
    lock.l_type = F_UNLCK;
    lock.l_whence = SEEK_SET;
    fcntl(file_.number(), F_OFD_SETLK, &lock);
    // Children of a fork may have it, too.
    fcntl(lock_file_.number(), F_OFD_SETLK, &lock);
}

Result<void> Storage::map() {
    auto mapping = sys::FileMapping::create(file_.number(), 0, round_up(file_bytes(), kOsPageBytes),
                                            kOsPageBytes);
    if (!mapping) return std::unexpected(mapping.error());
    mapping_ = std::move(*mapping);
    mapped_ = mapping_->address();
    return {};
}

Result<std::unique_ptr<Storage>> Storage::open(const Options& options) {
    std::unique_ptr<Storage> storage(new Storage(options));
    HANARE_TRY(storage->open_file());
    HANARE_TRY(storage->lock());
    HANARE_TRY(storage->read_header());
    HANARE_TRY(storage->check_transfers());
    if (options.io == HANARE_GRID_IO_MMAP) HANARE_TRY(storage->map());
    return storage;
}

Result<void> Storage::open_file() {
    const int flags = (options_.read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NONBLOCK;
    const char* const path = options_.path.c_str();
    int number = -1;
    if (options_.io != HANARE_GRID_IO_MMAP) {
        number = sys::above_standard(::open(path, flags | O_DIRECT));
    }
    if (number < 0) number = sys::above_standard(::open(path, flags));
    if (number < 0) {
        const int error = errno;
        const hanare_status status = error == ENOENT || error == ENOTDIR ? HANARE_STATUS_NOT_FOUND
                                     : error == EACCES || error == EPERM || error == EROFS
                                         ? HANARE_STATUS_PERMISSION
                                         : HANARE_STATUS_STORE_UNAVAILABLE;
        return fail_errno(status, error, "cannot open the grid %.150s", path);
    }
    file_ = sys::FileDescriptor(number);
    return {};
}

Result<void> Storage::read_header() {
    const char* const path = options_.path.c_str();
    const auto page = header_page();
    if (page == nullptr) return fail(HANARE_STATUS_NO_MEMORY, "no memory for a page");
    const off_t end = lseek(file_.number(), 0, SEEK_END);
    Result<FileHeader> found = fail(HANARE_STATUS_CORRUPT, "too short for a grid");
    for (uint32_t copy = 0; copy < 2; ++copy) {
        if (sys::read_at(file_.number(), copy * kHeaderPageBytes, page.get(), kHeaderPageBytes)) {
            continue;
        }
        Result<FileHeader> header = decode({page.get(), kHeaderPageBytes});
        if (header && (!found || header->sequence > found->sequence)) {
            found = std::move(header);
            whole_page_ = copy;
        } else if (!found) {
            found = std::move(header);
        }
    }
    if (!found) return fail(found.error().status, "%.120s: %s", path, found.error().text);
    header_ = std::move(*found);
    if (end < 0 || static_cast<uint64_t>(end) < header_.file_bytes) {
        return fail(HANARE_STATUS_CORRUPT, "%.120s is cut off: %lld bytes of %llu", path,
                    static_cast<long long>(end),
                    static_cast<unsigned long long>(header_.file_bytes));
    }
    if (header_.is_running) {
        return fail(HANARE_STATUS_CORRUPT,
                    "%.120s: a run in place did not end, its cells are of different steps", path);
    }
    return {};
}

int Storage::transfer(bool writes, uint64_t offset, std::byte* memory,
                      size_t bytes) const noexcept {
    if (mapped_ != nullptr) {
        if (writes) {
            std::memcpy(mapped_ + offset, memory, bytes);
        } else {
            std::memcpy(memory, mapped_ + offset, bytes);
        }
        return 0;
    }
    return writes ? sys::write_at(file_.number(), offset, memory, bytes)
                  : sys::read_at(file_.number(), offset, memory, bytes);
}

Result<void> Storage::read(uint64_t offset, std::byte* memory, size_t bytes) const {
    const int error = transfer(false, offset, memory, bytes);
    if (error == 0) return {};
    return fail_errno(HANARE_STATUS_STORE_IO, error, "cannot read the grid's file");
}

Result<void> Storage::write(uint64_t offset, const std::byte* memory, size_t bytes) const {
    const sys::SignalBlock block;  // SIGXFSZ
    const int error = transfer(true, offset, const_cast<std::byte*>(memory), bytes);
    if (error == 0) return {};
    return fail_errno(transfer_status(error), error, "cannot write the grid's file");
}

Result<void> Storage::sync() {
    if (!file_.is_open()) return {};
    if (mapping_) HANARE_TRY(mapping_->flush());
    if (fdatasync(file_.number()) == 0) return {};
    return fail_errno(transfer_status(errno), errno, "cannot write the grid's file");
}

// First all that the header speaks of, then one page of the header, then the other: there is always
// one that is whole, whenever a crash comes, and both are when it returns.  The first is the one
// that is less sure to be good: the other was read, or was written before.
Result<void> Storage::commit(uint64_t step, uint32_t copy, bool is_running) {
    FileHeader next = header_;
    next.step = step;
    next.copy = copy;
    next.is_running = is_running;
    ++next.sequence;
    if (file_.is_open() && !options_.read_only) {
        const auto page = header_page();
        if (page == nullptr) return fail(HANARE_STATUS_NO_MEMORY, "no memory for a page");
        encode(next, {page.get(), kHeaderPageBytes});
        HANARE_TRY(sync());
        // After an error from here on nobody knows which one the file has.
        is_unsure_ = true;
        for (int written = 0; written < 2; ++written) {
            const uint32_t other = 1 - whole_page_;
            HANARE_TRY(write(other * kHeaderPageBytes, page.get(), kHeaderPageBytes));
            HANARE_TRY(sync());
            whole_page_ = other;
        }
        is_unsure_ = false;
    }
    header_ = std::move(next);
    return {};
}

}  // namespace hanare::stencil
