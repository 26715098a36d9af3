// SPDX-License-Identifier: Apache-2.0
#include "sys/mappings.hpp"

#include <charconv>

#include "sys/text_file.hpp"

namespace hanare::sys {

namespace {
constexpr uint64_t kKernelDefault = 65530;
}  // namespace

Result<std::vector<uintptr_t>> mapping_starts() {
    HANARE_TRY_ASSIGN(const std::string text, read_text_file("/proc/self/maps"));
    std::vector<uintptr_t> starts;
    for (size_t line = 0; line < text.size();) {
        const size_t end = text.find('\n', line);
        const size_t next = end == std::string::npos ? text.size() : end + 1;
        uintptr_t start = 0;
        const char* const begin = text.data() + line;
        if (std::from_chars(begin, text.data() + next, start, 16).ec == std::errc{}) {
            starts.push_back(start);
        }
        line = next;
    }
    return starts;
}

uint64_t mapping_count_max() {
    const auto text = read_text_file("/proc/sys/vm/max_map_count");
    uint64_t count = 0;
    if (!text ||
        std::from_chars(text->data(), text->data() + text->size(), count).ec != std::errc{}) {
        return kKernelDefault;
    }
    return count;
}

}  // namespace hanare::sys
