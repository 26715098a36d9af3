// SPDX-License-Identifier: Apache-2.0
#include "remote/server_process.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "server/memory_server.hpp"

namespace hanare::test {

ServerProcess::ServerProcess(uint64_t memory_bytes, uint16_t port,
                             const std::optional<fabric::Secret>& secret) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    pid_ = fork();
    if (pid_ == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        auto server = server::MemoryServer::open(
            {.port = port, .memory_bytes = memory_bytes, .secret = secret});
        if (server && (*server)->start()) {
            const uint16_t found = (*server)->port();
            if (write(ends[1], &found, sizeof found) == sizeof found) {
                for (;;) pause();
            }
        }
        _exit(1);
    }
    close(ends[1]);
    const bool is_there = pid_ > 0 && read(ends[0], &port_, sizeof port_) == sizeof port_;
    close(ends[0]);
    if (!is_there) throw std::runtime_error("no memory server");
}

ServerProcess::~ServerProcess() { kill(); }

// When it has stopped, if that is what the signal does.
void ServerProcess::send(int signal_number) const {
    ::kill(pid_, signal_number);
    if (signal_number == SIGSTOP) waitpid(pid_, nullptr, WUNTRACED);
}

void ServerProcess::kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

}  // namespace hanare::test
