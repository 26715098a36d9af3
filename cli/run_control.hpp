// SPDX-License-Identifier: Apache-2.0
//
// How `hanare ps` finds every `hanare run` of its user and asks it: each listens at
// $XDG_RUNTIME_DIR/hanare/PID.sock or, where there is no such directory, at the nameless address
// @hanare-UID-PID.  A request is one line: "statistics" is answered with one JSON object,
// everything else with "unknown request"; then the connection is closed.  A client that stalls
// holds up nobody. Used by one thread.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::cli {

class RunControl {
public:
    RunControl();   // without a socket, if none can be had, nobody is answered
    ~RunControl();  // removes the socket's file
    RunControl(const RunControl&) = delete;
    RunControl& operator=(const RunControl&) = delete;

    const std::string& address() const { return address_; }  // empty when there is none

    // What poll(2) is to wait for.
    void append_to(std::vector<pollfd>& polled) const;
    // Does what can be done without waiting.
    void serve(const std::function<std::string()>& statistics);

private:
    struct Client {
        sys::FileDescriptor socket;
        std::string request;
        std::string answer;
        uint64_t deadline_ns = 0;
    };

    void accept_clients();
    static bool is_done(Client& client, const std::function<std::string()>& statistics);

    std::string address_;
    sys::FileDescriptor listener_;
    std::vector<Client> clients_;
};

// Where a `hanare run` may listen, also one that has been killed.
std::vector<std::string> run_addresses();

// The answer to "statistics".  When nobody listens there any more, its file is removed and the
// error has `os_errno` ECONNREFUSED.
Result<std::string> ask_run(const std::string& address);

}  // namespace hanare::cli
