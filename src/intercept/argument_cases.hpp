// SPDX-License-Identifier: Apache-2.0
//
// For arguments_sizes_test.cpp: what a case is, and what the calls of the cases need (files,
// sockets, a queue), made once and left to the end of the process.
#pragma once

#include <netinet/in.h>

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

#include "intercept/arguments.hpp"

namespace hanare::intercept::argument_cases {

using Words = std::array<uint64_t, SystemCallArguments::kMax>;
using Bytes = std::vector<uint8_t>;

template <typename T>
uint64_t word_of(const T* pointer) {
    return reinterpret_cast<uint64_t>(pointer);
}

template <typename... Values>
Bytes bytes_of(const Values&... values) {
    Bytes bytes;
    const auto append = [&bytes](const auto& value) {
        const auto* first = reinterpret_cast<const uint8_t*>(&value);
        bytes.insert(bytes.end(), first, first + sizeof value);
    };
    (append(values), ...);
    return bytes;
}

// What is written and read may be written only in cases that the test does not make.
enum class Size { kExact, kExactAsRead, kAtMost };

struct Case {
    std::string name;
    long number;
    uint8_t index;  // the argument under test
    Size size;
    // The call's arguments; its own parameter is the address of the memory under test.
    std::function<Words(uint64_t memory)> words;
    Bytes content = {};                 // what lies there before
    std::function<void()> before = {};  // makes what the call needs, each time
};

inline void PrintTo(const Case& one, std::ostream* stream) { *stream << one.name; }

struct Things {
    int zero = -1;
    int file = -1;  // 4096 bytes
    int directory = -1;
    int pipe_ends[2] = {-1, -1};  // with something to read
    int datagrams[2] = {-1, -1};
    int epoll = -1;  // waits for the pipe
    int timerfd = -1;
    int listener = -1;
    int udp = -1;
    int other_udp = -1;
    int client = -1;
    int terminal = -1;
    int pidfd = -1;
    int queue = -1;
    int timer = -1;
    sockaddr_in udp_name = {};
    sockaddr_in listener_name = {};
    socklen_t name_bytes = sizeof(sockaddr_in);
    uint32_t four = 4;
    uint32_t many = 256;
    uint32_t futex_word = 1;
    uint64_t aio = 0;
    std::array<char, 4096> scratch = {};

    Things();
    void connect_client();  // to the listener; closed at the end of a case
    void send_udp();
    void send_to_queue();
};

Things& things();

inline constexpr uint64_t kNone = static_cast<uint64_t>(-1);  // any child, no descriptor

inline uint64_t fd(int number) { return static_cast<uint64_t>(number); }

inline std::vector<Case> joined(std::initializer_list<std::vector<Case>> lists) {
    std::vector<Case> all;
    for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
}

std::vector<Case> cases_of_files();
std::vector<Case> cases_of_sockets();
std::vector<Case> cases_of_processes();
std::vector<Case> cases_of_the_system();

}  // namespace hanare::intercept::argument_cases
