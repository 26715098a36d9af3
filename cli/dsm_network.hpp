// SPDX-License-Identifier: Apache-2.0
//
// The two networks of `hanare bench dsm --network veth`: this process enters one, a process that
// does nothing keeps the other, and launchers reach it by a command that takes HOST COMMAND... as
// ssh does.  Both are gone with the object and this process.  Used by the main thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/child.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

class DsmNetwork {
public:
    // For a process without other threads.  `folder` gets what launchers read; half of the
    // processes have room here, and half there.
    static Result<DsmNetwork> make(const std::string& folder, unsigned processes,
                                   const sys::Interrupt& interrupt);

    const std::string& remote_shell() const { return remote_shell_; }
    const std::string& hosts() const { return hosts_; }          // a file for `hanare launch`
    const std::string& mpi_hosts() const { return mpi_hosts_; }  // and for Open MPI

    // What the other process does, until its input ends.
    static Result<void> be_far_end();

private:
    explicit DsmNetwork(sys::Child far_end) : far_end_(std::move(far_end)) {}

    sys::Child far_end_;
    std::string remote_shell_;
    std::string hosts_;
    std::string mpi_hosts_;
};

}  // namespace hanare::cli
