// SPDX-License-Identifier: Apache-2.0
#include "sys/pipe.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "sys/input_relay.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::sys {
namespace {

constexpr int kPatience_ms = 20'000;

std::vector<std::byte> numbers(size_t count) {
    std::vector<std::byte> bytes(count);
    for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 31 + i / 256);
    return bytes;
}

TEST(Pipe, HoldsWhatWasPutIntoIt) {
    const auto bytes = numbers(kPipeBytesMin);
    const FileDescriptor pipe = pipe_holding(bytes).value();
    std::vector<std::byte> got(kPipeBytesMin);
    ASSERT_TRUE(read_exactly(pipe.number(), std::span(got).first(100), kPatience_ms));
    ASSERT_TRUE(read_exactly(pipe.number(), std::span(got).subspan(100), kPatience_ms));
    EXPECT_EQ(got, bytes);
    EXPECT_EQ(read_exactly(pipe.number(), {got.data(), 1}, kPatience_ms).error().status,
              HANARE_STATUS_NOT_FOUND);
}

TEST(Pipe, NothingComesInTime) {
    const Pipe pipe = make_pipe().value();
    std::byte byte{};
    EXPECT_EQ(read_exactly(pipe.from.number(), {&byte, 1}, 10).error().status,
              HANARE_STATUS_TIMEOUT);
    const FileDescriptor nothing = open_nothing().value();
    EXPECT_EQ(read_exactly(nothing.number(), {&byte, 1}, 10).error().status,
              HANARE_STATUS_NOT_FOUND);
}

TEST(InputRelay, HandsOnMoreThanAPipeHolds) {
    Pipe source = make_pipe().value();
    Pipe sink = make_pipe().value();
    const auto sent = numbers(1 << 20);
    std::thread writer([&] {
        size_t at = 0;
        while (at < sent.size()) {
            const ssize_t put = write(source.to.number(), sent.data() + at, sent.size() - at);
            ASSERT_GT(put, 0);
            at += static_cast<size_t>(put);
        }
        source.to.close();
    });
    std::vector<std::byte> got(sent.size());
    bool is_all = false;
    std::thread reader([&] {
        std::byte more{};
        is_all = read_exactly(sink.from.number(), got, kPatience_ms) &&
                 read(sink.from.number(), &more, 1) == 0;
    });
    InputRelay relay(source.from.number(), std::move(sink.to));
    while (!relay.is_over()) {
        const bool reads = relay.waits_to_read();
        const Ready ready = wait_for_socket(relay.descriptor(),
                                            {.to_read = reads, .to_write = !reads}, kPatience_ms);
        ASSERT_TRUE(ready.to_read || ready.to_write);
        relay.go_on();
    }
    writer.join();
    reader.join();
    EXPECT_TRUE(is_all);
    EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace hanare::sys
