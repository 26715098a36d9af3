// SPDX-License-Identifier: Apache-2.0
//
// A process that undoes what its parent has changed on the machine when the parent ends without
// doing so itself, as by `kill -9`.  It has a session of its own, takes no signals, keeps nothing
// of the parent's open, and learns of the parent's end from a socket that the kernel closes.
// What is to be undone is registered before it is done and released after it has been undone.
// Objects are used by one thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::sys {

// How a path is undone.
enum class Undo : char {
    kCgroup = 'c',      // removed, once its processes have ended
    kController = 'm',  // a cgroup.subtree_control: the memory controller taken out again
    kSwapFile = 's',    // turned off and deleted
    kZramDevice = 'z',  // turned off and removed
    kFile = 'f',        // deleted
    kFolder = 'd',      // deleted with what is in it
};

class Guardian {
public:
    // Forks, so there must be no other thread yet.  When it returns the guardian is on guard.
    static Result<Guardian> start();

    Guardian(Guardian&& other) noexcept;
    Guardian& operator=(Guardian&& other) noexcept;
    ~Guardian();  // what is still registered is undone; waits for that

    // Undone in the order of registration, but cgroups first.
    void watch(Undo kind, const std::string& path) noexcept { tell('+', kind, path); }
    void release(Undo kind, const std::string& path) noexcept { tell('-', kind, path); }
    pid_t pid() const { return pid_; }

private:
    Guardian() = default;
    void tell(char what, Undo kind, const std::string& path) noexcept;

    pid_t pid_ = -1;
    FileDescriptor socket_;
};

}  // namespace hanare::sys
