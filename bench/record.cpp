// SPDX-License-Identifier: Apache-2.0
#include "bench/record.hpp"

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

}  // namespace hanare::bench
