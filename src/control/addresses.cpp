// SPDX-License-Identifier: Apache-2.0
#include "control/addresses.hpp"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "sys/local_socket.hpp"

namespace hanare::control {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".sock";
// A longer name is of no use: the address of a socket has 108 bytes.
constexpr size_t kDirectoryBytesMax = 107;

struct RuntimeDirectory {
    bool is_known = false;
    char path[kDirectoryBytesMax + 1] = {};
};
constinit RuntimeDirectory runtime;

// Empty when this user has none.
std::string socket_directory() {
    if (!runtime.is_known) note_runtime_directory();
    const std::string path = runtime.path;
    return path.starts_with('/') && sys::is_private_directory(path) ? path + "/hanare" : "";
}

std::string nameless_prefix() { return "hanare/" + std::to_string(geteuid()) + "/"; }

}  // namespace

std::string_view kind_name(Kind kind) noexcept {
    switch (kind) {
        case Kind::kProgram: return "program";
        case Kind::kPools: return "pools";
        case Kind::kRun: return "run";
    }
    return "";
}

void note_runtime_directory() noexcept {
    const char* const path = secure_getenv("XDG_RUNTIME_DIR");
    if (path != nullptr && std::strlen(path) <= kDirectoryBytesMax) {
        std::strcpy(runtime.path, path);
    }
    runtime.is_known = true;
}

std::vector<std::string> own_addresses(Kind kind) {
    const std::string name = std::string(kind_name(kind)) + "-" + std::to_string(getpid());
    const std::string directory = socket_directory();
    std::vector<std::string> addresses;
    if (!directory.empty() && sys::make_private_directory(directory)) {
        addresses.push_back(directory + "/" + name + std::string(kSuffix));
    }
    addresses.push_back("@" + nameless_prefix() + name);
    return addresses;
}

std::vector<std::string> all_addresses() {
    std::vector<std::string> addresses = sys::nameless_addresses(nameless_prefix());
    std::error_code error;
    const std::string directory = socket_directory();
    if (directory.empty()) return addresses;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
        if (entry->path().extension() == kSuffix) addresses.push_back(entry->path().string());
    }
    return addresses;
}

}  // namespace hanare::control
