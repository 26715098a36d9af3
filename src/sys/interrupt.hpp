// SPDX-License-Identifier: Apache-2.0
//
// Turns SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE into a flag and a readable descriptor, so that
// a command can undo what it changed on the machine before it ends.  One object at a time, made by
// the main thread; requested() and fd() may be used by any thread.
#pragma once

namespace hanare::sys {

class Interrupt {
public:
    Interrupt();
    ~Interrupt();  // restores the previous handlers
    Interrupt(const Interrupt&) = delete;
    Interrupt& operator=(const Interrupt&) = delete;

    // The first signal that came, 0 if none did.
    static int signal() noexcept;
    static bool requested() noexcept { return signal() != 0; }
    // Becomes readable with the first signal and stays so.
    int fd() const { return fd_; }
    // Ends the process as the signal would have, with default action.  After the clean-up.
    [[noreturn]] static void end_process();

private:
    int fd_ = -1;
};

}  // namespace hanare::sys
