// SPDX-License-Identifier: Apache-2.0
//
// Option syscalls: system calls are given memory of a pool that is absent, several times larger
// than local memory, and do what they do with plain memory.  They are intercepted in the whole
// process and for good, so every case is a scenario.
#include <cerrno>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "api/far_pool.hpp"
#include "api/scenario.hpp"

namespace hanare::api_test {

namespace {

constexpr uint64_t kBlock = 64 * kKiB;
constexpr uint64_t kFrames = 32;
constexpr uint64_t kBytes = 4 * kFrames * kBlock;
constexpr auto kSize = static_cast<ssize_t>(kBytes);

// A pool whose memory is absent whenever a test wants it to be.
class Calls {
public:
    explicit Calls(const std::string& engine, uint64_t bytes = kBytes) : bytes_(bytes) {
        setenv("HANARE_SYSCALLS", "on", 1);
        pool_ = std::make_unique<FarPool>(PoolSetup{engine.c_str(), kBlock}, kFrames, 2 * bytes);
        memory_ = pool_->alloc(bytes);
        path_ = directory_.path();
        file_ = open(path_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    }
    ~Calls() { close(file_); }

    hanare_pool* pool() const { return pool_->get(); }
    std::byte* memory() const { return memory_; }
    uint64_t* words() const { return reinterpret_cast<uint64_t*>(memory_); }
    int file() const { return file_; }
    const std::string& path() const { return path_; }
    FarPool& far_pool() { return *pool_; }
    // Absent, in the place of a T; what it holds stays.
    template <typename T>
    T* absent(uint64_t at = 0) {
        pool_->make_absent(memory_, bytes_);
        return reinterpret_cast<T*>(memory_ + at);
    }

private:
    const uint64_t bytes_;
    sys::testing::TemporaryDirectory directory_;
    std::string path_;
    std::unique_ptr<FarPool> pool_;
    std::byte* memory_ = nullptr;
    int file_ = -1;
};

API_TEST_SCENARIO(syscalls_of_files) {
    Calls calls(arguments[0]);
    fill(calls.words(), kBytes, 1);
    SCENARIO_CHECK(pwrite(calls.file(), calls.absent<void>(), kBytes, 0) == kSize);
    fill(calls.words(), kBytes, 2);
    SCENARIO_CHECK(pread(calls.file(), calls.absent<void>(), kBytes, 0) == kSize);
    SCENARIO_CHECK(mismatches(calls.words(), kBytes, 1) == 0);
    fill(calls.words(), kBytes, 3);
    iovec parts[3] = {
        {calls.absent<void>(kBytes / 2), kBytes / 2}, {nullptr, 0}, {calls.memory(), kBytes / 2}};
    SCENARIO_CHECK(lseek(calls.file(), 0, SEEK_SET) == 0);
    SCENARIO_CHECK(writev(calls.file(), parts, 3) == kSize);
    std::memset(calls.memory(), 0, kBytes);
    auto* const far_parts = calls.absent<iovec>(0);  // the array is far memory, too
    const uint64_t rest = kBytes / 2 - kBlock;
    far_parts[0] = {calls.memory() + kBytes / 2 + kBlock, rest};
    calls.absent<void>();
    SCENARIO_CHECK(preadv(calls.file(), far_parts, 1, kBlock) == static_cast<ssize_t>(rest));
    for (uint64_t i = kBytes / 2 + kBlock; i < kBytes; i += sizeof(uint64_t)) {
        SCENARIO_CHECK(calls.words()[i / 8] == pattern(3, i / 8));
    }
    // At the end of the file it is short; nothing behind is touched.
    fill(calls.words(), kBytes, 4);
    calls.absent<void>();
    SCENARIO_CHECK(pread(calls.file(), calls.memory() + 8, kBytes - 8, kBytes - 100) == 100);
    SCENARIO_CHECK(calls.words()[0] == pattern(4, 0));
    SCENARIO_CHECK(calls.words()[14] == pattern(4, 14));
    return 0;
}

API_TEST_SCENARIO(syscalls_of_the_system) {
    Calls calls(arguments[0]);
    std::strcpy(calls.absent<char>(), calls.path().c_str());
    auto* const status = calls.absent<struct stat>(kBlock);
    SCENARIO_CHECK(stat(calls.absent<char>(), status) == 0 && S_ISDIR(status->st_mode));
    struct stat near = {};
    SCENARIO_CHECK(stat(calls.path().c_str(), &near) == 0 && near.st_ino == status->st_ino);
    const int folder = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    auto* const entries = calls.absent<std::byte>();
    SCENARIO_CHECK(syscall(SYS_getdents64, folder, entries, 64 * kKiB) > 100);
    close(folder);
    SCENARIO_CHECK(readlink("/proc/self/exe", calls.absent<char>(), 4000) > 1);
    SCENARIO_CHECK(getcwd(calls.absent<char>(), 4000) != nullptr);
    auto* const name = calls.absent<utsname>(2 * kBlock - 16);  // in two blocks
    SCENARIO_CHECK(uname(name) == 0 && std::strcmp(name->sysname, "Linux") == 0);
    auto* const time = calls.absent<timespec>();
    SCENARIO_CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, time) == 0 && time->tv_sec > 0);
    auto* const action = calls.absent<struct sigaction>();
    SCENARIO_CHECK(sigaction(SIGUSR1, nullptr, action) == 0 && action->sa_handler == SIG_DFL);
    const pid_t child = fork();
    if (child == 0) {
        // The parent's memory is none here, for system calls as for loads.
        const bool fails = write(calls.file(), calls.memory(), 1) == -1 && errno == EFAULT;
        _exit(fails ? 7 : 1);
    }
    auto* const ended = calls.absent<int>();
    SCENARIO_CHECK(waitpid(child, ended, 0) == child && WEXITSTATUS(*ended) == 7);
    auto* const words = calls.absent<char*>();
    const auto put = [&](uint64_t at, const char* text) {
        return std::strcpy(reinterpret_cast<char*>(calls.memory()) + at, text);
    };
    words[0] = put(kBlock, "sh");
    words[1] = put(2 * kBlock, "-c");
    words[2] = put(3 * kBlock, "exit 9");
    words[3] = nullptr;
    calls.absent<void>();
    const pid_t program = vfork();
    if (program == 0) {
        execve("/bin/sh", words, environ);
        _exit(1);
    }
    int status_of_program = 0;
    SCENARIO_CHECK(waitpid(program, &status_of_program, 0) == program);
    SCENARIO_CHECK(WEXITSTATUS(status_of_program) == 9);
    return 0;
}

API_TEST_SCENARIO(syscalls_of_sockets) {
    Calls calls(arguments[0]);
    int ends[2];
    SCENARIO_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    // Datagrams, one after the other, none lost.
    for (uint64_t number = 0; number < 20; ++number) {
        calls.words()[0] = pattern(5, number);
        SCENARIO_CHECK(send(ends[0], calls.absent<void>(), 8, 0) == 8);
        SCENARIO_CHECK(recv(ends[1], calls.absent<void>(kBlock), 100, 0) == 8);
        SCENARIO_CHECK(calls.words()[kBlock / 8] == pattern(5, number));
    }
    // A message whose every part is far memory, and a descriptor that must not get lost.
    struct Message {
        msghdr header;
        iovec parts[2];
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    };
    const auto fill_in = [&](Message* message, uint64_t at) {
        *message = {};
        message->parts[0] = {calls.memory() + at, 3};
        message->parts[1] = {calls.memory() + at + 2 * kBlock, 100 * kKiB};
        message->header.msg_iov = message->parts;
        message->header.msg_iovlen = 2;
        message->header.msg_control = message->control;
        message->header.msg_controllen = sizeof message->control;
    };
    auto* const message = calls.absent<Message>();
    fill_in(message, kBlock);
    fill(calls.words() + 3 * kBlock / 8, 100 * kKiB, 6);
    auto* const passed = CMSG_FIRSTHDR(&message->header);
    passed->cmsg_level = SOL_SOCKET;
    passed->cmsg_type = SCM_RIGHTS;
    passed->cmsg_len = CMSG_LEN(sizeof(int));
    const int descriptor_sent = calls.file();
    std::memcpy(CMSG_DATA(passed), &descriptor_sent, sizeof(int));
    calls.absent<void>();
    SCENARIO_CHECK(sendmsg(ends[0], &message->header, 0) == 3 + 100 * kKiB);
    fill_in(message, 8 * kBlock);
    calls.absent<void>();
    SCENARIO_CHECK(recvmsg(ends[1], &message->header, 0) == 3 + 100 * kKiB);
    SCENARIO_CHECK(mismatches(calls.words() + 10 * kBlock / 8, 100 * kKiB, 6) == 0);
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message->header)), sizeof descriptor);
    SCENARIO_CHECK(fcntl(descriptor, F_GETFD) != -1);
    auto* const polled = calls.absent<pollfd>();
    polled[0] = {ends[0], POLLOUT, 0};
    polled[1] = {ends[1], POLLIN, 0};
    calls.absent<void>();
    SCENARIO_CHECK(poll(polled, 2, 0) == 1 && polled[0].revents == POLLOUT);
    return 0;
}

