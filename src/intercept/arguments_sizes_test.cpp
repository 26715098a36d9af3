// SPDX-License-Identifier: Apache-2.0
//
// Are the sizes of the table those of the kernel?  Each case makes a real call with the argument
// under test
//   - right before a page without access, with as many bytes as the table says: it must do;
//   - of exact sizes, with one byte less: the kernel must find it too small (EFAULT);
//   - of what is written, in the middle of memory filled with several patterns: what changed must
//     lie within the size, equal exact sizes, and reach as far as the result says.
// A call that this kernel or container does not offer is skipped.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "intercept/argument_cases.hpp"

namespace hanare::intercept::argument_cases {
namespace {

constexpr size_t kRoom = 64 * 1024;
constexpr uint8_t kPatterns[] = {0xa5, 0x5a, 0x00, 0xff};

// kRoom bytes before a page without access.
class Memory {
public:
    Memory() {
        void* memory =
            mmap(nullptr, kRoom + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        first_ = static_cast<uint8_t*>(memory);
        mprotect(first_ + kRoom, 4096, PROT_NONE);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { munmap(first_, kRoom + 4096); }

    uint8_t* first() const { return first_; }
    uint8_t* last(size_t bytes) const { return first_ + kRoom - bytes; }
    void fill(uint8_t pattern) const { memset(first_, pattern, kRoom); }

private:
    uint8_t* first_ = nullptr;
};

// The table's size for a call, computed from its description in arguments.hpp.
size_t declared_bytes(const ArgumentSize& size, const Words& words) {
    const uint64_t word = words[size.argument];
    uint32_t length = 0;
    switch (size.kind) {
        case ArgumentSize::Kind::kNone: return 0;
        case ArgumentSize::Kind::kFixed: return size.unit;
        case ArgumentSize::Kind::kCounted: return word * size.unit + size.extra;
        case ArgumentSize::Kind::kBits: return (word + 63) / 64 * 8;
        case ArgumentSize::Kind::kPages: return (word + 4095) / 4096 * size.unit;
        case ArgumentSize::Kind::kLengthAt:
            memcpy(&length, reinterpret_cast<const void*>(word), sizeof length);
            return length + size.extra;
        case ArgumentSize::Kind::kIoctl:
            return _IOC_SIZE(words[1]) != 0 ? _IOC_SIZE(words[1]) : size.unit;
    }
    return 0;
}

bool is_written(ArgumentKind kind) {
    return kind == ArgumentKind::kOut || kind == ArgumentKind::kInOut;
}

bool is_only_read(ArgumentKind kind) {
    return kind == ArgumentKind::kIn || kind == ArgumentKind::kVectorIn ||
           kind == ArgumentKind::kVectorOut;
}

// A number that is larger than anything has the effect of a small one, too.
bool cuts_a_large_count(long number) {
    return number == SYS_getcwd || number == SYS_recvfrom || number == SYS_mq_timedreceive ||
           number == SYS_io_submit || number == SYS_getrandom;
}

bool is_counted(const ArgumentSize& size) {
    return size.kind == ArgumentSize::Kind::kCounted || size.kind == ArgumentSize::Kind::kBits ||
           size.kind == ArgumentSize::Kind::kPages;
}

const Argument* find_argument(const SystemCallArguments& call, uint8_t index) {
    for (const Argument& argument : call.pointers())
        if (argument.index == index) return &argument;
    return nullptr;
}

// Those below 1024.
std::bitset<1024> open_descriptors() {
    std::bitset<1024> open;
    for (size_t number = 0; number < open.size(); ++number)
        open[number] = fcntl(static_cast<int>(number), F_GETFD) != -1;
    return open;
}

class ArgumentSizes : public testing::TestWithParam<Case> {
protected:
    void SetUp() override {
        sigprocmask(SIG_SETMASK, nullptr, &mask_before_);
        descriptors_before_ = open_descriptors();
        argument_ =
            find_argument(arguments_of(static_cast<uint64_t>(GetParam().number)), GetParam().index);
        ASSERT_NE(argument_, nullptr) << "the table has no such argument";
        put_content(memory_.first());
        declared_ = declared_bytes(argument_->size, GetParam().words(word_of(memory_.first())));
        ASSERT_GT(declared_, 0U);
        ASSERT_LT(declared_, kRoom / 2);
    }

    void TearDown() override {
        const std::bitset<1024> made = open_descriptors() & ~descriptors_before_;
        for (size_t number = 0; number < made.size(); ++number)
            if (made[number]) close(static_cast<int>(number));
        signal(SIGUSR2, SIG_IGN);  // forgets one that nobody took
        signal(SIGUSR2, SIG_DFL);
        sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
    }

    void put_content(uint8_t* at) const {
        const Bytes& content = GetParam().content;
        if (!content.empty()) memcpy(at, content.data(), content.size());
    }

    // The result, or the error as a negative number.
    long call(const uint8_t* at, uint64_t upper_half_of_counter = 0) const {
        if (GetParam().before) GetParam().before();
        Words words = GetParam().words(word_of(at));
        words[argument_->size.argument] |= upper_half_of_counter << 32;
        const long result =
            syscall(GetParam().number, words[0], words[1], words[2], words[3], words[4], words[5]);
        return result == -1 ? -errno : result;
    }

    // Right before the page without access, with that many bytes.
    long call_with(size_t bytes, uint64_t upper_half_of_counter = 0) {
        memory_.fill(kPatterns[0]);
        uint8_t* at = memory_.last(bytes);
        const Bytes& content = GetParam().content;
        if (!content.empty()) memcpy(at, content.data(), std::min(bytes, content.size()));
        return call(at, upper_half_of_counter);
    }

    // How far memory changed, at least one pattern having shown it.
    size_t changed_bytes(size_t& told) {
        size_t changed = 0;
        for (const uint8_t pattern : kPatterns) {
            memory_.fill(pattern);
            uint8_t* at = memory_.first() + kRoom / 4;
            put_content(at);
            const Bytes before(memory_.first(), memory_.first() + kRoom);
            const long result = call(at);
            EXPECT_GE(result, 0) << strerror(static_cast<int>(-result));
            EXPECT_TRUE(std::equal(before.begin(), before.begin() + kRoom / 4, memory_.first()));
            for (size_t i = 0; i < kRoom * 3 / 4; ++i)
                if (at[i] != before[kRoom / 4 + i]) changed = std::max(changed, i + 1);
            if (argument_->result_unit != 0 && result > 0)
                told = static_cast<size_t>(result) * argument_->result_unit + argument_->size.extra;
        }
        return changed;
    }

    bool changes_memory() {
        memory_.fill(kPatterns[0]);
        put_content(memory_.first());
        const Bytes before(memory_.first(), memory_.first() + kRoom);
        call(memory_.first());
        return !std::equal(before.begin(), before.end(), memory_.first());
    }

    sigset_t mask_before_ = {};
    std::bitset<1024> descriptors_before_;
    Memory memory_;
    const Argument* argument_ = nullptr;
    size_t declared_ = 0;
};

TEST_P(ArgumentSizes, AreTheKernels) {
    const long result = call_with(declared_);
    if (result == -ENOSYS || result == -EPERM || result == -EOPNOTSUPP || result == -EACCES)
        GTEST_SKIP() << "not offered here: " << strerror(static_cast<int>(-result));
    EXPECT_NE(result, -EFAULT) << "the kernel wants more than " << declared_;
    if (is_written(argument_->kind) && GetParam().size != Size::kExactAsRead) {
        ASSERT_GE(result, 0) << strerror(static_cast<int>(-result));
        size_t told = declared_;
        const size_t changed = changed_bytes(told);
        EXPECT_GT(changed, 0U);
        EXPECT_LE(changed, declared_);
        EXPECT_LE(changed, told);
        if (GetParam().size == Size::kExact && argument_->kind == ArgumentKind::kOut) {
            EXPECT_EQ(changed, std::min(told, declared_));
        }
    }
    if (is_counted(argument_->size) && !cuts_a_large_count(GetParam().number)) {
        const long with_more = call_with(declared_, 0x7a57'0000);
        if (argument_->size.is_int) {
            EXPECT_EQ(with_more >= 0, result >= 0) << with_more;
        } else if (result >= 0) {
            EXPECT_LT(with_more, 0) << "the kernel drops the upper half of the count";
        }
    }
    if (is_only_read(argument_->kind)) {
        EXPECT_FALSE(changes_memory());
    }
    if (GetParam().size != Size::kAtMost && argument_->result_unit == 0) {
        EXPECT_EQ(call_with(declared_ - 1), -EFAULT) << "less than " << declared_ << " do";
    }
}

INSTANTIATE_TEST_SUITE_P(Kernel, ArgumentSizes,
                         testing::ValuesIn(joined({cases_of_files(), cases_of_sockets(),
                                                   cases_of_processes(), cases_of_the_system()})),
                         [](const auto& one) { return one.param.name; });

// ---- System V objects outlive the process, so no signal ends it while they exist

class SystemV {
public:
    SystemV() {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &before_);
        queue = msgget(IPC_PRIVATE, 0600);
        segment = shmget(IPC_PRIVATE, 4096, 0600);
        semaphores = semget(IPC_PRIVATE, 1, 0600);
    }
    SystemV(const SystemV&) = delete;
    SystemV& operator=(const SystemV&) = delete;
    ~SystemV() {
        if (queue >= 0) msgctl(queue, IPC_RMID, nullptr);
        if (segment >= 0) shmctl(segment, IPC_RMID, nullptr);
        if (semaphores >= 0) semctl(semaphores, 0, IPC_RMID);
        sigprocmask(SIG_SETMASK, &before_, nullptr);
    }

    int queue = -1;
    int segment = -1;
    int semaphores = -1;

private:
    sigset_t before_;
};

// `words` as in Case.
void expect_exact(long number, uint8_t index, const std::function<Words(uint64_t)>& words,
                  long expected) {
    SCOPED_TRACE(number);
    const Argument* argument = find_argument(arguments_of(static_cast<uint64_t>(number)), index);
    ASSERT_NE(argument, nullptr);
    const size_t declared = declared_bytes(argument->size, words(0));
    const Memory memory;
    const auto call = [&](size_t bytes) {
        const Words w = words(word_of(memory.last(bytes)));
        return syscall(number, w[0], w[1], w[2], w[3], w[4], w[5]);
    };
    memory.fill(number == SYS_msgsnd ? 1 : 0);  // the type of a message is not 0
    EXPECT_EQ(call(declared), expected);
    errno = 0;
    EXPECT_EQ(call(declared - 1), -1);
    EXPECT_EQ(errno, EFAULT);
}

TEST(ArgumentSizesOfSystemV, MessagesAndDescriptions) {
    const SystemV made;
    if (made.queue < 0 || made.segment < 0 || made.semaphores < 0)
        GTEST_SKIP() << "no System V objects here";
    const uint64_t queue = fd(made.queue);
    const uint64_t segment = fd(made.segment);
    const uint64_t semaphores = fd(made.semaphores);
    constexpr uint64_t kTextBytes = 11;
    const auto send = [=](uint64_t p) { return Words{queue, p, kTextBytes, IPC_NOWAIT}; };
    const auto receive = [=](uint64_t p) { return Words{queue, p, kTextBytes, 0, IPC_NOWAIT}; };
    expect_exact(SYS_msgsnd, 1, send, 0);
    const std::array<long, 4> more = {1};
    ASSERT_EQ(msgsnd(made.queue, more.data(), kTextBytes, IPC_NOWAIT), 0);
    expect_exact(SYS_msgrcv, 1, receive, kTextBytes);
    expect_exact(SYS_msgctl, 2, [=](uint64_t p) { return Words{queue, IPC_STAT, p}; }, 0);
    expect_exact(SYS_shmctl, 2, [=](uint64_t p) { return Words{segment, IPC_STAT, p}; }, 0);
    expect_exact(SYS_semctl, 3, [=](uint64_t p) { return Words{semaphores, 0, IPC_STAT, p}; }, 0);
    expect_exact(SYS_semop, 1, [=](uint64_t p) { return Words{semaphores, p, 1}; }, 0);
    expect_exact(SYS_semtimedop, 1, [=](uint64_t p) { return Words{semaphores, p, 1, 0}; }, 0);
}

}  // namespace
}  // namespace hanare::intercept::argument_cases
