// SPDX-License-Identifier: Apache-2.0
//
// A folder of our own, which goes with its object and all that is in it.  Used by one thread.
#pragma once

#include <string>

#include "base/result.hpp"
#include "sys/guardian.hpp"

namespace hanare::sys {

class TemporaryFolder {
public:
    // DIRECTORY/PREFIX-XXXXXX, for this user alone.  The guardian, if there is one, outlives the
    // object and deletes the folder if we cannot.
    static Result<TemporaryFolder> make(const std::string& directory, const std::string& prefix,
                                        Guardian* guardian = nullptr);

    TemporaryFolder(TemporaryFolder&& other) noexcept;
    TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
    ~TemporaryFolder();

    const std::string& path() const { return path_; }

private:
    TemporaryFolder() = default;

    Guardian* guardian_ = nullptr;
    std::string path_;
};

// With what is in it.  False: some of it is still there, perhaps because somebody adds to it.
bool remove_folder(const std::string& path) noexcept;

}  // namespace hanare::sys
