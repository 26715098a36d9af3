// SPDX-License-Identifier: Apache-2.0
#include "fabric/transport.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "base/prng.hpp"
#include "base/units.hpp"
#include "fabric/frame_cipher.hpp"
#include "sys/inject.hpp"
#include "sys/shared_memory.hpp"

namespace hanare::fabric {
namespace {

SessionKeys some_keys() {
    SessionKeys keys = {};
    keys.to_target.key.fill(std::byte{1});
    keys.to_source.key.fill(std::byte{2});
    return keys;
}

// A source and a target; or one of them and bare bytes.
struct Pair {
    Pair() {
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        source.emplace(sys::FileDescriptor(ends[0]));
        target.emplace(sys::FileDescriptor(ends[1]));
    }
    void seal(Transport::Opening opening) {
        EXPECT_TRUE(source->seal_with(some_keys(), Handshake::Side::kSource,
                                      Transport::Opening::kStraight));
        EXPECT_TRUE(target->seal_with(some_keys(), Handshake::Side::kTarget, opening));
    }
    std::optional<Transport> source;
    std::optional<Transport> target;
};

std::array<sys::Part, 3> parts_of(std::span<std::byte> data, Prng& prng) {
    const size_t first = prng.below(data.size() + 1);
    const size_t second = prng.below(data.size() - first + 1);
    return {{{data.data(), first},
             {data.data() + first, second},
             {data.data() + first + second, data.size() - first - second}}};
}

void check_stream(Pair& pair, uint64_t bytes_max) {
    Prng prng(bytes_max);
    std::deque<std::byte> under_way;
    size_t passed = 0;
    for (int turn = 0; turn < 2000; ++turn) {
        std::vector<std::byte> data(1 + prng.below(bytes_max));
        if (prng.below(2) == 0) {
            for (std::byte& byte : data) byte = static_cast<std::byte>(prng.next());
            const ptrdiff_t taken = pair.source->send(parts_of(data, prng));
            if (taken == -EAGAIN) continue;
            ASSERT_GT(taken, 0);
            under_way.insert(under_way.end(), data.begin(), data.begin() + taken);
        } else {
            const ptrdiff_t got = pair.target->receive(parts_of(data, prng));
            if (got == -EAGAIN) {
                ASSERT_FALSE(pair.target->has_received());
                const int flushed = pair.source->flush();
                ASSERT_TRUE(flushed == 0 || flushed == -EAGAIN);
                continue;
            }
            ASSERT_GT(got, 0);
            ASSERT_LE(static_cast<size_t>(got), under_way.size());
            ASSERT_TRUE(std::equal(data.begin(), data.begin() + got, under_way.begin()));
            under_way.erase(under_way.begin(), under_way.begin() + got);
            passed += static_cast<size_t>(got);
        }
    }
    EXPECT_GT(passed, 1000u);
}

TEST(Transport, AStreamOfBytesHoweverItIsCut) {
    for (const uint64_t bytes_max : {10, 1000, 100'000}) {
        Pair open;
        check_stream(open, bytes_max);
        for (const auto opening : {Transport::Opening::kStraight, Transport::Opening::kChecked}) {
            Pair sealed;
            sealed.seal(opening);
            check_stream(sealed, bytes_max);
        }
    }
}

// Frames and data in turn, both ways cut anywhere; what is data can be seen on the way.
TEST(Transport, DataThatIsLeftAsItIs) {
    constexpr uint32_t kFramedMax = 200;
    constexpr uint32_t kDataMax = 300'000;
    Pair pair;
    EXPECT_TRUE(pair.source->seal_with(some_keys(), Handshake::Side::kSource,
                                       Transport::Opening::kStraight, Protection::kSealedButData));
    EXPECT_TRUE(pair.target->seal_with(some_keys(), Handshake::Side::kTarget,
                                       Transport::Opening::kChecked, Protection::kSealedButData));
    ASSERT_TRUE(pair.source->leaves_data());
    Prng prng(1);
    for (int turn = 0; turn < 300; ++turn) {
        std::vector<std::byte> sent(prng.below(kFramedMax) + 1 + prng.below(kDataMax) + 1);
        for (std::byte& byte : sent) byte = static_cast<std::byte>(prng.next());
        const size_t framed = std::min<size_t>(1 + prng.below(kFramedMax), sent.size() - 1);
        const auto data_bytes = static_cast<uint32_t>(sent.size() - framed);
        std::vector<std::byte> received(sent.size());
        size_t gone = 0;
        size_t come = 0;
        bool expects = false;
        while (come != sent.size()) {
            const size_t of_frame = framed - std::min(framed, gone);
            const std::array<sys::Part, 2> out = {
                {{sent.data() + gone, of_frame},
                 {sent.data() + gone + of_frame, sent.size() - gone - of_frame}}};
            if (gone != sent.size()) {
                const ptrdiff_t moved = pair.source->send_with_data(out);
                ASSERT_TRUE(moved > 0 || moved == -EAGAIN);
                if (moved > 0) gone += static_cast<size_t>(moved);
            }
            ASSERT_TRUE(gone >= framed || pair.source->flush() == -EAGAIN);
            if (come == framed && !expects) {
                expects = true;
                ASSERT_TRUE(pair.target->expect_data(data_bytes));
            }
            // More room than there is data: what is behind it stays there.
            std::array<std::byte, 100> behind;
            const size_t most = 1 + prng.below(received.size() - come);
            const std::array<sys::Part, 2> in = {
                {{received.data() + come, expects ? most : std::min(most, framed - come)},
                 {behind.data(), come + most == received.size() && expects ? behind.size() : 0}}};
            const ptrdiff_t got = pair.target->receive(in);
            ASSERT_TRUE(got > 0 || (got == -EAGAIN && !pair.target->has_received())) << got;
            if (got > 0) come += static_cast<size_t>(got);
            ASSERT_LE(come, sent.size());
        }
        ASSERT_TRUE(received == sent) << turn;
    }
}

TEST(Transport, DataBeginsWhereAFrameEnds) {
    Pair pair;
    for (auto* const end : {&*pair.source, &*pair.target}) {
        EXPECT_TRUE(end->seal_with(
            some_keys(), end == &*pair.source ? Handshake::Side::kSource : Handshake::Side::kTarget,
            Transport::Opening::kChecked, Protection::kSealedButData));
    }
    std::array<std::byte, 20> some = {};
    const sys::Part all = {some.data(), some.size()};
    ASSERT_EQ(pair.source->send({&all, 1}), 20);
    const sys::Part half = {some.data(), 10};
    ASSERT_EQ(pair.target->receive({&half, 1}), 10);
    EXPECT_FALSE(pair.target->expect_data(2000));
    ASSERT_EQ(pair.target->receive({&half, 1}), 10);
    EXPECT_TRUE(pair.target->expect_data(2000));
}

// What a source sends, as bytes.
std::vector<std::byte> sealed_bytes(std::span<std::byte> data) {
    Pair pair;
    EXPECT_TRUE(pair.source->seal_with(some_keys(), Handshake::Side::kSource,
                                       Transport::Opening::kStraight));
    const sys::Part part = {data.data(), data.size()};
    EXPECT_EQ(pair.source->send({&part, 1}), static_cast<ptrdiff_t>(data.size()));
    std::vector<std::byte> bytes(data.size() + 100);
    const ssize_t got = recv(pair.target->descriptor(), bytes.data(), bytes.size(), 0);
    EXPECT_GT(got, 0);
    bytes.resize(static_cast<size_t>(got));
    return bytes;
}

// What a target makes of bytes; nothing of what is not genuine gets out.
ptrdiff_t received_of(std::span<const std::byte> bytes, std::vector<std::byte>& received) {
    Pair pair;
    EXPECT_TRUE(pair.target->seal_with(some_keys(), Handshake::Side::kTarget,
                                       Transport::Opening::kChecked));
    EXPECT_EQ(send(pair.source->descriptor(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    shutdown(pair.source->descriptor(), SHUT_WR);
    received.assign(1000, std::byte{0});
    ptrdiff_t all = 0;
    for (;;) {
        const sys::Part part = {received.data() + all, received.size() - static_cast<size_t>(all)};
        const ptrdiff_t got = pair.target->receive({&part, 1});
        if (got <= 0) {
            received.resize(static_cast<size_t>(all));
            return got;
        }
        all += got;
    }
}

TEST(Transport, ChangedCutAndRepeatedFrames) {
    std::vector<std::byte> data(50, std::byte{9});
    const std::vector<std::byte> sealed = sealed_bytes(data);
    ASSERT_EQ(sealed.size(), sizeof(uint32_t) + data.size() + FrameCipher::kTagBytes);
    std::vector<std::byte> received;
    EXPECT_EQ(received_of(sealed, received), 0);
    EXPECT_TRUE(received == data);
    for (size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
        std::vector<std::byte> changed = sealed;
        changed[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
        // A length that is larger waits for more, and meets the end.
        const ptrdiff_t end = received_of(changed, received);
        EXPECT_TRUE(end == -EBADMSG || (bit < 32 && end == 0)) << bit;
        EXPECT_TRUE(received.empty()) << bit;
    }
    for (size_t bytes = 0; bytes < sealed.size(); ++bytes) {
        EXPECT_EQ(received_of(std::span(sealed).first(bytes), received), 0);
        EXPECT_TRUE(received.empty()) << bytes;
    }
    std::vector<std::byte> twice = sealed;
    twice.insert(twice.end(), sealed.begin(), sealed.end());
    EXPECT_EQ(received_of(twice, received), -EBADMSG);
    EXPECT_TRUE(received == data);
}

TEST(Transport, LengthsThatCannotBe) {
    for (const uint32_t length :
         {0u, static_cast<uint32_t>(Transport::kFrameBytesMax) + 1, UINT32_MAX}) {
        std::vector<std::byte> bytes(100);
        std::memcpy(bytes.data(), &length, sizeof length);
        std::vector<std::byte> received;
        EXPECT_EQ(received_of(bytes, received), -EBADMSG) << length;
        EXPECT_TRUE(received.empty());
    }
}

// ---- through memory

struct RingPair {
    RingPair() {
        int ends[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
        const sys::FileDescriptor file = sys::create_shared_memory(Transport::kSharedBytes).value();
        source.emplace(sys::FileDescriptor(ends[0]), map(file), Handshake::Side::kSource);
        target.emplace(sys::FileDescriptor(ends[1]), map(file), Handshake::Side::kTarget);
    }
    ~RingPair() { sys::inject::disarm_all(); }
    static sys::Mapping map(const sys::FileDescriptor& file) {
        sys::Mapping memory = sys::Mapping::reserve(Transport::kSharedBytes, kOsPageBytes).value();
        EXPECT_TRUE(sys::map_shared(memory, file));
        return memory;
    }
    // The target has said that it sleeps; whether it would wake.
    bool is_woken_by_a_byte() {
        EXPECT_FALSE(target->ask_for_bell({.to_read = true}));
        std::byte byte{5};
        const sys::Part part = {&byte, 1};
        EXPECT_EQ(source->send({&part, 1}), 1);
        return sys::wait_for_socket(target->descriptor(), {.to_read = true}, 5000).to_read;
    }
    ptrdiff_t received() {
        target->take_bells();
        std::byte byte{0};
        const sys::Part part = {&byte, 1};
        return target->receive({&part, 1});
    }
    std::optional<Transport> source;
    std::optional<Transport> target;
};

TEST(RingTransport, ABellForWhichThereIsNoMemoryIsRungAgain) {
    RingPair pair;
    for (const int error : {ENOBUFS, ENOMEM}) {
        sys::inject::arm(sys::inject::Call::kMessage, error, 0, 5);
        EXPECT_TRUE(pair.is_woken_by_a_byte());
        EXPECT_EQ(pair.received(), 1);
        EXPECT_EQ(pair.received(), -EAGAIN);
    }
}

// Nobody waits for one that does not come.
TEST(RingTransport, ABellThatCannotBeRungEndsTheConnection) {
    RingPair pair;
    sys::inject::arm(sys::inject::Call::kMessage, ENOBUFS);
    EXPECT_TRUE(pair.is_woken_by_a_byte());
    EXPECT_EQ(pair.received(), 1);
    EXPECT_EQ(pair.received(), 0);
}

// A socket that is full of bells wakes its reader.
TEST(RingTransport, MoreBellsThanTheSocketHolds) {
    RingPair pair;
    std::byte byte{5};
    const sys::Part part = {&byte, 1};
    for (int i = 0; i < 5000; ++i) {
        pair.target->ask_for_bell({.to_read = true});
        ASSERT_EQ(pair.source->send({&part, 1}), 1);
    }
    EXPECT_TRUE(sys::wait_for_socket(pair.target->descriptor(), {.to_read = true}, 5000).to_read);
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(pair.received(), 1);
    EXPECT_EQ(pair.received(), -EAGAIN);
}

}  // namespace
}  // namespace hanare::fabric
