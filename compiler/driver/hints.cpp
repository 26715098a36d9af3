// SPDX-License-Identifier: Apache-2.0
#include "hints.hpp"

#include "message.hpp"

namespace hanare::driver {
namespace {

constexpr std::string_view kNoInitialiser =
    "a dlm array cannot be initialised: it would be as large a file; take the initialiser out and "
    "set the elements in the program (they are zero at first)";
constexpr std::string_view kNoLocal =
    "a dlm array in a function must be static: write 'static dlm', or move it out of the function";

// As gcc 12 and clang 19 have it; other languages than English are not known.
struct {
    std::string_view words, section, hint;
} const kKnown[] = {
    {"only zero initializers are allowed in section", ".lbss", kNoInitialiser},
    {"cannot have non-zero initializers", ".bss.dlm", kNoInitialiser},
    {"section attribute cannot be specified for local variables", "", kNoLocal},
    {"'section' attribute only applies to functions, global variables", "", kNoLocal},
};

}  // namespace

void Hints::look_at_line() {
    for (const auto& [words, section, hint] : kKnown) {
        if (line_.find(words) != std::string::npos && line_.find(section) != std::string::npos) {
            found_.insert(hint);
        }
    }
    line_.clear();
}

void Hints::hear(std::string_view text) {
    constexpr size_t kLineMax = 1 << 16;
    for (const char c : text) {
        if (c == '\n') {
            look_at_line();
        } else if (line_.size() < kLineMax) {
            line_ += c;
        }
    }
}

void Hints::say() const {
    for (const std::string_view hint : found_) driver::say(hint);
}

}  // namespace hanare::driver
