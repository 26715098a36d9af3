// SPDX-License-Identifier: Apache-2.0
#include "sys/process_search.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "sys/text_file.hpp"

namespace hanare::sys {

namespace {

// Its numbers from here to the namespace that it is in itself.
struct Numbers {
    pid_t innermost = 0;  // 0: it has ended
    bool is_elsewhere = false;
};

Numbers numbers_of(const std::string& folder) {
    constexpr std::string_view kName = "\nNSpid:";
    const Result<std::string> status = read_text_file(folder + "/status");
    const size_t begin = status ? status->find(kName) : std::string::npos;
    if (begin == std::string::npos) return {};
    const std::string line = status->substr(begin, status->find('\n', begin + 1) - begin);
    const size_t last = line.rfind('\t');
    if (last == std::string::npos) return {};
    return {.innermost = static_cast<pid_t>(std::strtol(line.c_str() + last, nullptr, 10)),
            .is_elsewhere = line.find('\t') != last};
}

}  // namespace

std::optional<pid_t> find_process(uint64_t name_space, pid_t process) {
    const auto close = [](DIR* folder) { closedir(folder); };
    const std::unique_ptr<DIR, decltype(close)> all(opendir("/proc"), close);
    if (all == nullptr) return std::nullopt;
    bool is_certain = true;
    while (const dirent* const entry = readdir(all.get())) {
        const auto number = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
        if (number <= 0) continue;
        const std::string folder = std::string("/proc/") + entry->d_name;
        struct stat status = {};
        const bool is_told = stat((folder + "/ns/pid").c_str(), &status) == 0;
        if (is_told ? status.st_ino != name_space : errno == ENOENT || errno == ESRCH) continue;
        const Numbers numbers = numbers_of(folder);
        if (numbers.innermost != process) continue;
        if (is_told) return number;
        if (numbers.is_elsewhere) is_certain = false;  // another user's
    }
    return is_certain ? std::optional<pid_t>(0) : std::nullopt;
}

}  // namespace hanare::sys
