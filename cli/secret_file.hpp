// SPDX-License-Identifier: Apache-2.0
//
// How the pools of a benchmark come to the secret of its own servers.  Used by the main thread,
// while there is no other that looks at the environment.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::cli {

// A file without a name, which is gone when this process is.
class SecretFile {
public:
    static Result<SecretFile> make(const std::string& text);
    std::string path() const { return "/proc/self/fd/" + std::to_string(file_.number()); }

private:
    sys::FileDescriptor file_;
};

// As long as it lives, pools that are opened take the secret from that file, whatever the user's
// environment says.
class SecretInUse {
public:
    static constexpr const char* kNone = "none";
    explicit SecretInUse(const std::string& path);
    ~SecretInUse();
    SecretInUse(const SecretInUse&) = delete;
    SecretInUse& operator=(const SecretInUse&) = delete;

private:
    bool was_set_ = false;
    std::string before_;
};

}  // namespace hanare::cli
