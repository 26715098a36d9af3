// SPDX-License-Identifier: Apache-2.0
//
// Engine shared: another process sees the very blocks that are in local memory, and nothing where
// there is none; whatever it does, the exporting process keeps its data.
#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"
#include "base/prng.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 64 * kKiB;
constexpr uint64_t kBlocks = 64;
constexpr uint64_t kBytes = kBlocks * kBlock;
constexpr uint64_t kWordsPerBlock = kBlock / sizeof(uint64_t);

bool send_descriptor(int socket, int descriptor) {
    char byte = 'd';
    iovec content = {&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
    msghdr message = {};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    return sendmsg(socket, &message, 0) == 1;
}

int receive_descriptor(int socket) {
    char byte = 0;
    iovec content = {&byte, 1};
    int descriptor = -1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
    msghdr message = {};
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
    std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    return descriptor;
}

constexpr uint64_t kSigbus = 1;  // patterns are odd as well, but never 1 here
constexpr uint64_t kEfault = 3;

sigjmp_buf resume;
void on_sigbus(int) { siglongjmp(resume, 1); }

uint64_t load_of(const std::byte* memory) {
    if (sigsetjmp(resume, 1) != 0) return kSigbus;
    return *reinterpret_cast<const volatile uint64_t*>(memory);
}

// By a system call.
uint64_t copy_of(const std::byte* memory) {
    uint64_t value = 0;
    const iovec local = {&value, sizeof value};
    const iovec remote = {const_cast<std::byte*>(memory), sizeof value};
    if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof value) return value;
    return errno == EFAULT ? kEfault : 0;
}

struct Question {
    char what;  // load, copy, reads at random, mistake (an ordinary mapping, all of it read)
    uint64_t word;
};

// Whether what is found at random is what was written or a hole; both were found.
bool reads_are_right(const std::byte* view) {
    Prng random(7);
    uint64_t present = 0;
    uint64_t absent = 0;
    while (present < 20'000 || absent < 20'000) {
        const uint64_t word = random.below(kBytes / sizeof(uint64_t));
        const uint64_t value = copy_of(view + word * sizeof(uint64_t));
        if (value != kEfault && value != pattern(1, word)) return false;
        ++(value == kEfault ? absent : present);
    }
    return true;
}

uint64_t bytes_by_mistake(int descriptor) {
    void* const mapped = mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) return 0;
    uint64_t zeros = 0;
    for (int pass = 0; pass < 200; ++pass) {
        for (uint64_t i = 0; i < kBytes; i += kOsPageBytes) {
            zeros += *(static_cast<const volatile char*>(mapped) + i) == 0;
        }
    }
    munmap(mapped, kBytes);
    return zeros;
}

// The other process: maps what it is sent and answers.
int answer_questions(int socket) {
    std::signal(SIGBUS, on_sigbus);
    const int descriptor = receive_descriptor(socket);
    const void* address = nullptr;
    size_t bytes = 0;
    must(hanare_view_open(descriptor, &address, &bytes));
    if (bytes != kBytes) return 1;
    const auto* const view = static_cast<const std::byte*>(address);
    Question question = {};
    while (read(socket, &question, sizeof question) == sizeof question) {
        const std::byte* const place = view + question.word * sizeof(uint64_t);
        uint64_t answer = 0;
        if (question.what == 'l') answer = load_of(place);
        if (question.what == 'c') answer = copy_of(place);
        if (question.what == 'r') answer = reads_are_right(view) ? 1 : 0;
        if (question.what == 'm') answer = bytes_by_mistake(descriptor);
        if (write(socket, &answer, sizeof answer) != sizeof answer) return 2;
    }
    close(descriptor);
    must(hanare_view_close(address));
    return 0;
}

// Begun before this process has a pool, so that it is not a child without far memory.
class OtherProcess {
public:
    OtherProcess() {
        int ends[2] = {-1, -1};
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return;
        process_ = fork();
        if (process_ == 0) {
            close(ends[0]);
            _exit(answer_questions(ends[1]));
        }
        close(ends[1]);
        socket_ = ends[0];
    }
    OtherProcess(const OtherProcess&) = delete;
    OtherProcess& operator=(const OtherProcess&) = delete;
    ~OtherProcess() { end(); }

