// SPDX-License-Identifier: Apache-2.0
//
// Store SPECs: "file:DIR[?size=SIZE]" and "tcp://HOST[:PORT][?size=SIZE]", and several of them as
// one: "tier(A,B,...)", filled in that order; "mirror(A,B,...)", of which all keep the same, or two
// where there are more (the others are spares); "parity(K+1;A,B,...)", with K of 2, 4 or 8.
//
// In DIR "%3F" stands for '?', "%25" for '%', "%28", "%29" and "%2C" for '(', ')' and ',', so that
// every directory can be named.  Only the syntax is checked here; whether the directory or the
// server exists is the store's business.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "config/server_address.hpp"

namespace hanare::config {

enum class StoreKind : uint8_t { kFile, kServer, kTier, kMirror, kParity };

struct StoreSpec {
    StoreKind kind = StoreKind::kFile;
    // Of a file: never empty, default_store_directory() when the SPEC names none.
    std::string directory;
    ServerAddress server;     // of a memory server
    uint64_t size_bytes = 0;  // 0: as large as needed
    uint32_t data = 0;        // of parity: how many stores' worth of data beside one of parity
    std::vector<StoreSpec> members = {};  // of those that are several
};

inline constexpr std::string_view kStoreSpecsAllowed =
    "auto, file:DIR[?size=SIZE], tcp://HOST[:PORT][?size=SIZE], tier(A,B), mirror(A,B) or "
    "parity(4+1;A,B,C,D,E)";

// INVALID_ARGUMENT: it is none.
Result<StoreSpec> parse_store_spec(std::string_view text);

// Whether it is a server, or has one among its members.
bool uses_servers(const StoreSpec& spec) noexcept;

// The SPEC of a directory, whatever characters its name has.
std::string file_store_spec(std::string_view directory);

// The text of a SPEC that means the same.
std::string format_store_spec(const StoreSpec& spec);

// The SPEC of several stores that are filled in this order; of one, itself.
std::string tier_spec(const std::vector<std::string>& specs);

// $TMPDIR, taken literally, unless it is empty; else /var/tmp.
std::string default_store_directory();
// Why that one: "from $TMPDIR", "$TMPDIR is not set".
std::string_view default_store_reason();

}  // namespace hanare::config
