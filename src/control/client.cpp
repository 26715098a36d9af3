// SPDX-License-Identifier: Apache-2.0
#include "control/client.hpp"

#include <unistd.h>

#include <cerrno>

#include "base/units.hpp"
#include "control/addresses.hpp"
#include "control/protocol.hpp"
#include "sys/local_socket.hpp"

namespace hanare::control {

namespace {

constexpr size_t kAnswerBytesMax = 16 * kMiB;

}  // namespace

Result<std::string> ask(const std::string& address, std::string_view request, int timeout_ms) {
    const auto socket = sys::connect_local(address);
    if (!socket) {
        if (socket.error().os_errno == ECONNREFUSED && has_file(address)) unlink(address.c_str());
        return std::unexpected(socket.error());
    }
    std::string line(kProtocolName);
    line += std::to_string(kProtocolVersion);
    line.append(" ").append(request).append("\n");
    sys::send_some(*socket, line);
    HANARE_TRY_ASSIGN(std::string text, sys::read_answer(*socket, kAnswerBytesMax, timeout_ms));
    if (text.empty())
        return fail_errno(HANARE_STATUS_SYSTEM, ECONNRESET, "%.150s", address.c_str());
    const size_t end = text.find('\n');
    const auto reply =
        parse_reply(end == text.npos ? std::string_view() : std::string_view(text).substr(0, end));
    if (!reply) return fail(HANARE_STATUS_SYSTEM, "its answer cannot be understood");
    text.erase(0, end + 1);
    if (text.size() != reply->bytes) {
        return fail(HANARE_STATUS_SYSTEM, "only %zu of %llu bytes of its answer came", text.size(),
                    static_cast<unsigned long long>(reply->bytes));
    }
    if (!reply->is_ok) return fail(HANARE_STATUS_SYSTEM, "it says: %.200s", text.c_str());
    return text;
}

}  // namespace hanare::control