    bool give(hanare_pool* pool, const void* region) {
        int descriptor = -1;
        must(hanare_region_export(pool, region, &descriptor));
        const bool sent = send_descriptor(socket_, descriptor);
        close(descriptor);
        return sent;
    }
    uint64_t ask(char what, uint64_t word = 0) {
        start(what, word);
        return answer();
    }
    void start(char what, uint64_t word = 0) {
        const Question question = {what, word};
        if (write(socket_, &question, sizeof question) != sizeof question) end();
    }
    uint64_t answer() {
        uint64_t answer = ~uint64_t{0};
        if (read(socket_, &answer, sizeof answer) != sizeof answer) answer = ~uint64_t{0};
        return answer;
    }
    bool answered() const {
        char byte = 0;
        return recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
    }
    // True when it ended well.
    bool end() {
        if (socket_ >= 0) close(socket_);
        socket_ = -1;
        int status = 0;
        if (process_ <= 0 || waitpid(process_, &status, 0) != process_) return false;
        process_ = -1;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }

private:
    pid_t process_ = -1;
    int socket_ = -1;
};

class SharedEngineTest : public testing::Test {
protected:
    void SetUp() override {
        if (const auto refusal = engine_refusal("shared"); !refusal.empty()) {
            GTEST_SKIP() << refusal;
        }
    }
};

API_TEST_SCENARIO(another_process_looks) {
    OtherProcess other;
    FarPool pool({"shared", kBlock}, kFramesMin + 8, 2 * kBytes);
    std::byte* const region = pool.alloc(kBytes);
    auto* const words = reinterpret_cast<uint64_t*>(region);
    fill(words, kBytes / 2, 1);
    pool.make_absent(region, kBytes);
    must(hanare_pin(pool.get(), region, 2 * kBlock, HANARE_ACCESS_WRITE));
    SCENARIO_CHECK(other.give(pool.get(), region));
    // Pinned; and the same memory, not a copy of it.
    for (const uint64_t word : {uint64_t{0}, uint64_t{700}, 2 * kWordsPerBlock - 1}) {
        SCENARIO_CHECK(other.ask('l', word) == pattern(1, word));
        SCENARIO_CHECK(other.ask('c', word) == pattern(1, word));
        words[word] = word + 1000;
        SCENARIO_CHECK(other.ask('l', word) == word + 1000);
        words[word] = pattern(1, word);
    }
    // In the store, and never touched.
    for (const uint64_t block : {uint64_t{9}, kBlocks - 1}) {
        SCENARIO_CHECK(other.ask('c', block * kWordsPerBlock) == kEfault);
        SCENARIO_CHECK(other.ask('l', block * kWordsPerBlock) == kSigbus);
    }
    // Back again, and gone again.
    SCENARIO_CHECK(touch(region, kBlock, 9) == pattern(1, 9 * kWordsPerBlock));
    SCENARIO_CHECK(other.ask('l', 9 * kWordsPerBlock + 5) == pattern(1, 9 * kWordsPerBlock + 5));
    pool.make_absent(region, kBytes);
    SCENARIO_CHECK(other.ask('c', 9 * kWordsPerBlock) == kEfault);
    SCENARIO_CHECK(mismatches(words, kBytes / 2, 1) == 0);
    SCENARIO_CHECK(non_zeros(words + kBytes / 16, kBytes / 2) == 0);
    // The region ends, the view does not.
    must(hanare_unpin(pool.get(), region, 2 * kBlock));
    must(hanare_free(pool.get(), region));
    SCENARIO_CHECK(other.ask('c', 0) == kEfault);
    SCENARIO_CHECK(other.end());
    return 0;
}

TEST_F(SharedEngineTest, AnotherProcessSeesWhatIsLocalAndNothingElse) {
    const Outcome outcome = run_scenario("another_process_looks");
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    ASSERT_EQ(outcome.lines().size(), 2u) << outcome.errors;
    for (const std::string& line : outcome.lines()) {
        EXPECT_NE(line.find("of a view) is not in the local memory"), std::string::npos) << line;
    }
}

