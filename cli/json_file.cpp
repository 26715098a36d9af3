// SPDX-License-Identifier: Apache-2.0
#include "cli/json_file.hpp"

namespace hanare::cli {

Result<JsonFile> JsonFile::open(const std::optional<std::string>& path) {
    JsonFile json;
    if (path) {
        HANARE_TRY_ASSIGN(json.file_, sys::OutputFile::open("--json", *path));
    }
    return json;
}

Result<void> JsonFile::write(const std::vector<bench::Record>& records) {
    return file_ ? file_->replace(bench::to_json(records).dump(1) + "\n") : Result<void>{};
}

}  // namespace hanare::cli
