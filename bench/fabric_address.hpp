// SPDX-License-Identifier: Apache-2.0
//
// Where the target of `hanare bench fabric` is, as it tells the source in a line, and the way
// there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "bench/fabric_case.hpp"
#include "fabric/link.hpp"
#include "fabric/secret.hpp"

namespace hanare::bench {

struct FabricAddress {
    std::string host;
    uint16_t port = 0;
    uint16_t secure_port = 0;
    uint16_t raw_port = 0;
    fabric::Capability capability;
    std::string local;
    std::optional<fabric::Secret> secret;
};
Result<FabricAddress> parse_address(const std::string& text);

Result<std::unique_ptr<fabric::Link>> connect_by(const FabricAddress& target, FabricEngine engine);

}  // namespace hanare::bench