// More threads than their buffers fit in local memory, while blocks come and go.
API_TEST_SCENARIO(syscalls_of_threads) {
    constexpr uint64_t kThreads = 6;
    constexpr uint64_t kPart = kBytes / kThreads / kBlock * kBlock;
    Calls calls(arguments[0]);
    std::vector<uint64_t> plain(kBytes / 8);
    fill(plain.data(), kBytes, 7);
    SCENARIO_CHECK(pwrite(calls.file(), plain.data(), kBytes, 0) == kSize);
    std::atomic<int> wrong{0};
    std::vector<std::function<void()>> bodies;
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
        bodies.emplace_back([&, thread] {
            std::byte* const part = calls.memory() + thread * kPart;
            for (uint64_t turn = 0; turn < 10; ++turn) {
                const auto size = static_cast<ssize_t>(kPart - turn * 1000);
                const auto at = static_cast<off_t>(thread * kPart);
                wrong += pread(calls.file(), part + turn * 8, kPart - turn * 1000, at) != size;
                wrong += std::memcmp(part + turn * 8, plain.data() + thread * kPart / 8,
                                     kPart - turn * 1000) != 0;
            }
        });
    }
    run_threads(bodies);
    SCENARIO_CHECK(wrong == 0);
    return 0;
}

// What a system call uses is as if it were pinned.
API_TEST_SCENARIO(syscalls_and_flush) {
    Calls calls(arguments[0]);
    int ends[2];
    SCENARIO_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    fill(calls.words(), kBytes, 8);
    must(hanare_flush(calls.pool(), nullptr, 0));
    std::thread receiver([&] { recv(ends[1], calls.memory(), kBlock, 0); });
    const bool is_refused = eventually(
        [&] { return hanare_flush(calls.pool(), calls.memory(), kBlock) == HANARE_STATUS_BUSY; });
    must(hanare_advise(calls.pool(), calls.memory(), kBlock, HANARE_ADVICE_DISCARD));
    const bool is_kept = calls.words()[1] == pattern(8, 1);
    const uint64_t word = pattern(9, 0);
    SCENARIO_CHECK(send(ends[0], &word, sizeof word, 0) == sizeof word);
    receiver.join();
    SCENARIO_CHECK(is_refused && is_kept && calls.words()[0] == word);
    must(hanare_flush(calls.pool(), nullptr, 0));
    must(hanare_advise(calls.pool(), calls.memory(), kBlock, HANARE_ADVICE_DONTNEED));
    SCENARIO_CHECK(calls.words()[0] == word && calls.words()[1] == pattern(8, 1));
    return 0;
}

