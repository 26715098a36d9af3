// SPDX-License-Identifier: Apache-2.0
//
// The memory servers of `hanare bench dlm`: one over loopback, and one at a time at the other end
// of a link as slow as it is to be, in a network of its own.  All end with this object, or with the
// process.  Used by the main thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/remote_far.hpp"
#include "cli/server_process.hpp"
#include "sys/interrupt.hpp"

namespace hanare::cli {

inline constexpr const char* kDlmFile = "file";
inline constexpr const char* kDlmServer = "server";
// As --stores takes them; the rates are those of `hanare bench remote`, the first the paper's.
inline constexpr const char* kDlmStores[] = {kDlmFile, kDlmServer, "server_10g", "server_1g"};

class DlmServers {
public:
    // What these stores take.  For a link this process, and what it starts, goes to a network of
    // its own; before it has threads.
    static Result<DlmServers> open(const std::vector<std::string>& stores,
                                   const sys::Interrupt& interrupt);

    // The URL of that store's server, which is started if need be.  NOT_SUPPORTED, PERMISSION,
    // NOT_FOUND: there can be no such link here, and why.
    Result<std::string> url_of(const std::string& store);

private:
    explicit DlmServers(const sys::Interrupt& interrupt) : interrupt_(&interrupt) {}
    Result<void> lay_link(const std::string& store);

    const sys::Interrupt* interrupt_;
    std::optional<Error> no_network_;  // why there are no links
    std::optional<ServerProcess> server_;
    std::string linked_;  // the store at the other end of the link
    std::optional<RemoteFarProcess> far_;
};

}  // namespace hanare::cli