// Blocks come and go while they are looked at.
API_TEST_SCENARIO(another_process_looks_all_the_time) {
    OtherProcess other;
    FarPool pool({"shared", kBlock}, kFramesMin + 8, kBytes, 8);
    std::byte* const region = pool.alloc(kBytes);
    auto* const words = reinterpret_cast<uint64_t*>(region);
    // Read-only, so that a block is never seen before its content is in it.
    fill(words, kBytes, 1);
    SCENARIO_CHECK(other.give(pool.get(), region));
    other.start('r');
    uint64_t passes = 0;
    Prng random(1);
    while (!other.answered()) {
        SCENARIO_CHECK(mismatches(words, kBytes, 1) == 0);
        for (int i = 0; i < 100; ++i) {
            const uint64_t word = random.below(kBytes / sizeof(uint64_t));
            words[word] = pattern(1, word);
        }
        ++passes;
    }
    SCENARIO_CHECK(other.answer() == 1 && passes > 0);
    SCENARIO_CHECK(other.end());
    return 0;
}

TEST_F(SharedEngineTest, WhatAnotherProcessReadsIsNeverHalfABlock) {
    const Outcome outcome = run_scenario("another_process_looks_all_the_time");
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    EXPECT_EQ(outcome.errors, "");
}

// A mapping without a guard makes pages of zeros in the file.
API_TEST_SCENARIO(another_process_makes_a_mistake) {
    OtherProcess other;
    FarPool pool({"shared", kBlock}, kFramesMin + 8, kBytes, 8);
    uint64_t* const words = pool.alloc_words(kBytes);
    fill(words, kBytes / 2, 1);
    SCENARIO_CHECK(other.give(pool.get(), words));
    other.start('m');
    uint64_t tag = 1;
    uint64_t* const fresh = words + kBytes / 2 / sizeof(uint64_t);
    while (!other.answered()) {
        SCENARIO_CHECK(mismatches(words, kBytes / 2, tag) == 0);
        fill(words, kBytes / 2, ++tag);
        SCENARIO_CHECK(non_zeros(fresh, kBytes / 2) == 0);
        *fresh = tag;
        fresh[kBytes / 2 / sizeof(uint64_t) - 1] = tag;
        SCENARIO_CHECK(non_zeros(fresh, kBytes / 2) == 2);
        must(hanare_advise(pool.get(), fresh, kBytes / 2, HANARE_ADVICE_DISCARD));
        *fresh = tag;
        SCENARIO_CHECK(non_zeros(fresh, kBytes / 2) == 1);
        must(hanare_advise(pool.get(), fresh, kBytes / 2, HANARE_ADVICE_DISCARD));
    }
    SCENARIO_CHECK(other.answer() > 0);
    SCENARIO_CHECK(mismatches(words, kBytes / 2, tag) == 0);
    SCENARIO_CHECK(other.end());
    return 0;
}

TEST_F(SharedEngineTest, PagesThatOthersCreateNeverBecomeContent) {
    const Outcome outcome = run_scenario("another_process_makes_a_mistake");
    EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    EXPECT_EQ(outcome.errors, "");
}

TEST_F(SharedEngineTest, OthersCannotWrite) {
    FarPool pool({"shared", kBlock}, kFramesMin, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    poke(region, kBlock, 0, 1);
    int descriptor = -1;
    must(hanare_region_export(pool.get(), region, &descriptor));
    EXPECT_NE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_EQ(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0), MAP_FAILED);
    EXPECT_EQ(pwrite(descriptor, "x", 1, 0), -1);
    EXPECT_EQ(ftruncate(descriptor, 0), -1);
    const void* address = nullptr;
    size_t bytes = 0;
    must(hanare_view_open(descriptor, &address, &bytes));
    EXPECT_EQ(bytes, kBytes);
    EXPECT_EQ(touch(static_cast<const std::byte*>(address), kBlock, 0), 1u);
    EXPECT_EQ(pread(open("/dev/zero", O_RDONLY | O_CLOEXEC), const_cast<void*>(address), 8, 0), -1);
    EXPECT_EQ(errno, EFAULT);
    close(descriptor);
    must(hanare_view_close(address));
    EXPECT_TRUE(fails_with(HANARE_STATUS_NOT_FOUND, {"not the start of a view"},
                           hanare_view_close(address)));
    EXPECT_TRUE(fails_with(HANARE_STATUS_NOT_FOUND, {"not the start of a view"},
                           hanare_view_close(nullptr)));
}

TEST_F(SharedEngineTest, WhatCannotBeExportedIsRefused) {
    FarPool pool({"shared", kBlock}, kFramesMin, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    int descriptor = -1;
    EXPECT_TRUE(fails_with(HANARE_STATUS_NOT_FOUND, {"not the start of a region"},
                           hanare_region_export(pool.get(), region + 1, &descriptor)));
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"descriptor", "NULL"},
                           hanare_region_export(pool.get(), region, nullptr)));
    FarPool other({"segv-remap", kBlock}, kFramesMin, kBytes);
    EXPECT_TRUE(fails_with(HANARE_STATUS_NOT_SUPPORTED, {"segv-remap", "engine shared"},
                           hanare_region_export(other.get(), other.alloc(kBlock), &descriptor)));
    EXPECT_EQ(descriptor, -1);
}

