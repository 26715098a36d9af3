// SPDX-License-Identifier: Apache-2.0
#include "cli/secret_file.hpp"

#include <cstdlib>
#include <cstring>

#include "base/units.hpp"
#include "sys/memory.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::cli {
namespace {

constexpr const char* kVariable = "HANARE_SECRET_FILE";

}  // namespace

Result<SecretFile> SecretFile::make(const std::string& text) {
    SecretFile secret;
    HANARE_TRY_ASSIGN(secret.file_, sys::create_shared_memory(text.size()));
    HANARE_TRY_ASSIGN(const sys::Mapping mapping,
                      sys::Mapping::reserve(kOsPageBytes, kOsPageBytes));
    HANARE_TRY(sys::map_shared(mapping, secret.file_));
    std::memcpy(mapping.address(), text.data(), text.size());
    return secret;
}

SecretInUse::SecretInUse(const std::string& path) {
    if (const char* const before = std::getenv(kVariable)) {
        was_set_ = true;
        before_ = before;
    }
    setenv(kVariable, path.c_str(), 1);
}

SecretInUse::~SecretInUse() {
    if (was_set_) {
        setenv(kVariable, before_.c_str(), 1);
    } else {
        unsetenv(kVariable);
    }
}

}  // namespace hanare::cli
