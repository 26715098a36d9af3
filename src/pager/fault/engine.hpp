// SPDX-License-Identifier: Apache-2.0
//
// Engine: how a block is mapped, protected and unmapped.  Every call is made by the owner of the
// block's transient state, from fault handlers and other threads alike, and returns 0 or an errno
// value; EBUSY means the block must stay where it was (its pages are held by someone else), ENOMEM
// that fewer mapped blocks might help.
#pragma once

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <sys/mman.h>

#include "sys/memory.hpp"

namespace hanare::sys {
class Userfault;
}

namespace hanare::pager {

// Where the content of a block is in the file of its region, if the engine shares regions.
struct FilePlace {
    int file = -1;
    uint64_t offset = 0;
};

class Engine {
public:
    virtual const char* name() const noexcept = 0;

    // Raised by an access to what is not mapped.
    virtual int fault_signal() const noexcept { return SIGBUS; }
    // Entries of the kernel's list of mappings that a mapped block may take; 0: none at all.
    virtual uint32_t mappings_per_block() const noexcept { return 0; }

    // Whether regions lie in files (Region::file).
    virtual bool shares_regions() const noexcept { return false; }
    // Maps pages of a block again that the kernel has taken out of the region.  *writable: whether
    // the block can be written to, as it is and as it is left, also after an error.  Only for
    // shared regions; a page that is gone is an error.
    virtual int map_again(std::byte*, size_t, bool* /*writable*/) noexcept { return ENOSYS; }

    // Where accesses come from that wait until they are served (FaultService); nullptr where they
    // raise the signal at once.
    virtual const sys::Userfault* events() const noexcept { return nullptr; }
    // Makes accesses to an absent page fail: with the fault signal, in system calls with EFAULT.
    // Owned: the caller owns the transient state of the absent block; else EINVAL if that is
    // needed.
    virtual int refuse(std::byte*, size_t, bool /*is_owned*/) noexcept { return ENOSYS; }
    // Undoes it in a part that is absent; the caller owns the block's transient state.
    virtual int readmit(std::byte*, size_t) noexcept { return ENOSYS; }

    // Prepares the range of a region, and the arena that holds slots; none of it touched yet.
    virtual int attach(std::byte* range, size_t bytes) noexcept = 0;
    virtual int attach_arena(std::byte* arena, size_t bytes) noexcept = 0;

    // Gives an empty slot pages full of zeros.
    virtual int populate(std::byte* slot, size_t bytes) noexcept = 0;
    // The same for the keeper, and whole huge pages, without a lock that faulting threads take.
    virtual int populate_ahead(std::byte* slot, size_t bytes) noexcept {
        return populate(slot, bytes);
    }

    // Gives back what it keeps for later and has not used since the last call.
    virtual void trim() noexcept {}

    // Whether blocks are mapped by copying.  An installed block's slot then mostly has its pages
    // still, of no use to the engine, and withdrawing is cheaper into a slot that has some.
    virtual bool copies() const noexcept { return false; }

    // Maps the frame's content at the block, writable; the slot's pages are used up, or left if the
    // engine copies.
    virtual int install_writable(std::byte* block, std::byte* slot, size_t bytes,
                                 FilePlace place) noexcept = 0;

    // Whether a block of zeros is mapped, writable, without a slot full of them.
    virtual bool installs_zeros() const noexcept { return false; }
    // Does so.  After an error the slot holds the content, and what was written to it meanwhile.
    virtual int install_zeros(std::byte*, std::byte* /*slot*/, size_t, FilePlace) noexcept {
        return ENOSYS;
    }

    // Maps the frame's content at the block so that the next write faults.  If a write slipped in
    // before the protection held, *written is set and the block is left writable.
    virtual int install_read_only(std::byte* block, std::byte* slot, size_t bytes,
                                  bool* written) noexcept = 0;

    // Unmaps the block, read-only or writable, so that the slot holds all that was written to it.
    // Exact against running threads.  EAGAIN: refused, and the block is as it was; after another
    // error it may have become writable.
    virtual int withdraw(std::byte* block, std::byte* slot, size_t bytes,
                         FilePlace place) noexcept = 0;

    // install_writable() and withdraw() for neighbouring blocks with neighbouring slots, to
    // withdraw only such as are writable: all or nothing, and no other means are tried.
    virtual bool moves_runs() const noexcept { return false; }
    virtual int install_run(std::byte*, std::byte* /*slot*/, size_t) noexcept { return ENOSYS; }
    virtual int withdraw_run(std::byte*, std::byte* /*slot*/, size_t) noexcept { return ENOSYS; }
    // The same for such as are read-only; after an error `*lost_bytes` have no protection any more.
    virtual int withdraw_clean_run(std::byte*, std::byte* /*slot*/, size_t,
                                   size_t* /*lost_bytes*/) noexcept {
        return ENOSYS;
    }
    // install_read_only(), where no other thread can write meanwhile; else ENOTSUP.
    virtual int install_clean_run(std::byte*, std::byte* /*slot*/, size_t) noexcept {
        return ENOTSUP;
    }

    // Unmaps read-only pages and forgets their content; absent ones may lie between them.  For
    // engines that copy or serve parts.
    virtual int discard(std::byte*, size_t) noexcept { return ENOSYS; }

    // Lets a read-only block, or part of one, be written.
    virtual int allow_writes(std::byte* block, size_t bytes) noexcept = 0;

    // Whether withdraw(), install_writable() and install_read_only() do for parts, too.
    virtual bool moves_parts() const noexcept { return false; }
    // Whether blocks may be sparse, by the calls below on parts of a block (whole OS pages).
    virtual bool serves_parts() const noexcept { return false; }
    // Maps a copy of `content` at a part that is absent; all of it or nothing.
    virtual int install_part(std::byte*, const std::byte*, size_t, bool /*writable*/) noexcept {
        return ENOSYS;
    }
    // Gives pages of an empty slot a copy of read-only ones; all of it or nothing.
    virtual int fill(std::byte* /*slot*/, const std::byte*, size_t) noexcept { return ENOSYS; }
    // Makes a part read-only again, exact against running threads.
    virtual int forbid_writes(std::byte*, size_t) noexcept { return ENOSYS; }

    // The region ends: its pages go, and every access faults until it is unmapped.
    virtual int drop(std::byte* range, size_t bytes) noexcept {
        return sys::advise(range, bytes, MADV_DONTNEED);
    }

    virtual void abandon_in_child() noexcept = 0;
    // In a child that goes on with the memory: catches its accesses, too.  Afterwards the ranges
    // are watched again, and what the parent had protected, is protected.  Pages are shared with
    // other processes from then on, in the parent as well.
    virtual int become_child() noexcept { return ENOSYS; }
    virtual int watch_again(std::byte*, size_t) noexcept { return 0; }
    virtual bool loses_protection() const noexcept { return false; }
    virtual void note_shared_pages() noexcept {}

protected:
    // Whoever owns an engine knows its type (engines.cpp): a virtual destructor would bring
    // operator delete into code that fault handlers run.
    ~Engine() = default;
};

}  // namespace hanare::pager
