// SPDX-License-Identifier: Apache-2.0
//
// System calls that few programs make: addresses that are wrong on purpose, structures in ordinary
// memory that name far memory, what lies at the border of far memory, mappings that fail.  With
// "refusals": what is only refused where memory is far.
#include "far.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>

#define ARRAY_BYTES (6 * MIB + 5 * PAGE)
static unsigned char array[ARRAY_BYTES] __attribute__((aligned(4096)));

static int64_t answer(long result) { return result < 0 ? -errno : result; }

#define MUST_BE(expected, call)                                                    \
    do {                                                                           \
        errno = 0;                                                                 \
        const int64_t got = answer(call);                                          \
        if (got != (expected))                                                     \
            fail_check(__FILE__, __LINE__, #call " is not " #expected, (int)-got); \
    } while (0)

static long change_mask(unsigned long how, const void* mask) {
    return syscall(SYS_rt_sigprocmask, how, mask, NULL, 8);
}

static volatile sig_atomic_t caught;

// As abseil and gperftools find out whether an address can be read, also in such a handler.
static void ask_in_handler(int number, siginfo_t* info, void* context) {
    (void)number;
    ucontext_t* interrupted = (ucontext_t*)context;
    const int error = errno;
    caught = change_mask(~0ul, info->si_addr) == -1 && errno == EFAULT;
    errno = error;
    interrupted->uc_mcontext.gregs[REG_RIP] += 2;  // mov (%rax), %al
}

static void wrong_addresses(void) {
    void* const nowhere = (void*)0x1000;
    void* const reserved = mmap(NULL, 64 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(reserved != MAP_FAILED);
    void* const wrong[] = {nowhere, reserved};
    for (int i = 0; i < 2; ++i) {
        MUST_BE(-EFAULT, change_mask(~0ul, wrong[i]));
        MUST_BE(-EFAULT, change_mask(SIG_BLOCK, wrong[i]));
        MUST_BE(-EFAULT, change_mask(SIG_SETMASK, wrong[i]));
        MUST_BE(-EFAULT, syscall(SYS_rt_sigaction, SIGUSR1, wrong[i], NULL, 8));
        MUST_BE(-EFAULT, syscall(SYS_sigaltstack, wrong[i], NULL));
        MUST_BE(-EFAULT, syscall(SYS_clone3, wrong[i], 88));
    }
    MUST_BE(-EINVAL, change_mask(~0ul, &reserved));
    MUST_BE(-EINVAL, change_mask(~0ul, cold(8)));
    MUST_BE(-EINVAL, syscall(SYS_rt_sigprocmask, SIG_BLOCK, nowhere, NULL, 4));
    MUST_BE(-EINVAL, syscall(SYS_clone3, NULL, 0));
    struct sigaction action = {.sa_sigaction = ask_in_handler, .sa_flags = SA_SIGINFO}, before;
    CHECK(sigaction(SIGSEGV, &action, &before) == 0);
    __asm__ volatile("movb (%0), %%al" : : "a"(nowhere) : "memory");
    CHECK(caught);
    CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
    sigset_t* const mask = (sigset_t*)cold(sizeof *mask);
    sigset_t now;
    sigemptyset(mask);
    sigaddset(mask, SIGSEGV);
    sigaddset(mask, SIGUSR2);
    sweep();
    MUST_BE(0, change_mask(SIG_BLOCK, mask));
    CHECK(sigprocmask(SIG_UNBLOCK, mask, &now) == 0);
    CHECK(sigismember(&now, SIGSEGV) == 1 && sigismember(&now, SIGUSR2) == 1);
    CHECK(munmap(reserved, 64 * MIB) == 0);
}

// As the kernel has it.
struct kernel_action {
    void* handler;
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static volatile sig_atomic_t faults;

static void count_fault(int number, siginfo_t* info, void* context) {
    (void)number, (void)info;
    ((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP] += 2;
    ++faults;
}

static void fault(void) { __asm__ volatile("movb (%0), %%al" : : "a"((void*)0x1000) : "memory"); }

// Past libc: the program's wish, and faults on far memory are served all the same.
static void actions_past_libc(void) {
    struct sigaction by_libc = {.sa_sigaction = count_fault, .sa_flags = SA_SIGINFO}, before;
    CHECK(sigaction(SIGSEGV, &by_libc, &before) == 0);
    struct kernel_action wanted, kept;
    MUST_BE(0, syscall(SYS_rt_sigaction, SIGSEGV, NULL, &wanted, 8));
    CHECK(wanted.handler == (void*)count_fault);
    faults = 0;
    for (int number = 0; number < 2; ++number) {
        MUST_BE(0, syscall(SYS_rt_sigaction, number == 0 ? SIGSEGV : SIGBUS, &wanted, &kept, 8));
        sweep();
        fault();
        CHECK(faults == number + 1);
    }
    // A child that shares the memory changes what is its own.
    const pid_t child = vfork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        struct sigaction plain = {.sa_handler = SIG_DFL};
        sigaction(SIGSEGV, &plain, NULL);
        wanted.handler = NULL;
        syscall(SYS_rt_sigaction, SIGSEGV, &wanted, NULL, 8);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    fault();
    CHECK(faults == 3);
    CHECK(sigaction(SIGSEGV, &before, NULL) == 0 && signal(SIGBUS, SIG_DFL) != SIG_ERR);
}

// The structures are in ordinary memory, and name what is not there.
static void named_memory(void) {
    struct sock_filter* const filter = (struct sock_filter*)cold(sizeof *filter);
    *filter = (struct sock_filter){BPF_RET | BPF_K, 0, 0, 0xffff};
    // Never used so far.
    struct ifreq* const interfaces = (struct ifreq*)far_memory(2 * MIB);
    uint32_t* const word = (uint32_t*)interfaces + MIB / sizeof *word;
    for (int i = 0; i < 3; ++i) sweep();
    const int file = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(file >= 0);
    const struct sock_fprog program = {1, filter};
    MUST_BE(0, setsockopt(file, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program));
    struct ifconf asked = {.ifc_len = 16 * (int)sizeof *interfaces, .ifc_req = interfaces};
    MUST_BE(0, ioctl(file, SIOCGIFCONF, &asked));
    struct {
        uint64_t value, address;
        uint32_t flags, reserved;
    } wait = {4, (uint64_t)word, 2, 0};
    const int64_t waited = answer(syscall(449, &wait, 1, 0, NULL, 0));  // futex_waitv
    CHECK(waited == -EAGAIN || waited == -ENOSYS);
    close(file);
    CHECK(munmap(interfaces, 2 * MIB) == 0);
}

// What is in a pipe stays what it was.
static void spliced(void) {
    const size_t bytes = 512 * KIB;
    int ends[2];
    CHECK(pipe(ends) == 0 && fcntl(ends[0], F_SETPIPE_SZ, 1 << 20) >= (int)bytes);
    unsigned char* const memory = (unsigned char*)far_memory(bytes);
    fill(memory, bytes, 41);
    struct iovec* const vector = (struct iovec*)cold(sizeof *vector);
    *vector = (struct iovec){memory, bytes};
    sweep();
    CHECK(holds(memory, bytes, 41));
    CHECK(vmsplice(ends[1], vector, 1, 0) == (ssize_t)bytes);
    for (int i = 0; i < 3; ++i) sweep();
    unsigned char* const seen = (unsigned char*)malloc(bytes);
    for (size_t done = 0; done < bytes;) {
        const ssize_t count = read(ends[0], seen + done, bytes - done);
        CHECK(count > 0);
        done += (size_t)count;
    }
    CHECK(holds(seen, bytes, 41));
    CHECK(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
    memset(memory, 0, PAGE);
    CHECK(write(ends[1], seen, PAGE) == (ssize_t)PAGE);
    vector->iov_len = PAGE;
    CHECK(vmsplice(ends[0], vector, 1, 0) == (ssize_t)PAGE && holds(memory, PAGE, 41));
    MUST_BE(-EAGAIN, vmsplice(ends[0], vector, 1, SPLICE_F_NONBLOCK));
    const int file = open("not a pipe", O_RDWR | O_CREAT, 0600);
    MUST_BE(-EBADF, vmsplice(file, vector, 1, 0));
    CHECK(lseek(file, 0, SEEK_END) == 0);
    close(file), close(ends[0]), close(ends[1]);
    free(seen);
    CHECK(munmap(memory, bytes) == 0);
}

// What is not far of a vector is no reason to cut it short.
static void mixed_vectors(void) {
    const size_t bytes = 16 * MIB;
    unsigned char* const plain = (unsigned char*)mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(plain != MAP_FAILED);
    fill(plain, bytes, 45);
    const struct iovec parts[] = {{cold_text("in front"), 8}, {plain, bytes}};
    sweep();
    const int file = open("vectors", O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && writev(file, parts, 2) == (ssize_t)(8 + bytes));
    memset(plain, 0, bytes);
    CHECK(preadv(file, parts, 2, 0) == (ssize_t)(8 + bytes) && holds(plain, bytes, 45));
    close(file);
    CHECK(munmap(plain, bytes) == 0);
}

// A file in addresses that were reserved.
static void mapped_files(void) {
    const size_t bytes = 4 * MIB;
    unsigned char* const place =
        (unsigned char*)mmap(NULL, 16 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(place != MAP_FAILED && mprotect(place, bytes, PROT_READ | PROT_WRITE) == 0);
    fill(place, bytes, 51);
    const int file = open("mapped", O_RDWR | O_CREAT, 0600);
    const int reading = open("mapped", O_RDONLY);
    CHECK(file >= 0 && reading >= 0 && ftruncate(file, (off_t)bytes) == 0);
    const int both = PROT_READ | PROT_WRITE;
    // What cannot be had leaves what was there.
    MUST_BE(-EACCES, (long)mmap(place, bytes, both, MAP_SHARED | MAP_FIXED, reading, 0));
    MUST_BE(-EBADF, (long)mmap(place, bytes, both, MAP_SHARED | MAP_FIXED, -1, 0));
    CHECK(holds(place, bytes, 51));
    CHECK(mmap(place + 2 * MIB, MIB, both, MAP_SHARED | MAP_FIXED, file, 0) == place + 2 * MIB);
    memcpy(place + 2 * MIB, "in the file", 12);
    MUST_BE(-EINVAL, msync(place + 2 * MIB, MIB, MS_SYNC | MS_ASYNC));  // the kernel's answer
    MUST_BE(-EINVAL, msync(place, bytes, MS_SYNC | MS_ASYNC));
    MUST_BE(0, msync(place, bytes, MS_SYNC));
    MUST_BE(0, msync(place + 2 * MIB, MIB, MS_SYNC));
    char text[12];
    CHECK(pread(reading, text, sizeof text, 0) == sizeof text && strcmp(text, "in the file") == 0);
    // Some file systems refuse this, and it is then mapped without.
    if (mmap(place, MIB, both, MAP_SHARED_VALIDATE | MAP_SYNC | MAP_FIXED, file, 0) == MAP_FAILED) {
        CHECK(mmap(place, MIB, both, MAP_SHARED | MAP_FIXED, file, 0) == place);
    }
    CHECK(strcmp((char*)place, "in the file") == 0);
    CHECK(munmap(place, 16 * MIB) == 0);
    close(file), close(reading);
}

static void advice(void) {
    unsigned char* const memory = (unsigned char*)far_memory(2 * MIB);
    fill(memory, 2 * MIB, 61);
    MUST_BE(-EINVAL, madvise(memory, 2 * MIB, 9999));
    MUST_BE(0, madvise(memory, 2 * MIB, MADV_NORMAL));
    CHECK(holds(memory, 2 * MIB, 61));
    // Of the own process: done, or refused and nothing lost.
    const int self = (int)syscall(434, getpid(), 0);  // pidfd_open
    struct iovec range = {memory, 2 * MIB};
    const int64_t advised = answer(syscall(440, self, &range, 1, MADV_DONTNEED, 0));
    if (advised == 2 * (int64_t)MIB) {
        for (size_t at = 0; at < 2 * MIB; ++at) CHECK(memory[at] == 0);
    } else {
        CHECK(advised == -EINVAL);
        CHECK(holds(memory, 2 * MIB, 61));
    }
    close(self);
    MUST_BE(-EINVAL, syscall(SYS_pkey_mprotect, memory, 2 * MIB, PROT_READ, 13));
    memory[0] = 1;
    CHECK(munmap(memory, 2 * MIB) == 0);
}

// Of a static array the whole blocks inside are far, and what lies before and behind is not.
static void borders(void) {
    fill(array, ARRAY_BYTES, 71);
    MUST_BE(0, mprotect(array, ARRAY_BYTES, PROT_READ));
    CHECK(holds(array, ARRAY_BYTES, 71));
    MUST_BE(0, mprotect(array, ARRAY_BYTES, PROT_READ | PROT_WRITE));
    array[0] = array[ARRAY_BYTES / 2] = array[ARRAY_BYTES - 1] = 0;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    CHECK(mmap(array, ARRAY_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0) == (void*)array);
    for (size_t at = 0; at < ARRAY_BYTES; ++at) CHECK(array[at] == 0);
    memset(array, 7, ARRAY_BYTES);
    for (size_t at = 0; at < ARRAY_BYTES; ++at) CHECK(array[at] == 7);
}

static void heap_with_a_protected_page(void) {
    unsigned char* const begin = (unsigned char*)sbrk(16 * MIB);
    CHECK(begin != (void*)-1);
    unsigned char* const page = (unsigned char*)(((uintptr_t)begin + 8 * MIB) & ~(PAGE - 1));
    *page = 9;
    CHECK(mprotect(page, PAGE, PROT_READ) == 0);
    CHECK(sbrk(8 * MIB) == begin + 16 * MIB);
    memset(begin + 16 * MIB, 5, 8 * MIB);
    CHECK(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0 && *page == 9);
    CHECK(sbrk(-(intptr_t)(24 * MIB)) == begin + 24 * MIB);
}

static void message_without_text(void) {
    const int queue = msgget(IPC_PRIVATE, 0600);
    CHECK(queue >= 0);
    struct message {
        long type;
        char text[56];
    }* const message = (struct message*)cold(sizeof *message);
    for (long type = 1; type < 100; ++type) {
        const struct message sent = {.type = type};
        CHECK(msgsnd(queue, &sent, 0, 0) == 0);
        memset(message, 0x55, sizeof *message);
        CHECK(msgrcv(queue, message, sizeof message->text, 0, 0) == 0);
        CHECK(message->type == type && message->text[0] == 0x55);
    }
    CHECK(msgctl(queue, IPC_RMID, NULL) == 0);
}

// Stacks in parts of blocks of which others are given back meanwhile.
#define STACKS_BYTES (32 * MIB)
#define SHARE (64 * KIB)
static unsigned char* stacks;
static pthread_barrier_t barrier;
static ucontext_t back;

static void run_on_stack(void) {
    for (int i = 0; i < 20; ++i) (void)syscall(SYS_getppid);
}

static void* use_stacks(void* unused) {
    for (size_t at = 0; at < STACKS_BYTES; at += 4 * SHARE) {
        pthread_barrier_wait(&barrier);
        ucontext_t there;
        getcontext(&there);
        there.uc_stack.ss_sp = stacks + at + 2 * SHARE;
        there.uc_stack.ss_size = SHARE;
        there.uc_link = &back;
        makecontext(&there, run_on_stack, 0);
        swapcontext(&back, &there);
        pthread_barrier_wait(&barrier);
    }
    return unused;
}

static void stacks_beside_what_is_given_back(void) {
    stacks = (unsigned char*)far_memory(STACKS_BYTES);
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, use_stacks, NULL) == 0);
    for (size_t at = 0; at < STACKS_BYTES; at += 4 * SHARE) {
        memset(stacks + at, 0x33, SHARE);
        pthread_barrier_wait(&barrier);
        CHECK(madvise(stacks + at, SHARE, MADV_DONTNEED) == 0);
        pthread_barrier_wait(&barrier);
        for (size_t i = 0; i < SHARE; i += 8) CHECK(*(uint64_t*)(stacks + at + i) == 0);
        memset(stacks + at, 0x44, SHARE);
        CHECK(madvise(stacks + at, SHARE, MADV_DONTNEED) == 0);
        for (size_t i = 0; i < SHARE; i += 8) CHECK(*(uint64_t*)(stacks + at + i) == 0);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    memset(stacks, 0x55, STACKS_BYTES);
    CHECK(munmap(stacks, STACKS_BYTES) == 0);
    unsigned char* const again = (unsigned char*)far_memory(STACKS_BYTES);
    for (size_t i = 0; i < STACKS_BYTES; i += 8) CHECK(*(uint64_t*)(again + i) == 0);
    CHECK(munmap(again, STACKS_BYTES) == 0);
}

static void refusals(void) {
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;
    MUST_BE(-EOPNOTSUPP, setsockopt(file, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof on));
    MUST_BE(0, setsockopt(file, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
    close(file);
    MUST_BE(-ENOSPC, syscall(SYS_pkey_alloc, 0, 0));
    unsigned char* const memory = (unsigned char*)far_memory(2 * MIB);
    MUST_BE(-EINVAL, madvise(memory, PAGE, 102));        // MADV_GUARD_INSTALL
    MUST_BE(-ENOSYS, syscall(462, memory, 2 * MIB, 0));  // mseal
    struct iovec range = {memory, 2 * MIB};
    const int self = (int)syscall(434, getpid(), 0);
    MUST_BE(-EINVAL, syscall(440, self, &range, 1, MADV_DONTNEED, 0));
    close(self);
    CHECK(munmap(memory, 2 * MIB) == 0);
    // A child without handlers, by which libc begins one that execs.
    struct {
        uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls;
    } clone = {.flags = 0x100000000 | 0x4100, .exit_signal = SIGCHLD};
    const long cloned = syscall(SYS_clone3, &clone, sizeof clone);
    if (cloned == 0) _exit(0);
    CHECK(cloned == -1 && errno == EINVAL);
    // More than can stay in memory for good.
    unsigned char* const large = (unsigned char*)far_memory(40 * MIB);
    fill(large, 40 * MIB, 81);
    MUST_BE(-ENOMEM, mprotect(large, 40 * MIB, PROT_READ));
    CHECK(holds(large, 40 * MIB, 81));
    CHECK(munmap(large, 40 * MIB) == 0);
}

int main(int count, char** arguments) {
    prepare();
    if (count > 1 && strcmp(arguments[1], "refusals") == 0) {
        refusals();
        return 0;
    }
    wrong_addresses();
    actions_past_libc();
    named_memory();
    spliced();
    mixed_vectors();
    mapped_files();
    advice();
    borders();
    heap_with_a_protected_page();
    message_without_text();
    stacks_beside_what_is_given_back();
    puts("all as it should be");
    return 0;
}