// What lies in registers that a futex operation does not use is no address.
API_TEST_SCENARIO(syscalls_and_unused_registers) {
    Calls calls(arguments[0]);
    fill(calls.words(), kBytes, 3);
    auto* const absent = calls.absent<void>();
    static uint32_t word = 0;
    SCENARIO_CHECK(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, absent, absent, 0) == 0);
    SCENARIO_CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, nullptr, absent, 0) == -1 &&
                   errno == EAGAIN);
    SCENARIO_CHECK(calls.far_pool().stats().resident_bytes == 0);
    // A time limit is one, and so is the second word where there is one.
    *calls.absent<timespec>() = {0, 1};
    SCENARIO_CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, calls.absent<void>(), 0, 0) ==
                       -1 &&
                   errno == ETIMEDOUT);
    SCENARIO_CHECK(
        syscall(SYS_futex, &word, FUTEX_REQUEUE_PRIVATE, 1, 1, calls.absent<void>(), 0) == 0);
    return 0;
}

struct Receiver {
    int socket;
    void* memory;
    size_t bytes;
};

void* receive_for_ever(void* context) {
    const auto& receiver = *static_cast<const Receiver*>(context);
    for (;;) recv(receiver.socket, receiver.memory, receiver.bytes, 0);
}

// A thread that is cancelled in a system call leaves nothing behind.
API_TEST_SCENARIO(syscalls_and_cancellation) {
    Calls calls(arguments[0]);
    int ends[2];
    SCENARIO_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    for (const size_t bytes : {size_t{100}, size_t{kBlock}}) {
        for (int turn = 0; turn < 10; ++turn) {
            fill(calls.words(), kBlock, 1);
            Receiver receiver = {ends[1], calls.memory(), bytes};
            pthread_t thread;
            SCENARIO_CHECK(pthread_create(&thread, nullptr, receive_for_ever, &receiver) == 0);
            if (bytes == kBlock) {
                SCENARIO_CHECK(eventually([&] {
                    return hanare_flush(calls.pool(), calls.memory(), kBlock) == HANARE_STATUS_BUSY;
                }));
            }
            void* result = nullptr;
            SCENARIO_CHECK(pthread_cancel(thread) == 0);
            SCENARIO_CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
            SCENARIO_CHECK(mismatches(calls.absent<uint64_t>(), kBlock, 1) == 0);
            must(hanare_flush(calls.pool(), nullptr, 0));
        }
    }
    return 0;
}

