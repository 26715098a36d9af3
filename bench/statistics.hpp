// SPDX-License-Identifier: Apache-2.0
//
// What is reported of repeated measurements.  No state; any thread.
#pragma once

#include <cstddef>
#include <vector>

namespace hanare::bench {

struct Summary {
    double median = 0;  // mean of the middle two for an even number
    double min = 0;
    double max = 0;
    size_t runs = 0;
};

// All zero for no values.
Summary summarize(std::vector<double> values);

}  // namespace hanare::bench
