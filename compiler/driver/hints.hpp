// SPDX-License-Identifier: Apache-2.0
//
// What a compiler's own message about a `dlm` array means, and what to do.
#pragma once
#include <set>
#include <string>
#include <string_view>

namespace hanare::driver {

// Listens to what a compiler says.  One thread.
class Hints {
public:
    void hear(std::string_view text);
    // Each once, when the compiler has ended.
    void say() const;

private:
    std::string line_;  // as far as it has come
    std::set<std::string_view> found_;

    void look_at_line();
};

}  // namespace hanare::driver
