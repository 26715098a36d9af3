// SPDX-License-Identifier: Apache-2.0
//
// Sizes, store SPECs, every rule of options.def and the configuration file: no input may crash
// them, and what they accept must have the properties that the rest of Hanare relies on.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/units.hpp"
#include "config/file.hpp"
#include "config/memory_hosts.hpp"
#include "config/nearest.hpp"
#include "config/options.hpp"
#include "config/rules.hpp"
#include "config/server_address.hpp"
#include "config/store_spec.hpp"

namespace hanare::config {
namespace {

// An accepted value is printed in a form that is accepted again and means the same.
template <typename Rule>
void check_rule(const Rule& rule, std::string_view text) {
    const auto value = rule.parse("fuzz", text);
    if (!value) {
        HANARE_ASSERT(value.error().status != HANARE_STATUS_OK && value.error().text[0] != '\0');
        return;
    }
    const auto again = rule.parse("fuzz", rule.format(*value));
    HANARE_ASSERT(again.has_value() && *again == *value);
}

// What is accepted is printed as the same address.
void check_address(std::string_view text) {
    if (const auto address = parse_server_address(text)) {
        HANARE_ASSERT(!address->host.empty() && address->port != 0);
        HANARE_ASSERT(parse_server_address(server_url(*address)) == *address);
    }
    if (const auto address = parse_listen_address("fuzz", text)) {
        HANARE_ASSERT(parse_listen_address("fuzz", host_and_port(*address)) == *address);
    }
}

void check_spec(const StoreSpec& spec) {
    HANARE_ASSERT(spec.directory.find('\0') == std::string::npos);
    switch (spec.kind) {
        case StoreKind::kFile: HANARE_ASSERT(!spec.directory.empty()); break;
        case StoreKind::kServer: HANARE_ASSERT(!spec.server.host.empty()); break;
        case StoreKind::kTier:
        case StoreKind::kMirror: HANARE_ASSERT(spec.members.size() >= 2); break;
        case StoreKind::kParity: HANARE_ASSERT(spec.members.size() > spec.data); break;
    }
    for (const StoreSpec& member : spec.members) check_spec(member);
}

void check_text(std::string_view text) {
    check_address(text);
    if (const auto size = parse_size("fuzz", text)) HANARE_ASSERT(*size > 0 && *size < 1ull << 63);
    if (const auto spec = parse_store_spec(text)) check_spec(*spec);
#define OPTION(type, name, key, default_text, rule, doc) check_rule(rule, text);
#include "config/options.def"
#undef OPTION
    for (const char c : in_quotes(text)) HANARE_ASSERT(static_cast<unsigned char>(c) >= 0x20);
}

void check_hosts(std::string_view text) {
    const auto hosts = parse_memory_hosts("hosts", text);
    if (!hosts) return;
    HANARE_ASSERT(!hosts->empty());
    for (const MemoryHost& host : *hosts) {
        HANARE_ASSERT(host.bytes > 0 && !host.name.empty() && !host.name.starts_with('-'));
        HANARE_ASSERT(host.name.find_first_of(" \t'\"$;`\\") == std::string::npos);
    }
}

void check_file(std::string_view text) {
    const auto entries = parse_file_text(text, "fuzz.toml");
    if (!entries) return;
    for (const FileEntry& entry : *entries) check_text(entry.text);
}

}  // namespace
}  // namespace hanare::config

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    const std::string_view text(reinterpret_cast<const char*>(data), bytes);
    hanare::config::check_text(text);
    hanare::config::check_file(text);
    hanare::config::check_hosts(text);
    return 0;
}
