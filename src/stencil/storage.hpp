// SPDX-License-Identifier: Apache-2.0
//
// A grid's file, or the anonymous memory in its place (I/O by swap): allocated as a whole, locked
// against other processes, with a header that says which state is whole.  By one thread at a time,
// but for transfers of different ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/result.hpp"
#include "stencil/file_header.hpp"
#include "sys/file.hpp"
#include "sys/file_mapping.hpp"
#include "sys/memory.hpp"

namespace hanare::stencil {

// What a failed transfer means: STORE_FULL or STORE_IO.
hanare_status transfer_status(int os_errno) noexcept;

class Storage {
public:
    struct Options {
        std::string path;  // empty: without a name, in `directory`
        std::string directory;
        hanare_grid_io io = HANARE_GRID_IO_AUTO;
        bool allow_tmpfs = false;
        bool read_only = false;
    };

    // `header` says what is stored; its file_bytes is set here.
    static Result<std::unique_ptr<Storage>> create(const Options& options, FileHeader header,
                                                   const Geometry& geometry);
    static Result<std::unique_ptr<Storage>> open(const Options& options);
    ~Storage();
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
    // Removes the file that create() has made.
    void remove() noexcept;

    const FileHeader& header() const { return header_; }
    void lay_out(const Geometry& geometry);
    uint64_t region(uint32_t field, uint32_t level, uint32_t copy) const;
    hanare_grid_io io() const { return options_.io; }
    bool is_read_only() const { return options_.read_only; }
    int file() const { return file_.number(); }
    uint64_t file_bytes() const { return header_.file_bytes; }

    // Whole pages.
    Result<void> read(uint64_t offset, std::byte* memory, size_t bytes) const;
    Result<void> write(uint64_t offset, const std::byte* memory, size_t bytes) const;
    // 0 or an errno value.
    int transfer(bool writes, uint64_t offset, std::byte* memory, size_t bytes) const noexcept;

    // What was written is on the device when it returns.
    Result<void> sync();
    // Says, durably and in both pages of the header, that the states in `copy` are the grid at this
    // step.
    Result<void> commit(uint64_t step, uint32_t copy, bool is_running);
    // A commit has failed so that the file may have the old header, or the new one.
    bool is_unsure() const noexcept { return is_unsure_; }

private:
    explicit Storage(Options options) : options_(std::move(options)) {}

    Result<void> create_file(const Geometry& geometry);
    Result<void> check_transfers() const;
    Result<void> allocate();
    Result<void> open_file();
    Result<void> read_header();
    Result<void> lock();
    bool set_lock(int file, off_t byte, uint64_t patience_ns) const;
    Result<void> map();

    Options options_;
    sys::FileDescriptor file_;
    sys::FileDescriptor lock_file_;
    FileHeader header_;
    uint32_t whole_page_ = 1;        // of the header, which is on the device as it is here
    std::vector<uint64_t> regions_;  // of field and level, two entries each
    std::vector<size_t> first_region_;
    std::optional<sys::FileMapping> mapping_;
    sys::Mapping memory_;
    std::byte* mapped_ = nullptr;  // of either
    bool is_unsure_ = false;
};

}  // namespace hanare::stencil
