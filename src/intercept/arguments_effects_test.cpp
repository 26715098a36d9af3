// SPDX-License-Identifier: Apache-2.0
//
// Calls that must not be tried again after EFAULT: each is made with a bad address, then the test
// looks whether something is gone, and compares that with the table.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "intercept/arguments.hpp"

namespace hanare::intercept {
namespace {

// An address that is the program's by its value, but where nothing is.
void* bad_address() { return reinterpret_cast<void*>(8); }

// What the kernel can read and not write.
template <typename T>
class ReadOnly {
public:
    explicit ReadOnly(const T& value) {
        memory_ =
            mmap(nullptr, sizeof value, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *static_cast<T*>(memory_) = value;
        mprotect(memory_, sizeof value, PROT_READ);
    }
    ReadOnly(const ReadOnly&) = delete;
    ReadOnly& operator=(const ReadOnly&) = delete;
    ~ReadOnly() { munmap(memory_, sizeof(T)); }
    T* get() { return static_cast<T*>(memory_); }

private:
    void* memory_ = nullptr;
};

// No signal ends the process while it holds what outlives it.
class AllSignalsBlocked {
public:
    AllSignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_SETMASK, &all, &before_);
    }
    AllSignalsBlocked(const AllSignalsBlocked&) = delete;
    AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;
    ~AllSignalsBlocked() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
};

struct SocketPair {
    explicit SocketPair(int type) { socketpair(AF_UNIX, type | SOCK_NONBLOCK, 0, ends); }
    SocketPair(const SocketPair&) = delete;
    SocketPair& operator=(const SocketPair&) = delete;
    ~SocketPair() {
        close(ends[0]);
        close(ends[1]);
    }
    int ends[2] = {-1, -1};
};

#define EXPECT_BAD_ADDRESS(call)  \
    do {                          \
        errno = 0;                \
        EXPECT_EQ(call, -1);      \
        EXPECT_EQ(errno, EFAULT); \
    } while (false)

#define EXPECT_FAILS_WITH(error, call) \
    do {                               \
        errno = 0;                     \
        EXPECT_EQ(call, -1);           \
        EXPECT_EQ(errno, error);       \
    } while (false)

bool consumes(long number) { return arguments_of(static_cast<uint64_t>(number)).consumes; }

TEST(ArgumentsConsumed, DatagramWhoseBufferIsBad) {
    const SocketPair pair(SOCK_DGRAM);
    ASSERT_EQ(send(pair.ends[1], "ab", 2, 0), 2);
    EXPECT_BAD_ADDRESS(syscall(SYS_recvfrom, pair.ends[0], bad_address(), 2, 0, nullptr, nullptr));
    char buffer[2];
    EXPECT_FAILS_WITH(EAGAIN, recv(pair.ends[0], buffer, sizeof buffer, 0));
    EXPECT_TRUE(consumes(SYS_recvfrom));
}

TEST(ArgumentsConsumed, DatagramOfRecvmsgAndRecvmmsg) {
    const SocketPair pair(SOCK_DGRAM);
    for (const bool many : {false, true}) {
        ASSERT_EQ(send(pair.ends[1], "ab", 2, 0), 2);
        iovec buffer = {bad_address(), 2};
        mmsghdr message = {};
        message.msg_hdr.msg_iov = &buffer;
        message.msg_hdr.msg_iovlen = 1;
        EXPECT_BAD_ADDRESS(many ? syscall(SYS_recvmmsg, pair.ends[0], &message, 1, 0, nullptr)
                                : syscall(SYS_recvmsg, pair.ends[0], &message.msg_hdr, 0));
        char byte;
        EXPECT_FAILS_WITH(EAGAIN, recv(pair.ends[0], &byte, 1, 0));
    }
    EXPECT_TRUE(consumes(SYS_recvmsg));
    EXPECT_TRUE(consumes(SYS_recvmmsg));
}

TEST(ArgumentsConsumed, SentMessageWhoseLengthCannotBeWritten) {
    const SocketPair pair(SOCK_DGRAM);
    char text[] = "ab";
    iovec buffer = {text, 2};
    mmsghdr message = {};
    message.msg_hdr.msg_iov = &buffer;
    message.msg_hdr.msg_iovlen = 1;
    ReadOnly<mmsghdr> unwritable(message);
    EXPECT_BAD_ADDRESS(syscall(SYS_sendmmsg, pair.ends[1], unwritable.get(), 1, 0));
    EXPECT_EQ(recv(pair.ends[0], text, sizeof text, 0), 2);
    EXPECT_TRUE(consumes(SYS_sendmmsg));
}

TEST(ArgumentsConsumed, ConnectionWhoseAddressIsBad) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof name;
    ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&name), length), 0);
    ASSERT_EQ(listen(listener, 4), 0);
    ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&name), &length), 0);
    for (const long number : {SYS_accept, SYS_accept4}) {
        const int client = socket(AF_INET, SOCK_STREAM, 0);
        ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&name), length), 0);
        EXPECT_BAD_ADDRESS(syscall(number, listener, bad_address(), &length, 0));
        EXPECT_FAILS_WITH(EAGAIN, accept(listener, nullptr, nullptr));
        EXPECT_TRUE(consumes(number));
        close(client);
    }
    close(listener);
}

