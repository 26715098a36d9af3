// SPDX-License-Identifier: Apache-2.0
#include "cli/server_json.hpp"

#include <cinttypes>
#include <cstdio>

#include "lease/ask.hpp"

namespace hanare::cli {
namespace {

using nlohmann::ordered_json;

// As text: not everybody reads numbers of 64 bits exactly.
std::string name_of(uint64_t server) {
    char text[17];
    std::snprintf(text, sizeof text, "%016" PRIx64, server);
    return text;
}

}  // namespace

ordered_json server_json(const server::LeaseTable::Status& status) {
    ordered_json leases = ordered_json::array();
    for (const auto& row : status.leases) {
        leases.push_back({{"number", row.number},
                          {"client", row.client},
                          {"tenant", row.tenant},
                          {"bytes", row.bytes},
                          {"connections", row.connections},
                          {"age_s", row.age_s},
                          {"extents", row.extents}});
    }
    ordered_json tenants = ordered_json::array();
    for (const auto& row : status.tenants) {
        tenants.push_back({{"name", row.name},
                           {"quota_bytes", row.quota_bytes},
                           {"leased_bytes", row.leased_bytes}});
    }
    return {{"server", name_of(status.server)},      {"total_bytes", status.total_bytes},
            {"leased_bytes", status.leased_bytes},   {"free_bytes", status.free_bytes},
            {"unwiped_bytes", status.unwiped_bytes}, {"touched_bytes", status.touched_bytes},
            {"draining", status.is_draining},        {"leases_opened", status.leases_opened},
            {"leases_ended", status.leases_ended},   {"leases_abandoned", status.leases_abandoned},
            {"refusals", status.refusals},           {"leases", std::move(leases)},
            {"tenants", std::move(tenants)}};
}

ordered_json server_json(const lease::Answer& answer, const std::vector<lease::StatusRow>& rows) {
    ordered_json leases = ordered_json::array();
    for (const lease::StatusRow& row : rows) {
        leases.push_back({{"number", row.number},
                          {"client", lease::client_of(row)},
                          {"tenant", lease::tenant_of(row)},
                          {"bytes", row.bytes},
                          {"connections", row.connections},
                          {"age_s", row.age_s}});
    }
    return {{"server", name_of(answer.server)},
            {"total_bytes", answer.total_bytes},
            {"leased_bytes", answer.leased_bytes},
            {"free_bytes", answer.free_bytes},
            {"draining", (answer.flags & lease::kDraining) != 0},
            {"leases", std::move(leases)}};
}

}  // namespace hanare::cli
