// SPDX-License-Identifier: Apache-2.0
//
// Memory that faults when a test wants it to.  Included by tests only.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace hanare::sys::testing {

inline constexpr size_t kPageBytes = 4096;

// One page of a file of no length: an access raises SIGBUS until the file grows.
class FaultingPage {
public:
    FaultingPage() {
        file_ = memfd_create("hanare-hook-test", MFD_CLOEXEC);
        void* address = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
        if (file_ < 0 || address == MAP_FAILED) std::abort();
        address_ = static_cast<char*>(address);
    }
    FaultingPage(const FaultingPage&) = delete;
    FaultingPage& operator=(const FaultingPage&) = delete;
    ~FaultingPage() {
        munmap(address_, kPageBytes);
        close(file_);
    }

    volatile char* address() const { return address_; }
    bool contains(const void* address) const {
        return address >= address_ && address < address_ + kPageBytes;
    }
    void repair() const { resize(kPageBytes); }
    void break_again() const { resize(0); }
    void touch() const { *address() = 1; }

private:
    void resize(size_t bytes) const {
        if (ftruncate(file_, static_cast<off_t>(bytes)) != 0) std::abort();
    }

    int file_ = -1;
    char* address_ = nullptr;
};

}  // namespace hanare::sys::testing