TEST(ArgumentsConsumed, ErrorOfASocket) {
    const int closed = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof name;
    ASSERT_EQ(bind(closed, reinterpret_cast<sockaddr*>(&name), length), 0);
    ASSERT_EQ(getsockname(closed, reinterpret_cast<sockaddr*>(&name), &length), 0);
    const int sender = socket(AF_INET, SOCK_DGRAM, 0);
    ASSERT_EQ(connect(sender, reinterpret_cast<sockaddr*>(&name), length), 0);
    close(closed);
    ASSERT_EQ(send(sender, "a", 1, 0), 1);
    pollfd told = {sender, 0, 0};
    ASSERT_EQ(poll(&told, 1, 10'000), 1);  // POLLERR
    int error = -1;
    length = sizeof error;
    EXPECT_BAD_ADDRESS(
        syscall(SYS_getsockopt, sender, SOL_SOCKET, SO_ERROR, bad_address(), &length));
    ASSERT_EQ(getsockopt(sender, SOL_SOCKET, SO_ERROR, &error, &length), 0);
    EXPECT_EQ(error, 0);
    EXPECT_TRUE(consumes(SYS_getsockopt));
    close(sender);
}

TEST(ArgumentsConsumed, StatusOfAChild) {
    for (const bool by_id : {false, true}) {
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) _exit(0);
        // Else waitid, interrupted while it waits, could find the bad address before the child.
        siginfo_t ended;
        ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
        EXPECT_BAD_ADDRESS(by_id ? syscall(SYS_waitid, P_PID, child, bad_address(), WEXITED, 0)
                                 : syscall(SYS_wait4, child, bad_address(), 0, nullptr));
        EXPECT_FAILS_WITH(ECHILD, waitpid(child, nullptr, 0));
    }
    EXPECT_TRUE(consumes(SYS_wait4));
    EXPECT_TRUE(consumes(SYS_waitid));
}

TEST(ArgumentsConsumed, Signal) {
    sigset_t set;
    sigset_t before;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, &before);
    raise(SIGUSR2);
    EXPECT_BAD_ADDRESS(syscall(SYS_rt_sigtimedwait, &set, bad_address(), nullptr, 8));
    sigset_t pending;
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGUSR2), 0);
    EXPECT_TRUE(consumes(SYS_rt_sigtimedwait));
    sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST(ArgumentsConsumed, OldMaskAndOldAction) {
    sigset_t set;
    sigset_t now;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    EXPECT_BAD_ADDRESS(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set, bad_address(), 8));
    sigprocmask(SIG_UNBLOCK, &set, &now);
    EXPECT_EQ(sigismember(&now, SIGUSR2), 1);
    EXPECT_TRUE(consumes(SYS_rt_sigprocmask));

    const uint64_t ignore[4] = {1};  // SIG_IGN
    EXPECT_BAD_ADDRESS(syscall(SYS_rt_sigaction, SIGUSR2, ignore, bad_address(), 8));
    struct sigaction action = {};
    sigaction(SIGUSR2, nullptr, &action);
    EXPECT_EQ(action.sa_handler, SIG_IGN);
    EXPECT_TRUE(consumes(SYS_rt_sigaction));
    signal(SIGUSR2, SIG_DFL);
}

TEST(ArgumentsConsumed, OldTimesAndOldLimit) {
    const itimerspec hour = {{}, {3600, 0}};
    itimerspec now = {};
    const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    EXPECT_BAD_ADDRESS(syscall(SYS_timerfd_settime, timer, 0, &hour, bad_address()));
    timerfd_gettime(timer, &now);
    EXPECT_GT(now.it_value.tv_sec, 0);
    EXPECT_TRUE(consumes(SYS_timerfd_settime));
    close(timer);

    rlimit before = {};
    rlimit after = {};
    ASSERT_EQ(getrlimit(RLIMIT_CORE, &before), 0);
    const rlimit changed = {before.rlim_cur == 0 ? before.rlim_max : 0, before.rlim_max};
    EXPECT_BAD_ADDRESS(syscall(SYS_prlimit64, 0, RLIMIT_CORE, &changed, bad_address()));
    getrlimit(RLIMIT_CORE, &after);
    EXPECT_EQ(after.rlim_cur, changed.rlim_cur);
    EXPECT_TRUE(consumes(SYS_prlimit64));
    setrlimit(RLIMIT_CORE, &before);
}

