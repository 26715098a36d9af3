// SPDX-License-Identifier: Apache-2.0
#include "cli/server_tenants.hpp"

#include <algorithm>

#include "base/units.hpp"
#include "config/rules.hpp"
#include "lease/messages.hpp"

namespace hanare::cli {
namespace {

using Tenant = server::MemoryServer::Settings::Tenant;

constexpr const char* kFlag = "--tenant";
constexpr const char* kAllowed = "NAME:SIZE:FILE";

bool is_name(const std::string& name) {
    const auto is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               std::string_view(".-_").find(c) != std::string_view::npos;
    };
    return !name.empty() && name.size() <= lease::kTenantNameBytes &&
           std::ranges::all_of(name, is_allowed);
}

Result<Tenant> read_tenant(const std::string& text) {
    const size_t end_of_name = text.find(':');
    const size_t end_of_size = text.find(':', std::min(end_of_name, text.size() - 1) + 1);
    if (end_of_name == text.npos || end_of_size == text.npos) {
        return config::bad_value(kFlag, text, "is not understood", kAllowed);
    }
    server::LeaseTable::Tenant settings;
    settings.name = text.substr(0, end_of_name);
    if (!is_name(settings.name)) {
        return config::bad_value(kFlag, settings.name, "is no name of a tenant",
                                 "1 to 16 letters, digits, dots, hyphens and underscores");
    }
    HANARE_TRY_ASSIGN(
        settings.quota_bytes,
        parse_lent_size(kFlag, text.substr(end_of_name + 1, end_of_size - end_of_name - 1)));
    auto secret = fabric::Secret::read_file(text.substr(end_of_size + 1));
    if (!secret) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT, "--tenant: %.230s", secret.error().text);
    }
    return Tenant{std::move(settings), std::move(*secret)};
}

// Nobody could tell whose a client is.
std::unexpected<Error> taken_twice(const char* what, const std::string& name) {
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "--tenant: %s has the %s of another", name.c_str(),
                what);
}

}  // namespace

Result<uint64_t> parse_lent_size(const char* flag, const std::string& text) {
    HANARE_TRY_ASSIGN(const uint64_t bytes, parse_size(flag, text));
    if (bytes >= lease::kExtentAlignmentBytes) return bytes;
    return config::bad_value(flag, text, "is too little",
                             format_size(lease::kExtentAlignmentBytes) + " and more");
}

Result<std::vector<Tenant>> read_tenants(const std::vector<std::string>& texts,
                                         const std::optional<fabric::Secret>& first) {
    std::vector<Tenant> tenants;
    if (!texts.empty() && !first) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "--tenant needs --secret-file, the secret of whose server it is");
    }
    for (const std::string& text : texts) {
        HANARE_TRY_ASSIGN(Tenant tenant, read_tenant(text));
        const auto is_same = [&](const fabric::Secret& secret) {
            return std::ranges::equal(secret.bytes(), tenant.secret.bytes());
        };
        const std::string& name = tenant.settings.name;
        if (is_same(*first)) return taken_twice("secret", name);
        for (const Tenant& other : tenants) {
            if (other.settings.name == name) return taken_twice("name", name);
            if (is_same(other.secret)) return taken_twice("secret", name);
        }
        tenants.push_back(std::move(tenant));
    }
    return tenants;
}

}  // namespace hanare::cli
