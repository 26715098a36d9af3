// SPDX-License-Identifier: Apache-2.0
//
// Lists of nodes as Slurm writes them: "a[01-03,7],b" is a01, a02, a03, a7 and b.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace hanare::job {

inline constexpr size_t kNodesMax = 65536;

// `what` is named in the error.
Result<std::vector<std::string>> expand_node_list(std::string_view what, std::string_view list);

}  // namespace hanare::job
