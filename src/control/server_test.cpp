// SPDX-License-Identifier: Apache-2.0
#include "control/server.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "control/client.hpp"
#include "control/protocol.hpp"
#include "sys/local_socket.hpp"

namespace hanare::control {
namespace {

namespace fs = std::filesystem;

std::string string_of(std::string_view text) {
    char memory[256];
    Answer answer(memory, sizeof memory);
    return std::string(answer.string(text).view());
}

TEST(Answer, SeparatesWhatNeedsIt) {
    char memory[256];
    Answer answer(memory, sizeof memory);
    answer.open('{').member("a", 1).name("b").open('[').number(0).number(UINT64_MAX).open('[');
    answer.close(']').close(']').member("c", "x").close('}');
    EXPECT_EQ(answer.view(), R"({"a":1,"b":[0,18446744073709551615,[]],"c":"x"})");
    EXPECT_TRUE(answer.is_complete());
}

TEST(Answer, StringsAreValidWhateverIsInThem) {
    EXPECT_EQ(string_of("a\"b\\c\n\x01"), R"("a\"b\\c\u000a\u0001")");
    EXPECT_EQ(string_of("\u96e2\u308c\u00e9\U0001f600"), "\"\u96e2\u308c\u00e9\U0001f600\"");
    EXPECT_EQ(string_of("\x80x\xc3"), "\"?x?\"");          // alone, cut off
    EXPECT_EQ(string_of("\xc0\xaf"), "\"??\"");            // overlong
    EXPECT_EQ(string_of("\xed\xa0\x80"), "\"???\"");       // a surrogate
    EXPECT_EQ(string_of("\xf4\x90\x80\x80"), "\"????\"");  // beyond the last character
    EXPECT_EQ(string_of(std::string_view("\0", 1)), R"("\u0000")");
}

TEST(Answer, SaysWhenSomethingDidNotFit) {
    char memory[4];
    Answer answer(memory, sizeof memory);
    answer.text("1234");
    EXPECT_TRUE(answer.is_complete());
    answer.text("5");
    EXPECT_FALSE(answer.is_complete());
    EXPECT_EQ(answer.view(), "1234");
}

TEST(Protocol, Lines) {
    ASSERT_TRUE(parse_request("hanare/12 some thing"));
    EXPECT_EQ(parse_request("hanare/12 some thing")->version, 12u);
    EXPECT_EQ(parse_request("hanare/12 some thing")->name, "some thing");
    for (const char* const line : {"", "hanare", "hanare/", "hanare/1", "hanare/x y", "hanare/-1 x",
                                   "hanare/99999999999 x", "statistics", "Hanare/1 x"}) {
        EXPECT_FALSE(parse_request(line)) << line;
    }
    ASSERT_TRUE(parse_reply("hanare/1 ok 17"));
    EXPECT_TRUE(parse_reply("hanare/1 ok 17")->is_ok);
    EXPECT_EQ(parse_reply("hanare/1 error 5")->bytes, 5u);
    for (const char* const line :
         {"hanare/1 ok", "hanare/1 ok x", "hanare/1 ok 1x", "hanare/1 no 1", "hanare/1 ok -1"}) {
        EXPECT_FALSE(parse_reply(line)) << line;
    }
}

constexpr size_t kLongBytes = size_t{3} << 20;

void answer_short(Answer& answer, void* context) {
    answer.text("short ").decimal(*static_cast<uint64_t*>(context));
}
void answer_long(Answer& answer, void*) {
    for (size_t i = 0; i < kLongBytes; ++i) answer.text("x");
}
void answer_endless(Answer& answer, void*) {
    while (answer.is_complete()) answer.text("x");
}
constexpr Request kRequests[] = {
    {"short", answer_short}, {"long", answer_long}, {"endless", answer_endless}};

// A server that a thread serves whenever its descriptor says so, until told to end.
class Served {
public:
    explicit Served(Kind kind = Kind::kPools) : server_(kRequests, kLongBytes + 1) {
        const auto listening = server_.listen(kind);
        EXPECT_TRUE(listening) << listening.error().text;
        EXPECT_EQ(pipe(end_), 0);
        thread_ = std::thread([this] { serve(); });
    }
    ~Served() {
        EXPECT_EQ(write(end_[1], "x", 1), 1);
        thread_.join();
        close(end_[0]);
        close(end_[1]);
    }

    std::string address() const { return server_.address(); }

private:
    void serve() {
        uint64_t number = 42;
        for (;;) {
            pollfd states[2] = {{server_.descriptor(), POLLIN, 0}, {end_[0], POLLIN, 0}};
            poll(states, 2, -1);
            if (states[1].revents != 0) return;
            server_.serve(&number);
        }
    }

