// SPDX-License-Identifier: Apache-2.0
//
// A terminal that shows a screen which is drawn again and again, and tells of keys at once.  What
// it was before comes back with the end of the object; until then it belongs to one thread.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string_view>

namespace hanare::sys {

struct ScreenSize {
    size_t columns = 80;
    size_t rows = 24;
};

class Terminal {
public:
    // Whether standard output is one that can move its cursor (TERM).
    static bool is_there();

    Terminal();
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    ScreenSize size() const noexcept;  // now: people change it
    // Lines behind the last row, and what is behind the last column, are left out.
    void show(std::string_view lines) const;
    // Waits for a key, for `other` to become readable, or for the time to pass.  0: no key.
    char wait_for_key(int other, int timeout_ms) const noexcept;

private:
    bool has_keys_ = false;
    termios before_ = {};
};

}  // namespace hanare::sys
