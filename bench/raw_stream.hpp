// SPDX-License-Identifier: Apache-2.0
//
// What `hanare bench remote` compares memory servers with: one socket, used by hand, that moves the
// same bytes in one direction, and small requests for round trips.  Who has nothing to do sleeps:
// two ends that poll get in each other's way where there are few processors.  Both ends; each is
// used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::bench {

// The other end's part, until the near end closes.
Result<void> serve_raw_stream(const sys::FileDescriptor& socket, std::span<std::byte> memory);

class RawStream {
public:
    static Result<RawStream> connect(const std::string& host, uint16_t port);

    // Seconds until the other end says that it has all of it; or until all of it is here.  From or
    // to the beginning of the other end's memory.
    Result<double> put(std::span<std::byte> data);
    Result<double> get(std::span<std::byte> data);

private:
    explicit RawStream(sys::FileDescriptor socket) : socket_(std::move(socket)) {}

    sys::FileDescriptor socket_;
};

}  // namespace hanare::bench
