// SPDX-License-Identifier: Apache-2.0
//
// Programs load this, so without std::filesystem and streams, which would be set up at their start.
#include "control/addresses.hpp"

#include <dirent.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "sys/local_socket.hpp"

namespace hanare::control {

namespace {

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
    const std::string path = socket_directory();
    if (path.empty()) return addresses;
    const auto close = [](DIR* opened) { closedir(opened); };
    const std::unique_ptr<DIR, decltype(close)> directory(opendir(path.c_str()));
    if (directory == nullptr) return addresses;
    while (const dirent* const entry = readdir(directory.get())) {
        const std::string_view name = entry->d_name;
        if (name.ends_with(kSuffix)) addresses.push_back(path + "/" + std::string(name));
    }
    return addresses;
}

}  // namespace hanare::control