    Server server_;
    int end_[2];
    std::thread thread_;
};

// Asks with a line of one's own; everything that comes.
std::string ask_line(const std::string& address, std::string_view line) {
    const auto socket = sys::connect_local(address);
    EXPECT_TRUE(socket) << socket.error().text;
    EXPECT_EQ(sys::send_some(*socket, line), static_cast<ptrdiff_t>(line.size()));
    return sys::read_answer(*socket, kLongBytes, 60'000).value_or("no answer");
}

// Before anything looks for the directory, which is read once.
const std::string& runtime_directory() {
    static const std::string path = [] {
        char name[] = "/var/tmp/hanare-control-test-XXXXXX";
        EXPECT_NE(mkdtemp(name), nullptr);
        setenv("XDG_RUNTIME_DIR", name, 1);
        note_runtime_directory();
        return std::string(name);
    }();
    return path;
}

class ControlServer : public ::testing::Test {
protected:
    static void SetUpTestSuite() { runtime_directory(); }
    static void TearDownTestSuite() { fs::remove_all(runtime_directory()); }
};

TEST_F(ControlServer, AnswersAndGoes) {
    std::string address;
    {
        const Served served(Kind::kRun);
        address = served.address();
        EXPECT_EQ(address,
                  runtime_directory() + "/hanare/run-" + std::to_string(getpid()) + ".sock");
        const std::vector<std::string> all = all_addresses();  // of other directories, too
        EXPECT_EQ(std::count(all.begin(), all.end(), address), 1);
        const auto answer = ask(address, "short");
        ASSERT_TRUE(answer) << answer.error().text;
        EXPECT_EQ(*answer, "short 42");
    }
    EXPECT_FALSE(fs::exists(address));
    EXPECT_FALSE(ask(address, "short"));
}

TEST_F(ControlServer, LongAnswersComeInFull) {
    const Served served;
    const auto answer = ask(served.address(), "long");
    ASSERT_TRUE(answer) << answer.error().text;
    EXPECT_EQ(*answer, std::string(kLongBytes, 'x'));
}

std::string error_of(const std::string& text) {
    return "hanare/1 error " + std::to_string(text.size()) + "\n" + text;
}

TEST_F(ControlServer, ErrorsSayWhatIsKnown) {
    const Served served;
    const std::string address = served.address();
    EXPECT_EQ(ask_line(address, "hanare/1 shor\n"),
              error_of("unknown request \"shor\"; known are: short long endless"));
    EXPECT_EQ(ask_line(address, "hanare/2 short\n"),
              error_of("version 2 is not spoken here, version 1 is"));
    const std::string no_request = error_of("not a request: it is one line, 'hanare/1 REQUEST'");
    EXPECT_EQ(ask_line(address, "\n"), no_request);
    EXPECT_EQ(ask_line(address, std::string(5000, 'x')), no_request);
    EXPECT_EQ(ask_line(address, "hanare/1 endless\n"), error_of("the answer is too long"));
    EXPECT_STREQ(ask(address, "nothing").error().text,
                 "it says: unknown request \"nothing\"; known are: short long endless");
}

TEST_F(ControlServer, RequestsMayComeInPieces) {
    const Served served;
    const auto socket = sys::connect_local(served.address());
    ASSERT_TRUE(socket);
    for (const char c : std::string("hanare/1 short\n")) {
        ASSERT_EQ(sys::send_some(*socket, std::string_view(&c, 1)), 1);
        std::this_thread::yield();
    }
    EXPECT_EQ(sys::read_answer(*socket, 1000, 60'000).value_or(""), "hanare/1 ok 8\nshort 42");
}

TEST_F(ControlServer, WhoStallsMakesRoomForOthers) {
    const Served served;
    std::vector<sys::FileDescriptor> stalled;
    for (size_t i = 0; i < 2 * Server::kClientsMax; ++i) {
        auto socket = sys::connect_local(served.address());
        ASSERT_TRUE(socket) << socket.error().text;
        // Half of them do not ask, and half do not take what they asked for.
        if (i % 2 == 0) sys::send_some(*socket, "hanare/1 long\n");
        stalled.push_back(std::move(*socket));
        EXPECT_EQ(ask(served.address(), "short").value_or("no answer"), "short 42");
    }
    EXPECT_EQ(sys::read_answer(stalled[1], 1000, 60'000).value_or("no end"), "");
}

TEST_F(ControlServer, WhatWasLeftBehindIsRemovedByWhoAsks) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
        auto* const server = new Server(kRequests, 100);
        const bool listens = static_cast<bool>(server->listen(Kind::kProgram));
        _exit(write(ready[1], listens ? server->address() : "", 128) == 128 ? 0 : 1);
    }
    char address[128] = {};
    ASSERT_EQ(read(ready[0], address, sizeof address), static_cast<ssize_t>(sizeof address));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    close(ready[0]);
    close(ready[1]);
    ASSERT_TRUE(fs::exists(address));
    EXPECT_EQ(ask(address, "short").error().os_errno, ECONNREFUSED);
    EXPECT_FALSE(fs::exists(address));
}

TEST_F(ControlServer, AChildLeavesItAlone) {
    Server server(kRequests, 100);
    ASSERT_TRUE(server.listen(Kind::kPools));
    const std::string address = server.address();
    const pid_t child = fork();
    if (child == 0) {
        server.remove_name();
        server.abandon_in_child();
        _exit(server.is_listening() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(fs::exists(address));
    EXPECT_TRUE(server.is_listening());
}

}  // namespace
}  // namespace hanare::control