TEST(ArgumentsConsumed, MessagesOfQueues) {
    char buffer[64] = {};
    const std::string name = "/hanare-arguments-" + std::to_string(getpid());
    mq_attr attributes = {};
    attributes.mq_maxmsg = 1;
    attributes.mq_msgsize = 8;
    const AllSignalsBlocked no_signals;
    const int posix = mq_open(name.c_str(), O_CREAT | O_RDWR | O_NONBLOCK, 0600, &attributes);
    mq_unlink(name.c_str());
    if (posix >= 0) {
        ASSERT_EQ(mq_send(posix, "a", 1, 0), 0);
        EXPECT_BAD_ADDRESS(syscall(SYS_mq_timedreceive, posix, bad_address(), 8, nullptr, nullptr));
        EXPECT_FAILS_WITH(EAGAIN, mq_receive(posix, buffer, 8, nullptr));
        mq_close(posix);
    }
    EXPECT_TRUE(consumes(SYS_mq_timedreceive));

    const int system_v = msgget(IPC_PRIVATE, 0600);
    if (system_v < 0) GTEST_SKIP() << "no System V queues here";
    const long message[2] = {1, 0};
    EXPECT_EQ(msgsnd(system_v, message, 8, 0), 0);
    EXPECT_BAD_ADDRESS(syscall(SYS_msgrcv, system_v, bad_address(), 8, 0, 0));
    EXPECT_FAILS_WITH(ENOMSG, msgrcv(system_v, buffer, 8, 0, IPC_NOWAIT));
    msgctl(system_v, IPC_RMID, nullptr);
    EXPECT_TRUE(consumes(SYS_msgrcv));
}

TEST(ArgumentsConsumed, FileWhoseOffsetCannotBeWritten) {
    const int file = memfd_create("arguments", 0);
    ASSERT_EQ(write(file, "abcd", 4), 4);
    int pipe_ends[2];
    ASSERT_EQ(pipe2(pipe_ends, O_NONBLOCK), 0);
    ReadOnly<off_t> offset(0);
    char buffer[8];
    EXPECT_BAD_ADDRESS(syscall(SYS_sendfile, pipe_ends[1], file, offset.get(), 4));
    EXPECT_EQ(read(pipe_ends[0], buffer, sizeof buffer), 4);
    EXPECT_BAD_ADDRESS(syscall(SYS_splice, file, offset.get(), pipe_ends[1], nullptr, 4, 0));
    EXPECT_EQ(read(pipe_ends[0], buffer, sizeof buffer), 4);
    EXPECT_TRUE(consumes(SYS_sendfile));
    EXPECT_TRUE(consumes(SYS_splice));
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    close(file);
}

// What is still there afterwards and may be tried again.
TEST(ArgumentsConsumed, NotByPipesEventsAndDirectories) {
    int pipe_ends[2];
    ASSERT_EQ(pipe2(pipe_ends, O_NONBLOCK), 0);
    ASSERT_EQ(write(pipe_ends[1], "a", 1), 1);
    const int set = epoll_create1(0);
    epoll_event event = {EPOLLIN | EPOLLET, {.fd = pipe_ends[0]}};
    ASSERT_EQ(epoll_ctl(set, EPOLL_CTL_ADD, pipe_ends[0], &event), 0);
    EXPECT_BAD_ADDRESS(syscall(SYS_epoll_wait, set, bad_address(), 1, 0));
    EXPECT_EQ(epoll_wait(set, &event, 1, 0), 1);
    EXPECT_FALSE(consumes(SYS_epoll_wait));

    char byte;
    EXPECT_BAD_ADDRESS(syscall(SYS_read, pipe_ends[0], bad_address(), 1));
    EXPECT_EQ(read(pipe_ends[0], &byte, 1), 1);
    EXPECT_FALSE(consumes(SYS_read));
    close(set);
    close(pipe_ends[0]);
    close(pipe_ends[1]);

    const int directory = open("/proc/self", O_RDONLY | O_DIRECTORY);
    char first[4096];
    char second[4096];
    const long told = syscall(SYS_getdents64, directory, first, sizeof first);
    lseek(directory, 0, SEEK_SET);
    EXPECT_BAD_ADDRESS(syscall(SYS_getdents64, directory, bad_address(), sizeof second));
    EXPECT_EQ(syscall(SYS_getdents64, directory, second, sizeof second), told);
    EXPECT_FALSE(consumes(SYS_getdents64));
    close(directory);
}

}  // namespace
}  // namespace hanare::intercept
