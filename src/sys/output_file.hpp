// SPDX-License-Identifier: Apache-2.0
//
// A file for results that come later: opened before the work, so that a path which cannot be
// written is found out in time, and left as it was until the results are there.
// Objects are used by one thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::sys {

class OutputFile {
public:
    // Creates the file where there is none.  `what` begins the error texts ("--json");
    // INVALID_ARGUMENT when it cannot be opened for writing.
    static Result<OutputFile> open(std::string what, std::string path);

    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&& other) noexcept;
    // Deletes a file that open() created and replace() has not filled.
    ~OutputFile();

    // Puts `text` in the place of what is in the file.
    Result<void> replace(std::string_view text);

private:
    OutputFile() = default;

    std::string what_;
    std::string path_;
    FileDescriptor file_;
    std::string created_path_;  // real path of what open() created; empty once it is filled
};

}  // namespace hanare::sys
