// SPDX-License-Identifier: Apache-2.0
//
// The memory servers of `hanare bench dlm`: over loopback, and at the other end of links as slow as
// they are to be.  A link has its near end in a network of its own, of a process that keeps it, and
// in which programs are started.  All end with this object, or with the process.  Used by the main
// thread.
#pragma once

#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/server_process.hpp"
#include "sys/child.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

inline constexpr const char* kDlmFile = "file";
inline constexpr const char* kDlmServer = "server";
// Over links with the rates of `hanare bench remote`; the first is the paper's.
inline constexpr const char* kDlmServer10g = "server_10g";
inline constexpr const char* kDlmServer1g = "server_1g";
// As --stores takes them.
inline constexpr const char* kDlmStores[] = {kDlmFile, kDlmServer, kDlmServer10g, kDlmServer1g};

class DlmServers {
public:
    explicit DlmServers(const sys::Interrupt& interrupt) : interrupt_(interrupt) {}

    struct Place {
        std::string url;
        pid_t network_of = 0;  // the process in whose network it is reached; 0: in ours
    };
    // Of that store, which is not `file`; its server is started when it is first asked for.
    // NOT_SUPPORTED, PERMISSION, NOT_FOUND: there can be no such link here, and why.
    Result<Place> place_of(const std::string& store);

private:
    struct Link {
        sys::Child near;
        std::string url;
    };
    Result<Place> over_loopback();
    Result<Link> lay_link(const std::string& store) const;

    const sys::Interrupt& interrupt_;
    std::optional<ServerProcess> server_;
    std::map<std::string, Result<Link>> links_;  // by store
};

// The process that keeps a link: lays it, starts a memory server at the other end, and says where
// that is or why there is none.  Until its input ends.
Result<void> keep_dlm_link(const std::string& store, const sys::Interrupt& interrupt);

}  // namespace hanare::cli
