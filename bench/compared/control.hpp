// SPDX-License-Identifier: Apache-2.0
//
// Control: a local socket between source and target of a compared system, by which they agree on
// what the target does, while the library is not asked to do anything.  Used by one thread at each
// end; who waits here sleeps.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::bench {

class Control {
public:
    explicit Control(sys::FileDescriptor socket) : socket_(std::move(socket)) {}

    // Between two processes of a machine that have nothing but the name in common.
    static Result<sys::FileDescriptor> listen(const std::string& name);
    static Result<Control> accept(const sys::FileDescriptor& listener);
    static Result<Control> connect(const std::string& name);

    Result<void> send(std::span<const std::byte> bytes);
    Result<void> receive(std::span<std::byte> bytes);
    // A byte if there is one; 0 if the other side has gone.
    std::optional<char> look();

    template <typename T>
    Result<void> send_value(const T& value) {
        return send(std::as_bytes(std::span(&value, 1)));
    }
    template <typename T>
    Result<T> receive_value() {
        T value = {};
        HANARE_TRY(receive(std::as_writable_bytes(std::span(&value, 1))));
        return value;
    }

private:
    sys::FileDescriptor socket_;
};

}  // namespace hanare::bench
