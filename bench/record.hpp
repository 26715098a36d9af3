// SPDX-License-Identifier: Apache-2.0
//
// One measured number as `--json` files hold it: a list of objects
// {"bench","case","system","metric","unit","median","min","max","runs","params"}.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/statistics.hpp"

namespace hanare::bench {

struct Record {
    std::string bench;
    std::string case_name;
    std::string system;
    std::string metric;
    std::string unit;
    Summary summary;
    nlohmann::json params = nlohmann::json::object();
};

nlohmann::json to_json(const std::vector<Record>& records);

}  // namespace hanare::bench
