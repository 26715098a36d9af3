// SPDX-License-Identifier: Apache-2.0
//
// userfaultfd(2), in two forms.  With SIGBUS delivery a user-mode access to a missing or
// write-protected page of a registered range raises SIGBUS in the accessing thread, and kernel-mode
// accesses fail with EFAULT.  With events the accessing thread waits, in system calls as well,
// until somebody who reads the event has provided the page and wakes it. All operations are
// async-signal-safe and may run in any thread; they return 0 or an errno value.
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
        bool shared_memory = false;
        int os_errno = 0;  // why it is not available
        // Why faults of system calls cannot be had as events; 0: they can.
        int system_calls_errno = 0;
    };
    static Support probe() noexcept;

    struct Features {
        bool events = false;         // instead of SIGBUS; of system calls, too
        bool move = false;           // UFFDIO_MOVE
        bool shared_memory = false;  // minor and write-protect faults of it
    };
    static Result<Userfault> open(Features features);

    Userfault() = default;
    Userfault(Userfault&& other) noexcept;
    Userfault& operator=(Userfault&& other) noexcept;
    ~Userfault();

    enum Faults {
        kMissing,
        kPrivate,  // missing and write-protect faults
        kShared,   // these and minor faults: the page is in the file, but not mapped here
    };
    int register_range(void* address, size_t bytes, Faults faults = kPrivate) const noexcept;

    // Moves pages from `source` to the missing pages at `target`, which nobody else may fill
    // meanwhile; the source pages become missing.  Atomic per page against running threads.
    // *moved_bytes tells how far it came.
    int move(void* target, const void* source, size_t bytes, size_t* moved_bytes) const noexcept;

    // Fills missing pages at `target` with copies, write-protected if so wished.  *copied_bytes
    // tells how far it came.
    int copy(void* target, const void* source, size_t bytes, bool write_protected,
             size_t* copied_bytes) const noexcept;

    // Fills missing pages at `target` with zeros, writable.  *filled_bytes tells how far it came.
    int zero(void* target, size_t bytes, size_t* filled_bytes) const noexcept;

    // Maps missing pages of shared memory that are in the file, write-protected if so wished
    // (EINVAL before Linux 6.4).  EFAULT when one is not there, EEXIST when one is mapped.
    int map_present(void* address, size_t bytes, bool write_protected) const noexcept;

    // Sets or clears write protection of present pages.
    int write_protect(void* address, size_t bytes, bool on) const noexcept;

    // An access that waits for its page.
    struct Event {
        std::byte* page = nullptr;
        bool write = false;
        bool missing = false;  // as opposed to protected
        uint32_t thread_id = 0;
    };
    // Takes an event; false when there is none now.
    bool next_event(Event* event) const noexcept;
    // Readable while there are events.
    int descriptor() const noexcept { return descriptor_; }
    // Lets every thread that waits in the range try its access again.
    int wake(void* address, size_t bytes) const noexcept;
    // Makes accesses to missing pages fail from now on, with SIGBUS (BUS_MCEERR_AR) or EFAULT,
    // until madvise(MADV_DONTNEED).  EEXIST when a page is there, EINVAL on kernels before 6.6.
    int poison(void* address, size_t bytes) const noexcept;

    // Closes the descriptor; for a child of fork(), whose descriptor acts on the parent's memory.
    void close() noexcept;

private:
    explicit Userfault(int descriptor) : descriptor_(descriptor) {}

    int descriptor_ = -1;
};

}  // namespace hanare::sys