TEST_F(SharedEngineTest, WhatIsNoRegionIsNotViewed) {
    const void* address = nullptr;
    size_t bytes = 0;
    const int plain = memfd_create("plain", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(plain, kBytes), 0);
    for (const int descriptor : {-1, STDERR_FILENO, plain}) {
        EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"descriptor"},
                               hanare_view_open(descriptor, &address, &bytes)));
    }
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"address", "NULL"},
                           hanare_view_open(plain, nullptr, &bytes)));
    EXPECT_TRUE(fails_with(HANARE_STATUS_INVALID_ARGUMENT, {"bytes", "NULL"},
                           hanare_view_open(plain, &address, nullptr)));
    close(plain);
    EXPECT_EQ(address, nullptr);
}

// The kernel may do the same when memory is short and there is swap.
TEST_F(SharedEngineTest, PagesThatLeaveTheMappingAreMappedAgain) {
    FarPool pool({"shared", kBlock}, kFramesMin + 8, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    auto* const words = reinterpret_cast<uint64_t*>(region);
    fill(words, kBytes, 1);
    Prng random(sys::testing::test_seed());
    uint64_t wrong = 0;
    for (int i = 0; i < 2000; ++i) {
        const uint64_t block = random.below(kBlocks);
        const uint64_t word = block * kWordsPerBlock + random.below(kWordsPerBlock);
        if (random.below(2) == 0) wrong += words[word] != pattern(1, word);
        if (random.below(2) == 0) words[word] = pattern(1, word);
        const uint64_t first = random.below(kBlocks);
        ASSERT_EQ(madvise(region + first * kBlock, random.below(kBlocks - first + 1) * kBlock,
                          MADV_DONTNEED),
                  0);
        wrong += words[word] != pattern(1, word);
        words[word] = pattern(1, word);
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(mismatches(words, kBytes, 1), 0u);
}

TEST_F(SharedEngineTest, CleanBlocksThatAreMappedAgainStayClean) {
    utsname system{};
    int major = 0;
    int minor = 0;
    ASSERT_EQ(uname(&system), 0);
    ASSERT_EQ(std::sscanf(system.release, "%d.%d", &major, &minor), 2);
    if (std::pair(major, minor) < std::pair(6, 4)) {
        GTEST_SKIP() << "before Linux 6.4 UFFDIO_CONTINUE does not protect";
    }
    FarPool pool({"shared", kBlock}, kFramesMin + 8, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    poke(region, kBlock, 0, 7);
    must(hanare_flush(pool.get(), region, kBlock));
    EXPECT_EQ(touch(region, kBlock, 0), 7u);
    ASSERT_EQ(madvise(region, kBlock, MADV_DONTNEED), 0);
    EXPECT_EQ(touch(region, kBlock, 0), 7u);
    EXPECT_EQ(pool.stats(region).dirty_bytes, 0u);
    poke(region, kBlock, 0, 8);
    EXPECT_EQ(pool.stats(region).dirty_bytes, kBlock);
    pool.make_absent(region, kBlock);
    EXPECT_EQ(touch(region, kBlock, 0), 8u);
}

API_TEST_SCENARIO(shared_page_taken_away) {
    FarPool pool({"shared", kBlock}, kFramesMin, kBytes);
    std::byte* const region = pool.alloc(kBytes);
    poke(region, kBlock, 3, 1);
    SCENARIO_CHECK(madvise(region + 3 * kBlock, kBlock, MADV_REMOVE) == 0);
    touch(region, kBlock, 3);
    return 0;
}

TEST_F(SharedEngineTest, PagesThatLeaveTheFileAreMissed) {
    const Outcome outcome = run_scenario("shared_page_taken_away");
    EXPECT_TRUE(outcome.died_of(SIGBUS)) << outcome.describe();
    ASSERT_EQ(outcome.lines().size(), 1u) << outcome.errors;
    EXPECT_NE(outcome.errors.find("is gone although its block is mapped"), std::string::npos);
}

}  // namespace

}  // namespace hanare::api_test
