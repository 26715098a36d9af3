// SPDX-License-Identifier: Apache-2.0
//
// comm.h as a program sees it that is alone in its job: every function, what is refused and why,
// and children of fork.  Programs of several tasks: tests/integration/comm_test.py.
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

#include "api/scenario.hpp"
#include "hanare/hanare.h"

namespace hanare::api_test {
namespace {

constexpr int kLimitMs = 20'000;
constexpr uint32_t kAll = HANARE_RIGHT_READ | HANARE_RIGHT_WRITE | HANARE_RIGHT_FETCH_OP |
                          HANARE_RIGHT_PUSH | HANARE_RIGHT_POP;
constexpr size_t kBytes = 8192;
const auto kBad = HANARE_STATUS_INVALID_ARGUMENT;

// A task that is alone, with memory that it exposes.
struct Alone {
    Alone() {
        if (hanare_comm_open(nullptr, &comm) != HANARE_STATUS_OK) std::abort();
        if (hanare_comm_allocate(comm, kBytes, &memory) != HANARE_STATUS_OK) std::abort();
        if (hanare_comm_expose(comm, memory, kBytes, kAll, &region) != HANARE_STATUS_OK) {
            std::abort();
        }
        if (hanare_comm_capability(comm, region, kAll, &key) != HANARE_STATUS_OK) std::abort();
    }
    hanare_comm* comm = nullptr;
    void* memory = nullptr;
    uint32_t region = 0;
    hanare_capability key = {};
};

std::string last_error() {
    char text[512] = "";
    hanare_last_error(text, sizeof text);
    return text;
}

API_TEST_SCENARIO(comm_operations) {
    Alone a;
    auto* const words = static_cast<uint64_t*>(a.memory);
    uint32_t rank = 7;
    uint32_t size = 7;
    SCENARIO_CHECK(hanare_comm_rank(a.comm, &rank) == HANARE_STATUS_OK && rank == 0);
    SCENARIO_CHECK(hanare_comm_size(a.comm, &size) == HANARE_STATUS_OK && size == 1);
    const uint64_t value = 41;
    uint64_t got = 0;
    SCENARIO_CHECK(hanare_comm_put(a.comm, 0, &a.key, 8, &value, 8, kLimitMs) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_fetch_op(a.comm, 0, &a.key, 8, HANARE_FETCH_ADD, 8, 1, 0, kLimitMs,
                                        &got) == HANARE_STATUS_OK);
    SCENARIO_CHECK(got == 41 && words[1] == 42);
    SCENARIO_CHECK(hanare_comm_get(a.comm, 0, &a.key, 8, &got, 8, kLimitMs) == HANARE_STATUS_OK);
    SCENARIO_CHECK(got == 42);
    SCENARIO_CHECK(hanare_comm_put_notify(a.comm, 0, &a.key, 16, &value, 8, 24, 5, kLimitMs) ==
                   HANARE_STATUS_OK);
    SCENARIO_CHECK(words[2] == 41 && words[3] == 5);
    SCENARIO_CHECK(hanare_comm_wait_word(a.comm, &words[3], 8, HANARE_WAIT_AT_LEAST, 5, kLimitMs,
                                         &got) == HANARE_STATUS_OK);
    SCENARIO_CHECK(got == 5);
    SCENARIO_CHECK(hanare_comm_wait_word(a.comm, &words[3], 4, HANARE_WAIT_NOT_EQUAL, 5, 20,
                                         nullptr) == HANARE_STATUS_TIMEOUT);
    SCENARIO_CHECK(hanare_comm_barrier(a.comm, kLimitMs) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_broadcast(a.comm, &got, 8, 0, kLimitMs) == HANARE_STATUS_OK);
    uint64_t all = 0;
    SCENARIO_CHECK(hanare_comm_allgather(a.comm, &got, 8, &all, kLimitMs) == HANARE_STATUS_OK);
    SCENARIO_CHECK(all == 5);
    SCENARIO_CHECK(hanare_comm_fence(a.comm, 0) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_close(a.comm) == HANARE_STATUS_OK);
    return 0;
}

API_TEST_SCENARIO(comm_queue) {
    Alone a;
    SCENARIO_CHECK(hanare_queue_format(static_cast<char*>(a.memory) + 1, 4096) == kBad);
    SCENARIO_CHECK(hanare_queue_format(a.memory, 256) == kBad);
    SCENARIO_CHECK(hanare_comm_push(a.comm, 0, &a.key, "x", 1, kLimitMs) == HANARE_STATUS_CORRUPT);
    SCENARIO_CHECK(hanare_queue_format(a.memory, kBytes) == HANARE_STATUS_OK);
    char room[8] = "";
    size_t bytes = 99;
    SCENARIO_CHECK(hanare_comm_pop(a.comm, 0, &a.key, room, sizeof room, kLimitMs, &bytes) ==
                   HANARE_STATUS_EMPTY);
    SCENARIO_CHECK(bytes == 99);
    int pushed = 0;
    hanare_status status = HANARE_STATUS_OK;
    while ((status = hanare_comm_push(a.comm, 0, &a.key, "abc", 3, kLimitMs)) == HANARE_STATUS_OK) {
        ++pushed;
    }
    SCENARIO_CHECK(status == HANARE_STATUS_FULL && pushed == (kBytes - 256) / 16);
    SCENARIO_CHECK(hanare_comm_pop(a.comm, 0, &a.key, room, 2, kLimitMs, &bytes) ==
                   HANARE_STATUS_OUT_OF_RANGE);
    SCENARIO_CHECK(hanare_comm_pop(a.comm, 0, &a.key, room, sizeof room, kLimitMs, &bytes) ==
                   HANARE_STATUS_OK);
    SCENARIO_CHECK(bytes == 3 && std::memcmp(room, "abc", 3) == 0);
    return 0;
}

void count_call(hanare_comm_operation* operation, hanare_status status, void* context) {
    if (status != HANARE_STATUS_OK) std::abort();
    ++*static_cast<int*>(context);
    if (hanare_comm_operation_free(operation) != HANARE_STATUS_OK) std::abort();
}

API_TEST_SCENARIO(comm_posted) {
    Alone a;
    const uint64_t value = 3;
    uint64_t got = 0;
    hanare_comm_operation* put = nullptr;
    hanare_comm_operation* get = nullptr;
    SCENARIO_CHECK(hanare_comm_post_put(a.comm, 0, &a.key, 0, &value, 8, kLimitMs, nullptr, &put) ==
                   HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_post_get(a.comm, 0, &a.key, 0, &got, 8, kLimitMs, nullptr, &get) ==
                   HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_operation_free(get) == HANARE_STATUS_BUSY);
    SCENARIO_CHECK(hanare_comm_close(a.comm) == HANARE_STATUS_BUSY);
    int complete = 0;
    while (complete == 0) SCENARIO_CHECK(hanare_comm_test(put, &complete) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_wait(get) == HANARE_STATUS_OK && got == 3);
    SCENARIO_CHECK(hanare_comm_operation_free(put) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_operation_free(get) == HANARE_STATUS_OK);

    int calls = 0;
    const hanare_comm_post_options options = {
        .struct_size = sizeof options, .callback = count_call, .context = &calls};
    hanare_comm_operation* add = nullptr;
    for (int i = 0; i < 100; ++i) {
        SCENARIO_CHECK(hanare_comm_post_fetch_op(a.comm, 0, &a.key, 0, HANARE_FETCH_ADD, 8, 1, 0,
                                                 kLimitMs, &options, &add) == HANARE_STATUS_OK);
    }
    SCENARIO_CHECK(calls == 0);
    SCENARIO_CHECK(hanare_comm_progress(a.comm) == HANARE_STATUS_OK && calls == 100);
    SCENARIO_CHECK(hanare_comm_flush(a.comm, 0, kLimitMs) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_flush_all(a.comm, kLimitMs) == HANARE_STATUS_OK);
    SCENARIO_CHECK(*static_cast<uint64_t*>(a.memory) == 103);
    SCENARIO_CHECK(hanare_comm_close(a.comm) == HANARE_STATUS_OK);
    return 0;
}

API_TEST_SCENARIO(comm_multicast) {
    Alone a;
    hanare_comm_window* window = nullptr;
    SCENARIO_CHECK(hanare_comm_window_open(a.comm, a.region, kLimitMs, &window) ==
                   HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_conceal(a.comm, a.region) == HANARE_STATUS_BUSY);
    hanare_multicast_options options = {.struct_size = sizeof options, .arity = 33, .flags = 0};
    SCENARIO_CHECK(hanare_comm_multicast_put(window, 0, "abc", 3, kLimitMs, &options, nullptr) ==
                   kBad);
    options = {.struct_size = sizeof options, .arity = 0, .flags = 8};
    SCENARIO_CHECK(hanare_comm_multicast_put(window, 0, "abc", 3, kLimitMs, &options, nullptr) ==
                   kBad);
    hanare_multicast_counts counts = {};
    SCENARIO_CHECK(hanare_comm_multicast_put(window, 0, "abc", 3, kLimitMs, nullptr, &counts) ==
                   kBad);
    counts.struct_size = sizeof counts;
    counts.puts = 9;
    SCENARIO_CHECK(hanare_comm_multicast_put(window, 1, "abc", 3, kLimitMs, nullptr, &counts) ==
                   HANARE_STATUS_OK);
    SCENARIO_CHECK(counts.puts == 0 && counts.struct_size == sizeof counts);
    SCENARIO_CHECK(std::memcmp(static_cast<char*>(a.memory) + 1, "abc", 3) == 0);
    SCENARIO_CHECK(hanare_comm_window_close(window, kLimitMs) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_conceal(a.comm, a.region) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_free(a.comm, a.memory) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_close(a.comm) == HANARE_STATUS_OK);
    return 0;
}

API_TEST_SCENARIO(comm_mistakes) {
    hanare_comm* comm = nullptr;
    SCENARIO_CHECK(hanare_comm_open(nullptr, nullptr) == kBad);
    hanare_comm_options options = {};
    SCENARIO_CHECK(hanare_comm_open(&options, &comm) == kBad);
    options.struct_size = sizeof options;
    options.flags = 8;
    SCENARIO_CHECK(hanare_comm_open(&options, &comm) == kBad && comm == nullptr);
    setenv("HANARE_COMM_UCX", "2", 1);
    SCENARIO_CHECK(hanare_comm_open(nullptr, &comm) == kBad && comm == nullptr);
    SCENARIO_CHECK(last_error().find("HANARE_COMM_UCX") != std::string::npos);
    // Refused before it joins: without, it can.
    setenv("HANARE_COMM_UCX", "1", 1);
    setenv("UCX_TLS", "nonsense", 1);
    SCENARIO_CHECK(hanare_comm_open(nullptr, &comm) == HANARE_STATUS_NOT_SUPPORTED);
    SCENARIO_CHECK(last_error().find("UCX") != std::string::npos && comm == nullptr);
    unsetenv("HANARE_COMM_UCX");
    unsetenv("UCX_TLS");
    SCENARIO_CHECK(hanare_comm_barrier(nullptr, 0) == kBad);
    SCENARIO_CHECK(hanare_comm_wait(nullptr) == kBad);
    SCENARIO_CHECK(hanare_comm_window_close(nullptr, 0) == kBad);

    Alone a;
    SCENARIO_CHECK(hanare_comm_open(nullptr, &comm) == HANARE_STATUS_BUSY);
    SCENARIO_CHECK(hanare_comm_put(a.comm, 1, &a.key, 0, "x", 1, kLimitMs) == kBad);
    SCENARIO_CHECK(last_error().find("task 1") != std::string::npos);
    SCENARIO_CHECK(hanare_comm_put(a.comm, 0, nullptr, 0, "x", 1, kLimitMs) == kBad);
    SCENARIO_CHECK(hanare_comm_put(a.comm, 0, &a.key, 0, nullptr, 1, kLimitMs) == kBad);
    SCENARIO_CHECK(hanare_comm_put(a.comm, 0, &a.key, 0, nullptr, 0, kLimitMs) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_put(a.comm, 0, &a.key, kBytes, "x", 1, kLimitMs) ==
                   HANARE_STATUS_OUT_OF_RANGE);
    const auto no_op = static_cast<hanare_fetch_op>(7);
    SCENARIO_CHECK(hanare_comm_fetch_op(a.comm, 0, &a.key, 0, no_op, 8, 1, 0, kLimitMs, nullptr) ==
                   kBad);
    SCENARIO_CHECK(hanare_comm_fetch_op(a.comm, 0, &a.key, 0, HANARE_FETCH_ADD, 2, 1, 0, kLimitMs,
                                        nullptr) == kBad);
    SCENARIO_CHECK(hanare_comm_fetch_op(a.comm, 0, &a.key, 4, HANARE_FETCH_ADD, 8, 1, 0, kLimitMs,
                                        nullptr) == kBad);
    const auto* const bytes = static_cast<const char*>(a.memory);
    SCENARIO_CHECK(hanare_comm_wait_word(a.comm, bytes + 4, 8, HANARE_WAIT_EQUAL, 0, 0, nullptr) ==
                   kBad);
    SCENARIO_CHECK(hanare_comm_wait_word(a.comm, bytes, 8, static_cast<hanare_wait_until>(4), 0, 0,
                                         nullptr) == kBad);
    uint32_t region = 0;
    SCENARIO_CHECK(hanare_comm_expose(a.comm, a.memory, 8, 0x20, &region) == kBad);
    SCENARIO_CHECK(hanare_comm_expose(a.comm, a.memory, 0, kAll, &region) == kBad);
    void* address = nullptr;
    SCENARIO_CHECK(hanare_comm_allocate(a.comm, 0, &address) == kBad);
    SCENARIO_CHECK(hanare_comm_free(a.comm, a.memory) == HANARE_STATUS_BUSY);
    char all[8] = {};
    SCENARIO_CHECK(hanare_comm_broadcast(a.comm, nullptr, 8, 0, kLimitMs) == kBad);
    SCENARIO_CHECK(hanare_comm_broadcast(a.comm, all, 8, 1, kLimitMs) == kBad);
    SCENARIO_CHECK(hanare_comm_broadcast(a.comm, nullptr, 0, 0, kLimitMs) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_allgather(a.comm, nullptr, 8, all, kLimitMs) == kBad);
    SCENARIO_CHECK(hanare_comm_allgather(a.comm, all, 8, nullptr, kLimitMs) == kBad);
    SCENARIO_CHECK(hanare_comm_window_open(a.comm, a.region, kLimitMs, nullptr) == kBad);
    hanare_comm_window* window = nullptr;
    SCENARIO_CHECK(hanare_comm_window_open(a.comm, 1000, kLimitMs, &window) ==
                   HANARE_STATUS_NOT_FOUND);
    SCENARIO_CHECK(window == nullptr);
    hanare_capability forged = a.key;
    forged.bytes[20] ^= 1;
    SCENARIO_CHECK(hanare_comm_put(a.comm, 0, &forged, 0, "x", 1, kLimitMs) ==
                   HANARE_STATUS_BAD_KEY);
    SCENARIO_CHECK(hanare_comm_revoke(a.comm, a.region) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_put(a.comm, 0, &a.key, 0, "x", 1, kLimitMs) ==
                   HANARE_STATUS_BAD_KEY);
    return 0;
}

API_TEST_SCENARIO(comm_fork) {
    Alone a;
    hanare_comm_operation* operation = nullptr;
    SCENARIO_CHECK(hanare_comm_post_put(a.comm, 0, &a.key, 0, "x", 1, kLimitMs, nullptr,
                                        &operation) == HANARE_STATUS_OK);
    const pid_t child = fork();
    if (child == 0) {
        const auto forked = HANARE_STATUS_FORKED;
        hanare_comm* comm = nullptr;
        SCENARIO_CHECK(hanare_comm_open(nullptr, &comm) == forked);
        SCENARIO_CHECK(hanare_comm_put(a.comm, 0, &a.key, 0, "x", 1, kLimitMs) == forked);
        SCENARIO_CHECK(hanare_comm_barrier(a.comm, kLimitMs) == forked);
        SCENARIO_CHECK(hanare_comm_wait(operation) == forked);
        SCENARIO_CHECK(hanare_comm_operation_free(operation) == forked);
        SCENARIO_CHECK(hanare_comm_close(a.comm) == forked);
        _exit(5);
    }
    int status = 0;
    SCENARIO_CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
    SCENARIO_CHECK(hanare_comm_wait(operation) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_operation_free(operation) == HANARE_STATUS_OK);
    SCENARIO_CHECK(hanare_comm_close(a.comm) == HANARE_STATUS_OK);
    return 0;
}

// A process joins its job once.
class CommTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Alone, CommTest,
                         testing::Values("comm_operations", "comm_queue", "comm_posted",
                                         "comm_multicast", "comm_mistakes", "comm_fork"),
                         [](const auto& each) { return std::string(each.param); });

TEST_P(CommTest, EndsWell) {
    const Outcome outcome = run_scenario(GetParam());
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
}

}  // namespace
}  // namespace hanare::api_test
