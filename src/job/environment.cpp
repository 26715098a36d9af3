// SPDX-License-Identifier: Apache-2.0
#include "job/environment.hpp"

#include <charconv>
#include <cstdlib>

#include "config/rules.hpp"
#include "job/job.hpp"
#include "job/wipe.hpp"
#include "sys/file.hpp"
#include "sys/host_address.hpp"
#include "sys/pipe.hpp"
#include "sys/sealed_memory.hpp"

namespace hanare::job {
namespace {

constexpr uint32_t kFirstInherited = 3;  // behind the standard ones
constexpr uint32_t kDescriptorMax = 1u << 20;
constexpr uint32_t kPortMax = 65535;

std::string range_text(uint32_t min, uint32_t max) {
    return "a number from " + std::to_string(min) + " to " + std::to_string(max);
}

std::unexpected<Error> not_set(const char* name, const char* other) {
    return fail(HANARE_STATUS_INVALID_ARGUMENT, "%s is set and %s is not; both are needed", other,
                name);
}

// As its text is at most.
constexpr size_t kSecretTextBytesMax = 2 * fabric::Secret::kBytes + 1;

// Sealed memory stays for the next program of this task; what can be read once is closed.
Result<fabric::Secret> secret_of_descriptor(int number) {
    if (!sys::is_sealed_memory(number)) {
        const sys::FileDescriptor inherited(number);
        unsetenv(kSecretDescriptorVariable);
        return fabric::Secret::read_descriptor(inherited.number());
    }
    HANARE_TRY_ASSIGN(std::string text, sys::read_sealed_memory(number, kSecretTextBytesMax));
    const WipeAtEnd wiping(text);
    HANARE_TRY_ASSIGN(const sys::FileDescriptor pipe,
                      sys::pipe_holding(std::as_bytes(std::span(text))));
    return fabric::Secret::read_descriptor(pipe.number());
}

}  // namespace

std::optional<std::string> variable(const char* name) {
    const char* const text = secure_getenv(name);
    if (text == nullptr) return std::nullopt;
    return std::string(text);
}

Result<uint32_t> parse_number(std::string_view what, std::string_view text, uint32_t min,
                              uint32_t max) {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) {
        return config::bad_value(what, text, "is out of range", range_text(min, max));
    }
    if (error != std::errc() || end != text.data() + text.size()) {
        return config::bad_value(what, text, "is not a number", range_text(min, max));
    }
    if (value < min || value > max) {
        return config::bad_value(what, text, "is out of range", range_text(min, max));
    }
    return value;
}

Result<uint32_t> number_variable(const char* name, uint32_t min, uint32_t max) {
    const auto text = variable(name);
    if (!text) return fail(HANARE_STATUS_NOT_FOUND, "%s is not set", name);
    return parse_number(name, *text, min, max);
}

Result<Place> place_variables(const char* rank_name, const char* size_name) {
    Place place;
    if (!variable(size_name)) return not_set(size_name, rank_name);
    if (!variable(rank_name)) return not_set(rank_name, size_name);
    HANARE_TRY_ASSIGN(place.size, number_variable(size_name, 1, Job::kTasksMax));
    const std::string what =
        std::string(rank_name) + " (with " + size_name + " " + std::to_string(place.size) + ")";
    HANARE_TRY_ASSIGN(place.rank, parse_number(what, *variable(rank_name), 0, place.size - 1));
    return place;
}

Result<Endpoint> parse_endpoint(std::string_view what, std::string_view text) {
    constexpr std::string_view kAllowed = "HOST:PORT, where an IPv6 address stands in brackets";
    const size_t colon = text.rfind(':');
    if (colon == text.npos || colon == 0) {
        return config::bad_value(what, text, "is not understood", kAllowed);
    }
    std::string_view host = text.substr(0, colon);
    const bool is_bracketed = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
    if (is_bracketed) host = host.substr(1, host.size() - 2);
    const std::string_view wrong = is_bracketed ? "[]" : ":[]";
    if (host.find_first_of(wrong) != host.npos) {
        return config::bad_value(what, text, "is not understood", kAllowed);
    }
    const std::string port_of = std::string(what) + ", port";
    HANARE_TRY_ASSIGN(const uint32_t port,
                      parse_number(port_of, text.substr(colon + 1), 1, kPortMax));
    return Endpoint{std::string(host), static_cast<uint16_t>(port)};
}

std::string text_of(const Endpoint& endpoint) {
    const bool is_six = endpoint.host.find(':') != std::string::npos;
    return (is_six ? "[" + endpoint.host + "]" : endpoint.host) + ":" +
           std::to_string(endpoint.port);
}

Result<std::optional<fabric::Secret>> take_secret() {
    const auto number = variable(kSecretDescriptorVariable);
    const auto path = variable(kSecretFileVariable);
    if (number && path) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "%s ('%.40s') and %s ('%.90s') are both set; allowed is one of them",
                    kSecretDescriptorVariable, number->c_str(), kSecretFileVariable, path->c_str());
    }
    if (path) {
        auto secret = fabric::Secret::read_file(*path);
        if (secret) return std::move(*secret);
        return fail(secret.error().status, "%s: %.220s", kSecretFileVariable, secret.error().text);
    }
    if (!number) return std::nullopt;
    HANARE_TRY_ASSIGN(const uint32_t descriptor, parse_number(kSecretDescriptorVariable, *number,
                                                              kFirstInherited, kDescriptorMax));
    auto secret = secret_of_descriptor(static_cast<int>(descriptor));
    if (secret) return std::move(*secret);
    return fail(secret.error().status, "%s: %.220s", kSecretDescriptorVariable,
                secret.error().text);
}

Result<std::optional<std::string>> host_variable() {
    auto host = variable(kHostVariable);
    if (host && !sys::is_numeric_address(*host)) {
        return config::bad_value(kHostVariable, *host, "is not understood",
                                 "a numeric IPv4 or IPv6 address of this machine");
    }
    return host;
}

}  // namespace hanare::job
