// SPDX-License-Identifier: Apache-2.0
//
// Opening and ending fault engines; normal context only.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "pager/fault/engine.hpp"

namespace hanare::pager {

enum class EngineChoice { kAuto, kSigbusMove, kSigbusCopy, kSegvRemap, kThread, kShared };

using EngineOwner = std::unique_ptr<Engine, void (*)(Engine*)>;

// kAuto takes the first that works of sigbus-move (moves pages: fastest), sigbus-copy (kernels
// without UFFDIO_MOVE; a copy per fault) and segv-remap (userfaultfd is refused; mappings per
// block).  The others are for those who ask.  NOT_SUPPORTED where the kernel lacks what the chosen
// one needs.
Result<EngineOwner> open_engine(EngineChoice choice);

}  // namespace hanare::pager
