// SPDX-License-Identifier: Apache-2.0
//
// What launchers say by variables, checked: an error names the variable, its value and what is
// allowed.  The environment must not change meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "fabric/secret.hpp"

namespace hanare::job {

// Of a task below `hanare launch`, or whoever else sets them.
inline constexpr const char* kRankVariable = "HANARE_RANK";
inline constexpr const char* kSizeVariable = "HANARE_SIZE";
inline constexpr const char* kRendezvousVariable = "HANARE_RENDEZVOUS";
// Of every task, whoever started it.
inline constexpr const char* kHostVariable = "HANARE_HOST";
inline constexpr const char* kUcxVariable = "HANARE_COMM_UCX";
inline constexpr const char* kSecretDescriptorVariable = "HANARE_SECRET_FD";
inline constexpr const char* kSecretFileVariable = "HANARE_SECRET_FILE";

// Nothing when it is not set, or this process has more rights than who started it.
std::optional<std::string> variable(const char* name);

// `text` as the value of `what`, which is named in the error.
Result<uint32_t> parse_number(std::string_view what, std::string_view text, uint32_t min,
                              uint32_t max);
// NOT_FOUND when it is not set.
Result<uint32_t> number_variable(const char* name, uint32_t min, uint32_t max);

// Two variables that belong together.
struct Place {
    uint32_t rank = 0;
    uint32_t size = 0;
};
Result<Place> place_variables(const char* rank_name, const char* size_name);

struct Endpoint {
    std::string host;
    uint16_t port = 0;
};
// "HOST:PORT", where a numeric IPv6 host stands in brackets.
Result<Endpoint> parse_endpoint(std::string_view what, std::string_view text);
std::string text_of(const Endpoint& endpoint);

// HANARE_SECRET_FD; or HANARE_SECRET_FILE; or nothing.  A descriptor of sealed memory (memfd) stays
// open and named, for the next program of the same task.  Any other is read and closed and the
// variable taken away, so that no program which this one starts finds another file there.
Result<std::optional<fabric::Secret>> take_secret();

// HANARE_HOST, or nothing.
Result<std::optional<std::string>> host_variable();

}  // namespace hanare::job
