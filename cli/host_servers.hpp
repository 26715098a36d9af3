// SPDX-License-Identifier: Apache-2.0
//
// Memory servers of one program (DLM 2009, section 2: DLM-S): started on the machines of a host
// file by ssh, or what stands in for it, and ended with the program.  They share a secret that
// nobody else has: each reads it from its standard input, and ends when that does, so that none
// outlives us, however we end.
//
// By the main thread.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/memory_hosts.hpp"
#include "sys/file.hpp"
#include "sys/helper_program.hpp"

namespace hanare::cli {

struct HostServersPlan {
    std::vector<config::MemoryHost> hosts;  // at least one; without the computing one
    std::vector<std::string> rsh;           // the command and its arguments
    std::string program;                    // hanare, over there
    bool ignores_file_size_signal = false;  // SIGXFSZ, before we ignored it
};

class HostServers {
public:
    // Whatever can be wrong before a server is started.
    static Result<void> check(const HostServersPlan& plan);
    // When all of them are ready; otherwise none is left.
    static Result<HostServers> start(const HostServersPlan& plan);

    // The SPEC of all of them, in the order of the file.
    const std::string& store() const { return store_; }
    // Where processes of this user find the secret as long as we live: no file of it is left.
    std::string secret_file() const;

    // Waits for them, but not for ever.
    void end() noexcept;

private:
    HostServers() = default;

    sys::FileDescriptor secret_;
    std::vector<sys::HelperProgram> programs_;
    std::string store_;
};

}  // namespace hanare::cli
