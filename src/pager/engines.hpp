// SPDX-License-Identifier: Apache-2.0
//
// Opening and ending fault engines; normal context only.
#pragma once

#include <memory>

#include "base/result.hpp"
#include "pager/fault/engine.hpp"

namespace hanare::pager {

enum class EngineChoice { kAuto, kSigbusMove, kSigbusCopy };

using EngineOwner = std::unique_ptr<Engine, void (*)(Engine*)>;

// kAuto takes the best that the kernel offers.  NOT_SUPPORTED where it lacks what is needed.
Result<EngineOwner> open_engine(EngineChoice choice);

}  // namespace hanare::pager
