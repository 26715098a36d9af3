// SPDX-License-Identifier: Apache-2.0
#include "sys/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

namespace hanare::sys {
namespace {

constexpr mode_t kMode = 0666;  // less the umask

std::string real_path(const std::string& path) {
    char* const found = realpath(path.c_str(), nullptr);
    const std::string result = found != nullptr ? found : "";
    std::free(found);
    return result;
}

}  // namespace

Result<OutputFile> OutputFile::open(std::string what, std::string path) {
    if (path.empty()) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s: the path is empty; name a file to write",
                    what.c_str());
    }
    OutputFile output;
    constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
    int number = above_standard(::open(path.c_str(), kFlags));
    const bool is_new = number < 0 && errno == ENOENT;
    if (is_new) number = above_standard(::open(path.c_str(), kFlags | O_CREAT, kMode));
    if (number < 0) {
        return fail_errno(HANARE_STATUS_INVALID_ARGUMENT, errno, "%s: cannot write %s",
                          what.c_str(), path.c_str());
    }
    output.file_ = FileDescriptor(number);
    if (is_new) output.created_path_ = real_path(path);  // links are followed
    output.what_ = std::move(what);
    output.path_ = std::move(path);
    return output;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : what_(std::move(other.what_)),
      path_(std::move(other.path_)),
      file_(std::move(other.file_)),
      created_path_(std::exchange(other.created_path_, {})) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
    std::swap(what_, other.what_);
    std::swap(path_, other.path_);
    std::swap(file_, other.file_);
    std::swap(created_path_, other.created_path_);
    return *this;
}

OutputFile::~OutputFile() {
    if (created_path_.empty()) return;
    struct stat ours = {};
    struct stat named = {};
    // By now the name may be another file's.
    if (fstat(file_.number(), &ours) == 0 && lstat(created_path_.c_str(), &named) == 0 &&
        ours.st_dev == named.st_dev && ours.st_ino == named.st_ino) {
        unlink(created_path_.c_str());
    }
}

Result<void> OutputFile::replace(std::string_view text) {
    const auto failed = [this] {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "%s: writing %s", what_.c_str(),
                          path_.c_str());
    };
    struct stat status = {};
    const bool is_regular = fstat(file_.number(), &status) == 0 && S_ISREG(status.st_mode);
    if (is_regular && ftruncate(file_.number(), 0) != 0) return failed();
    while (!text.empty()) {
        const ssize_t put = write(file_.number(), text.data(), text.size());
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return failed();
        text.remove_prefix(static_cast<size_t>(put));
    }
    created_path_.clear();
    return {};
}

}  // namespace hanare::sys
