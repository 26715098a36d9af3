// SPDX-License-Identifier: Apache-2.0
#include "bench/record.hpp"

#include <cerrno>
#include <cstdio>

namespace hanare::bench {

nlohmann::json to_json(const std::vector<Record>& records) {
    nlohmann::json list = nlohmann::json::array();
    for (const Record& record : records) {
        list.push_back({{"bench", record.bench},
                        {"case", record.case_name},
                        {"system", record.system},
                        {"metric", record.metric},
                        {"unit", record.unit},
                        {"median", record.summary.median},
                        {"min", record.summary.min},
                        {"max", record.summary.max},
                        {"runs", record.summary.runs},
                        {"params", record.params}});
    }
    return list;
}

Result<void> write_records(const std::string& path, const std::vector<Record>& records) {
    std::FILE* file = std::fopen(path.c_str(), "we");
    if (file == nullptr) {
        return fail_errno(HANARE_STATUS_PERMISSION, errno, "--json: opening %s", path.c_str());
    }
    const std::string text = to_json(records).dump(1) + "\n";
    const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    if (std::fclose(file) != 0 || !written) {
        return fail_errno(HANARE_STATUS_SYSTEM, errno, "--json: writing %s", path.c_str());
    }
    return {};
}

}  // namespace hanare::bench