API_TEST_SCENARIO(syscalls_with_bad_addresses) {
    Calls calls(arguments[0]);
    SCENARIO_CHECK(write(calls.file(), "12345678", 8) == 8);
    void* const closed = mmap(nullptr, kBlock, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct stat status = {};
    const auto fails = [&](void* given) {
        void* volatile hidden = given;  // from the compiler, which would object
        void* const address = hidden;
        errno = 0;
        const bool reads = pread(calls.file(), address, 8, 0) == -1 && errno == EFAULT;
        errno = 0;
        // Not by libc's names, in front of which a sanitizer reads what they are given.
        const bool opens = syscall(SYS_open, address, O_RDONLY) == -1 && errno == EFAULT;
        errno = 0;
        return reads && opens && syscall(SYS_stat, address, &status) == -1 && errno == EFAULT;
    };
    SCENARIO_CHECK(fails(reinterpret_cast<void*>(8)));
    SCENARIO_CHECK(fails(closed));
    SCENARIO_CHECK(fails(reinterpret_cast<void*>(~uintptr_t{4095})));
    iovec parts[2] = {{calls.absent<void>(), 4}, {closed, 4}};
    SCENARIO_CHECK(preadv(calls.file(), parts, 2, 0) == 4);  // as far as it goes
    SCENARIO_CHECK(std::memcmp(calls.memory(), "1234", 4) == 0);
    // What reaches out of a region is the kernel's to judge.
    std::byte* const end = calls.memory() + kBytes;
    const void* const behind =
        mmap(end, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (behind == end) {
        calls.absent<void>();
        SCENARIO_CHECK(pread(calls.file(), end - 100, 300, 0) == 8);
        SCENARIO_CHECK(std::memcmp(end - 100, "12345678", 8) == 0);
        int ends[2];
        SCENARIO_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        calls.absent<void>();
        SCENARIO_CHECK(send(ends[0], end - 100, 300, 0) == -1 && errno == EFAULT);
        SCENARIO_CHECK(send(ends[0], end - 100, 100, 0) == 100);
    }
    // A pool without the option beside it, and memory that is given back.
    unsetenv("HANARE_SYSCALLS");
    FarPool other({arguments[0].c_str(), kBlock}, kFrames, kBytes);
    std::byte* const apart = other.alloc(kBytes);
    std::memset(apart, 1, kBytes);
    other.make_absent(apart, kBytes);
    if (!serves_system_calls(arguments[0])) SCENARIO_CHECK(fails(apart));
    std::byte* const gone = calls.far_pool().alloc(kBlock);
    SCENARIO_CHECK(pread(calls.file(), gone, 8, 0) == 8);
    must(hanare_free(calls.pool(), gone));
    SCENARIO_CHECK(fails(gone));
    SCENARIO_CHECK(pread(calls.file(), calls.absent<void>(), 8, 0) == 8);
    return 0;
}

API_TEST_SCENARIO(syscalls_many_regions) {
    Calls calls(arguments[0]);
    SCENARIO_CHECK(write(calls.file(), "12345678", 8) == 8);
    std::vector<std::byte*> regions;
    for (int turn = 0; turn < 3; ++turn) {
        while (regions.size() < 40) regions.push_back(calls.far_pool().alloc(kBlock));
        for (std::byte* const region : regions) {
            calls.far_pool().make_absent(region, kBlock);
            SCENARIO_CHECK(pread(calls.file(), region + 100, 8, 0) == 8);
            SCENARIO_CHECK(std::memcmp(region + 100, "12345678", 8) == 0);
        }
        for (size_t i = 0; i < 25; ++i) {
            must(hanare_free(calls.pool(), regions.back()));
            regions.pop_back();
        }
    }
    return 0;
}

// Threads that are there before are stopped for a moment, wherever they are.
API_TEST_SCENARIO(syscalls_of_threads_that_were_there) {
    int ends[2];
    SCENARIO_CHECK(pipe(ends) == 0);
    std::atomic<std::byte*> region{nullptr};
    std::atomic<bool> end{false};
    std::atomic<int> results{0};
    std::thread busy([&] {
        while (!end.load()) results += getppid() <= 0;
    });
    std::thread waiting([&] {
        char byte = 0;
        results += read(ends[0], &byte, 1) != 1;
        // A pipe may hand it over in pieces.
        for (size_t got = 0; got < kBlock;) {
            const ssize_t more = read(ends[0], region.load() + got, kBlock - got);
            if (more <= 0) {
                ++results;
                break;
            }
            got += static_cast<size_t>(more);
        }
    });
    hanare_pool_options options = {};
    options.struct_size = sizeof options;
    options.local_bytes = 64 * kBlock;
    options.block_bytes = kBlock;
    options.store = "file:/var/tmp";
    options.flags = HANARE_POOL_SYSCALLS;
    hanare_pool* pool = nullptr;
    must(hanare_catch_system_calls());
    must(hanare_catch_system_calls());
    must(hanare_pool_open(&options, &pool));
    void* memory = nullptr;
    must(hanare_alloc(pool, kBlock, nullptr, &memory));
    region = static_cast<std::byte*>(memory);
    SCENARIO_CHECK(write(ends[1], "x", 1) == 1);
    const std::vector<char> sent(kBlock, 'y');
    SCENARIO_CHECK(write(ends[1], sent.data(), kBlock) == ssize_t{kBlock});
    waiting.join();
    end = true;
    busy.join();
    SCENARIO_CHECK(results == 0);
    SCENARIO_CHECK(std::memcmp(memory, sent.data(), kBlock) == 0);
    must(hanare_pool_close(pool));
    return 0;
}

// Whoever was linked before the library was loaded comes to the kernel, not to its wrappers.
API_TEST_SCENARIO(syscalls_leave_the_faults_to_hanare) {
    Calls calls(arguments[0]);
    std::byte* const region = calls.far_pool().alloc(kBlock);
    std::memset(region, 7, kBlock);
    struct KernelAction {
        void (*handler)(int);
        unsigned long flags;
        void* restorer;
        uint64_t mask;
    };
    const KernelAction action = {[](int) { _exit(1); }, SA_NODEFER, nullptr, 0};
    KernelAction told = {};
    KernelAction before = {};
    SCENARIO_CHECK(syscall(SYS_rt_sigaction, SIGBUS, &action, &before, sizeof action.mask) == 0);
    calls.far_pool().make_absent(region, kBlock);
    SCENARIO_CHECK(region[5] == std::byte{7});
    SCENARIO_CHECK(syscall(SYS_rt_sigaction, SIGBUS, nullptr, &told, sizeof action.mask) == 0);
    SCENARIO_CHECK(told.handler == action.handler && told.flags == SA_NODEFER);
    SCENARIO_CHECK(before.handler == SIG_DFL);
    struct sigaction by_libc = {};
    SCENARIO_CHECK(sigaction(SIGBUS, nullptr, &by_libc) == 0);
    SCENARIO_CHECK(by_libc.sa_handler == action.handler);
    return 0;
}

// An ordinary user, where containers refuse userfaultfd and io_uring.
API_TEST_SCENARIO(syscalls_of_ordinary_users) {
    SCENARIO_CHECK(geteuid() != 0 ||
                   (setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0));
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_userfaultfd, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program = {sizeof code / sizeof code[0], code};
    SCENARIO_CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (arguments[0] == "filtered") {
        SCENARIO_CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    }
    Calls calls("auto");
    fill(calls.words(), kBytes, 1);
    SCENARIO_CHECK(pwrite(calls.file(), calls.absent<void>(), kBytes, 0) == kSize);
    fill(calls.words(), kBytes, 2);
    SCENARIO_CHECK(pread(calls.file(), calls.absent<void>(), kBytes, 0) == kSize);
    SCENARIO_CHECK(mismatches(calls.words(), kBytes, 1) == 0);
    return 0;
}

class SyscallsTest : public EngineTest {
protected:
    void SetUp() override {
        EngineTest::SetUp();
#if defined(HANARE_TSAN)
        if (!IsSkipped()) GTEST_SKIP() << "ThreadSanitizer has a thread of its own";
#endif
    }
    static void run(const char* scenario, const std::string& argument) {
        const Outcome outcome = run_scenario(scenario, {argument});
        EXPECT_TRUE(outcome.exited_with(0)) << outcome.describe();
    }
};
API_TEST_WITH_ENGINES(SyscallsTest);

TEST_P(SyscallsTest, Files) { run("syscalls_of_files", GetParam()); }
TEST_P(SyscallsTest, System) { run("syscalls_of_the_system", GetParam()); }
TEST_P(SyscallsTest, Sockets) { run("syscalls_of_sockets", GetParam()); }
TEST_P(SyscallsTest, Threads) { run("syscalls_of_threads", GetParam()); }
TEST_P(SyscallsTest, Flush) { run("syscalls_and_flush", GetParam()); }
TEST_P(SyscallsTest, UnusedRegisters) { run("syscalls_and_unused_registers", GetParam()); }
TEST_P(SyscallsTest, Cancellation) { run("syscalls_and_cancellation", GetParam()); }
TEST_P(SyscallsTest, BadAddresses) { run("syscalls_with_bad_addresses", GetParam()); }
TEST_P(SyscallsTest, ManyRegions) { run("syscalls_many_regions", GetParam()); }

class SyscallsOfProcessTest : public SyscallsTest {};
INSTANTIATE_TEST_SUITE_P(Auto, SyscallsOfProcessTest, testing::Values("auto"));

#if !defined(HANARE_ASAN)
TEST_P(SyscallsOfProcessTest, ThreadsThatWereThere) {
    run("syscalls_of_threads_that_were_there", "");
}
#endif
TEST_P(SyscallsOfProcessTest, FaultsStayHanares) {
    run("syscalls_leave_the_faults_to_hanare", GetParam());
}
TEST_P(SyscallsOfProcessTest, OrdinaryUser) {
    run("syscalls_of_ordinary_users", "plain");
    run("syscalls_of_ordinary_users", "filtered");
}

}  // namespace

}  // namespace hanare::api_test
