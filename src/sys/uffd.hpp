// SPDX-License-Identifier: Apache-2.0
//
// userfaultfd(2) in its SIGBUS form: a user-mode access to a missing or write-protected page of a
// registered range raises SIGBUS in the accessing thread; kernel-mode accesses fail with EFAULT.
// All operations are async-signal-safe and may run in any thread; they return 0 or an errno value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.hpp"

namespace hanare::sys {

class Userfault {
public:
    // What the kernel offers this user; 0 when userfaultfd is refused altogether.
    struct Support {
        bool available = false;
        bool sigbus = false;
        bool write_protect = false;
        bool move = false;
        int os_errno = 0;  // why it is not available
    };
    static Support probe() noexcept;

    // Opens a descriptor with SIGBUS delivery and, on request, UFFDIO_MOVE.
    static Result<Userfault> open(bool with_move);

    Userfault() = default;
    Userfault(Userfault&& other) noexcept;
    Userfault& operator=(Userfault&& other) noexcept;
    ~Userfault();

    // Registers a range of anonymous memory for missing and write-protect faults.
    int register_range(void* address, size_t bytes) const noexcept;

    // Moves pages from `source` to the missing pages at `target`; the source pages become missing.
    // Atomic per page against running threads.  *moved_bytes tells how far it came.
    int move(void* target, const void* source, size_t bytes, size_t* moved_bytes) const noexcept;

    // Fills missing pages at `target` with copies, write-protected if so wished.  *copied_bytes
    // tells how far it came.
    int copy(void* target, const void* source, size_t bytes, bool write_protected,
             size_t* copied_bytes) const noexcept;

    // Sets or clears write protection of present pages.
    int write_protect(void* address, size_t bytes, bool on) const noexcept;

    // Closes the descriptor; for a child of fork(), whose descriptor acts on the parent's memory.
    void close() noexcept;

private:
    explicit Userfault(int descriptor) : descriptor_(descriptor) {}

    int descriptor_ = -1;
};

}  // namespace hanare::sys
