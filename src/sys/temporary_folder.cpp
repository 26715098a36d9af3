// SPDX-License-Identifier: Apache-2.0
#include "sys/temporary_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

namespace hanare::sys {

Result<TemporaryFolder> TemporaryFolder::make(const std::string& directory,
                                              const std::string& prefix, Guardian* guardian) {
    TemporaryFolder folder;
    std::string path = directory + "/" + prefix + "-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, errno, "creating a folder in %.150s",
                          directory.c_str());
    }
    folder.path_ = std::move(path);
    folder.guardian_ = guardian;
    if (guardian != nullptr) guardian->watch(Undo::kFolder, folder.path_);
    return folder;
}

TemporaryFolder::TemporaryFolder(TemporaryFolder&& other) noexcept
    : guardian_(std::exchange(other.guardian_, nullptr)), path_(std::exchange(other.path_, {})) {}

TemporaryFolder& TemporaryFolder::operator=(TemporaryFolder&& other) noexcept {
    std::swap(guardian_, other.guardian_);
    std::swap(path_, other.path_);
    return *this;
}

TemporaryFolder::~TemporaryFolder() {
    if (path_.empty()) return;
    static_cast<void>(remove_folder(path_));
    if (guardian_ != nullptr) guardian_->release(Undo::kFolder, path_);
}

bool remove_folder(const std::string& path) noexcept {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    return !error;
}

}  // namespace hanare::sys
