// SPDX-License-Identifier: Apache-2.0
//
// `hanare dsm-report FILE`, and `hanare launch --dsm-report FILE` when the tasks have ended: what
// HANARE_DSM_REPORT has recorded, its places of code as source lines, by addr2line where that and
// the program's debugging information are.  Used by the main thread.
#pragma once

#include <string>

#include "base/result.hpp"

namespace hanare::cli {

// NOT_FOUND: there is no such file.
Result<std::string> read_dsm_report(const std::string& path);

}  // namespace hanare::cli
