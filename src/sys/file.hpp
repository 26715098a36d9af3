// SPDX-License-Identifier: Apache-2.0
//
// Files that hold data which must vanish with the process: unnamed, readable by nobody else, moved
// past the page cache where the file system allows it.
//
// Functions return 0 or an errno value and leave errno alone; whoever knows what the file is for
// words the message.  read_at() and write_at() are async-signal-safe and no cancellation points;
// everything else is for ordinary threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/result.hpp"

namespace hanare::sys {

// `number`, or where that is one of the three standard descriptors, a duplicate above them, closed
// on exec; `number` is then closed.  A program that was started without a standard descriptor gets
// its number for the next file it opens, and may write there.  Every descriptor that is kept goes
// through this.  A negative number is handed through.  -1 and errno when there is no duplicate.
// Async-signal-safe.
int above_standard(int number) noexcept;

// Closes such a number.
void close_own(int number) noexcept;

// Opens /dev/null for whichever of the three standard descriptors is closed; what is started finds
// them closed again.  For programs, early.
int open_missing_standard() noexcept;

// Owns a file descriptor.
class FileDescriptor {
public:
    FileDescriptor() = default;
    explicit FileDescriptor(int number) noexcept : number_(number) {}
    FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    FileDescriptor& operator=(FileDescriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~FileDescriptor() { close(); }

    int number() const { return number_; }
    bool is_open() const { return number_ >= 0; }
    // Hands the descriptor over.
    int release() noexcept { return std::exchange(number_, -1); }
    void close() noexcept;

private:
    int number_ = -1;
};

// Another descriptor of the same, closed on exec; not open when there is none left.
FileDescriptor duplicate(const FileDescriptor& file) noexcept;

// A file in `directory` without a name, mode 0600, closed on exec.  Where O_TMPFILE is unknown, a
// named file is created and unlinked with signals blocked.
int open_unnamed(const std::string& directory, FileDescriptor& file);

// Makes transfers of whole, aligned OS pages bypass the page cache.  `file` must be empty: one page
// is written and cut off again, because some file systems take the flag and refuse the transfers.
// EFBIG when this process may not write even that.
int bypass_page_cache(int file);

// Allocates disk blocks for the range and makes the file at least that long.  EOPNOTSUPP where the
// file system cannot.  After an error part of the range may be allocated.
int preallocate(int file, uint64_t offset, uint64_t bytes);
// Gives the blocks of the range back; it reads as zeros.  The length stays.
int punch_hole(int file, uint64_t offset, uint64_t bytes);
// The range reads as zeros and keeps its blocks.  EOPNOTSUPP where the file system cannot.
int zero_range(int file, uint64_t offset, uint64_t bytes);
int set_length(int file, uint64_t bytes);

// Makes the file at least that long and changes nothing of what it holds, whoever else does the
// same.  `bytes` is a multiple of the OS page.  Async-signal-safe.
int extend(int file, uint64_t bytes);

struct FileSystem {
    uint32_t magic = 0;      // statfs(2)
    bool in_memory = false;  // tmpfs or ramfs: what is "on disk" there is in memory
    bool room_known = false;
    uint64_t free_bytes = 0;     // for ordinary users
    bool no_more_files = false;  // nor directories
};
int file_system_of(int file, FileSystem& result);

// The longest file that this process may write (RLIMIT_FSIZE); beyond it the kernel sends SIGXFSZ,
// so whoever makes a file asks first.
uint64_t file_bytes_max() noexcept;
// STORE_FULL, which names the limit, when `what` ("a store file") of that length is beyond it.
Result<void> check_file_bytes(const char* what, uint64_t bytes);

// Bytes of disk that the file holds.
int allocated_bytes(int file, uint64_t& bytes);

// Transfer everything: short transfers, EINTR and EAGAIN continue.  A read that meets the end of
// the file fails with EIO.  A write beyond RLIMIT_FSIZE fails with EFBIG, without the SIGXFSZ that
// comes along where the calling thread blocks that: it would end the program after the error has
// been dealt with.
int read_at(int file, uint64_t offset, std::byte* memory, size_t bytes) noexcept;
int write_at(int file, uint64_t offset, const std::byte* memory, size_t bytes) noexcept;

// Whether a transfer that failed so is simply tried again.
bool is_transient(int os_errno) noexcept;

// How much of a transfer an injected short one moves: half, in whole OS pages so that the rest
// stays aligned.  A single page is moved whole.
size_t short_part(size_t bytes) noexcept;

}  // namespace hanare::sys
