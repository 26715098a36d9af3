// SPDX-License-Identifier: Apache-2.0
#include "cli/remote_forms.hpp"

namespace hanare::cli {
namespace {

constexpr StoreForm kForms[] = {
    {"server", 1, "tcp://%1", 1},
    {"mirror", 2, "mirror(tcp://%1,tcp://%2)", 2.02},
    {"parity_4_1", 5, "parity(4+1;tcp://%1,tcp://%2,tcp://%3,tcp://%4,tcp://%5)", 1.27},
};

}  // namespace

std::span<const StoreForm> store_forms() { return kForms; }

std::string spec_of(const StoreForm& form, const std::vector<std::string>& urls) {
    constexpr std::string_view kScheme = "tcp://";
    std::string spec;
    for (const char* at = form.spec; *at != '\0'; ++at) {
        if (*at != '%') {
            spec += *at;
            continue;
        }
        spec += urls[static_cast<size_t>(*++at - '1')].substr(kScheme.size());
    }
    return spec;
}

}  // namespace hanare::cli
