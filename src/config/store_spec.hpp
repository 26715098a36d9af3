// SPDX-License-Identifier: Apache-2.0
//
// Store SPECs: "file:DIR[?size=SIZE]" and "tcp://HOST[:PORT][?size=SIZE]".  In DIR "%3F" stands for
// '?' and "%25" for '%', so that every directory can be named.  Only the syntax is checked here;
// whether the directory or the server exists is the store's business.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "config/server_address.hpp"

namespace hanare::config {

enum class StoreKind : uint8_t { kFile, kServer };

struct StoreSpec {
    StoreKind kind = StoreKind::kFile;
    // Of a file: never empty, default_store_directory() when the SPEC names none.
    std::string directory;
    ServerAddress server;     // of a memory server
    uint64_t size_bytes = 0;  // 0: as large as needed
};

// NOT_SUPPORTED for kinds that are planned, INVALID_ARGUMENT for everything else.
Result<StoreSpec> parse_store_spec(std::string_view text);

// The SPEC of a directory, whatever characters its name has.
std::string file_store_spec(std::string_view directory);

// $TMPDIR, taken literally, unless it is empty; else /var/tmp.
std::string default_store_directory();
// Why that one: "from $TMPDIR", "$TMPDIR is not set".
std::string_view default_store_reason();

}  // namespace hanare::config
