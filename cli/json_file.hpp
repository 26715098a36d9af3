// SPDX-License-Identifier: Apache-2.0
//
// The file of a measuring command's `--json`.  It is opened before anything is measured, keeps what
// is in it until there are results, and is gone again if it was new and there are none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "bench/record.hpp"
#include "sys/output_file.hpp"

namespace hanare::cli {

class JsonFile {
public:
    // Without a path there is no file and write() does nothing.
    static Result<JsonFile> open(const std::optional<std::string>& path);

    Result<void> write(const std::vector<bench::Record>& records);

private:
    std::optional<sys::OutputFile> file_;
};

}  // namespace hanare::cli
