// SPDX-License-Identifier: Apache-2.0
#include "bench/statistics.hpp"

#include <algorithm>

namespace hanare::bench {

Summary summarize(std::vector<double> values) {
    if (values.empty()) return {};
    std::sort(values.begin(), values.end());
    const size_t half = values.size() / 2;
    const double median =
        values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
    return {median, values.front(), values.back(), values.size()};
}

}  // namespace hanare::bench
