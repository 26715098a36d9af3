// SPDX-License-Identifier: Apache-2.0
//
// System calls on files, pipes and stream sockets whose buffers, vectors, names and results lie in
// far memory, from one byte to more than local memory.
#include "far.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define BUFFER_BYTES (28 * MIB)

static unsigned char* first;
static unsigned char* second;
static uint64_t digest;

static void put_all(int file, const unsigned char* at, size_t bytes) {
    while (bytes > 0) {
        const ssize_t done = write(file, at, bytes);
        CHECK(done > 0);
        at += done;
        bytes -= (size_t)done;
    }
}

static void get_all(int file, unsigned char* at, size_t bytes) {
    while (bytes > 0) {
        const ssize_t done = read(file, at, bytes);
        CHECK(done > 0);
        at += done;
        bytes -= (size_t)done;
    }
}

// Cuts [at, at + bytes) into `count` parts; the array lies in far memory.
static struct iovec* cut(unsigned char* at, size_t bytes, int count, uint64_t* random) {
    struct iovec* parts = (struct iovec*)cold((size_t)count * sizeof(struct iovec));
    for (int i = 0; i < count; ++i) {
        const size_t part = i == count - 1 ? bytes : below(random, bytes / 2 + 1);
        parts[i].iov_base = at;
        parts[i].iov_len = part;
        at += part;
        bytes -= part;
    }
    return parts;
}

// A file is never read or written in part: the size is told at once.
static void use_file(size_t bytes, uint64_t* random) {
    const uint64_t seed = next_random(random);
    const off_t offset = (off_t)below(random, 10000);
    unsigned char* from = first + below(random, BUFFER_BYTES - bytes);
    unsigned char* to = second + below(random, BUFFER_BYTES - bytes);
    const ssize_t all = (ssize_t)bytes;
    const int file = open(cold_text("file"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    fill(from, bytes, seed);
    CHECK(write(file, from, bytes) == all);
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    CHECK(read(file, to, bytes) == all && holds(to, bytes, seed));
    CHECK(read(file, to, bytes) == 0);
    fill(from, bytes, seed + 1);
    CHECK(pwrite(file, from, bytes, offset) == all);
    memset(to, 0, bytes);
    CHECK(pread(file, to, bytes, offset) == all && holds(to, bytes, seed + 1));
    CHECK(lseek(file, 0, SEEK_CUR) == all);

    fill(from, bytes, seed + 2);
    const int count = 1 + (int)below(random, 20);
    CHECK(lseek(file, 0, SEEK_SET) == 0);
    CHECK(writev(file, cut(from, bytes, count, random), count) == all);
    memset(to, 0, bytes);
    CHECK(preadv(file, cut(to, bytes, count, random), count, 0) == all);
    CHECK(holds(to, bytes, seed + 2));
    fill(from, bytes, seed + 3);
    CHECK(pwritev(file, cut(from, bytes, count, random), count, offset) == all);
    CHECK(lseek(file, offset, SEEK_SET) == offset);
    CHECK(readv(file, cut(to, bytes, count, random), count) == all);
    CHECK(holds(to, bytes, seed + 3));
    CHECK(preadv2(file, cut(to, bytes, count, random), count, 0, 0) == all);
    digest = mix(digest, digest_of(to, bytes));

    struct stat* status = (struct stat*)cold(sizeof *status);
    CHECK(fstat(file, status) == 0 && status->st_size == offset + all);
    CHECK(close(file) == 0);
}

// Past the page cache, where buffers must be aligned; a file system need not know that.
static void use_direct_file(uint64_t* random) {
    const int file = open(cold_text("direct"), O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    if (file < 0) return;
    for (int i = 0; i < 100; ++i) {
        const size_t bytes = (1 + below(random, 12)) * PAGE;
        unsigned char* from = first + below(random, 1000) * PAGE;
        unsigned char* to = second + below(random, 1000) * PAGE;
        fill(from, bytes, (uint64_t)i);
        const off_t offset = (off_t)(below(random, 100) * PAGE);
        CHECK(pwrite(file, from, bytes, offset) == (ssize_t)bytes);
        struct iovec* part = (struct iovec*)cold(sizeof *part);
        *part = (struct iovec){to, bytes};
        CHECK(preadv(file, part, 1, offset) == (ssize_t)bytes && holds(to, bytes, (uint64_t)i));
        memset(to, 0, bytes);
        CHECK(pread(file, to, bytes, offset) == (ssize_t)bytes && holds(to, bytes, (uint64_t)i));
    }
    CHECK(close(file) == 0 && unlink("direct") == 0);
}

struct transfer {
    int file;
    unsigned char* at;
    size_t bytes;
};

static void* send_transfer(void* context) {
    const struct transfer* transfer = (const struct transfer*)context;
    put_all(transfer->file, transfer->at, transfer->bytes);
    return NULL;
}

static void use_stream(int from, int to, size_t bytes, uint64_t* random) {
    const uint64_t seed = next_random(random);
    struct transfer* transfer = (struct transfer*)cold(sizeof *transfer);
    transfer->file = from;
    transfer->at = first + below(random, BUFFER_BYTES - bytes);
    transfer->bytes = bytes;
    unsigned char* at = second + below(random, BUFFER_BYTES - bytes);
    fill(transfer->at, bytes, seed);
    memset(at, 0, bytes);
    pthread_t sender;
    CHECK(pthread_create(&sender, NULL, send_transfer, transfer) == 0);
    get_all(to, at, bytes);
    CHECK(pthread_join(sender, NULL) == 0);
    CHECK(holds(at, bytes, seed));
    digest = mix(digest, digest_of(at, bytes));
}

static void use_streams(uint64_t* random) {
    int* told = (int*)cold(4 * sizeof(int));
    CHECK(pipe(told) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, told + 2) == 0);
    const int ends[2] = {told[0], told[1]};
    const int pair[2] = {told[2], told[3]};
    static const size_t sizes[] = {1, 4096, 65537, MIB + 1, 8 * MIB, 24 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        use_stream(ends[1], ends[0], sizes[i], random);
        use_stream(pair[1], pair[0], sizes[i], random);
    }
    // What is there is all that a stream gives; nothing waits for the rest.
    unsigned char* rest = second + 3 * MIB - 5;
    for (int i = 0; i < 200; ++i) {
        const size_t bytes = 1 + below(random, 60000);
        fill(first + 77, bytes, (uint64_t)i);
        CHECK(write(ends[1], first + 77, bytes) == (ssize_t)bytes);
        int* waiting = (int*)cold(sizeof(int));
        CHECK(ioctl(ends[0], FIONREAD, waiting) == 0 && *waiting == (int)bytes);
        CHECK(read(ends[0], rest, 16 * MIB) == (ssize_t)bytes && holds(rest, bytes, (uint64_t)i));
        CHECK(send(pair[1], first + 77, bytes, 0) == (ssize_t)bytes);
        CHECK(recv(pair[0], rest, 8 * MIB, 0) > 0);
        while (recv(pair[0], rest, 8 * MIB, MSG_DONTWAIT) > 0) {}
        CHECK(errno == EAGAIN);
    }
    CHECK(close(ends[1]) == 0 && read(ends[0], rest, 8 * MIB) == 0);
    CHECK(close(ends[0]) == 0 && close(pair[0]) == 0 && close(pair[1]) == 0);
}

static void use_names(uint64_t* random) {
    char name[100];
    CHECK(mkdir(cold_text("folder"), 0700) == 0);
    for (int i = 0; i < 300; ++i) {
        snprintf(name, sizeof name, "folder/%0*d", 1 + (int)below(random, 60), i);
        const int file = open(cold_text(name), O_WRONLY | O_CREAT | O_EXCL, 0600);
        CHECK(file >= 0 && close(file) == 0);
        char other[110];
        snprintf(other, sizeof other, "folder/x%d", i);
        CHECK(rename(cold_text(name), cold_text(other)) == 0);
        CHECK(access(cold_text(name), F_OK) == -1 && errno == ENOENT);
    }
    // The kernel tells a part at a time, into memory that is not there.
    const int folder = open(cold_text("folder"), O_RDONLY | O_DIRECTORY);
    int entries = 0;
    uint64_t sum = 0;
    for (;;) {
        char* part = (char*)cold(2000);
        const long bytes = syscall(SYS_getdents64, folder, part, 2000);
        CHECK(bytes >= 0);
        if (bytes == 0) break;
        for (long at = 0; at < bytes; ++entries) {
            const struct dirent64* entry = (const struct dirent64*)(part + at);
            for (const char* c = entry->d_name; *c != 0; ++c) sum += (unsigned char)*c;
            at += entry->d_reclen;
        }
    }
    CHECK(entries == 302 && close(folder) == 0);
    digest = mix(digest, sum);
    for (int i = 0; i < 300; ++i) {
        snprintf(name, sizeof name, "folder/x%d", i);
        CHECK(unlink(cold_text(name)) == 0);
    }
    for (int i = 0; i < 50; ++i) {
        CHECK(chdir(cold_text("folder")) == 0);
        char* path = (char*)cold(PATH_MAX);
        CHECK(getcwd(path, PATH_MAX) == path);
        CHECK(strcmp(strrchr(path, '/'), "/folder") == 0);
        CHECK(symlink(cold_text("../somewhere/else"), cold_text("link")) == 0);
        char* link = (char*)cold(200);
        memset(link, '#', 200);
        CHECK(readlink(cold_text("link"), link, 150) == 17);
        CHECK(memcmp(link, "../somewhere/else###", 20) == 0);
        struct stat* status = (struct stat*)cold(sizeof *status);
        CHECK(lstat(cold_text("link"), status) == 0 && S_ISLNK(status->st_mode));
        CHECK(stat(cold_text("link"), status) == -1 && errno == ENOENT);
        struct statx* more = (struct statx*)cold(sizeof *more);
        CHECK(statx(AT_FDCWD, cold_text("."), 0, STATX_BASIC_STATS, more) == 0);
        CHECK(S_ISDIR(more->stx_mode));
        CHECK(unlink(cold_text("link")) == 0 && chdir(cold_text("..")) == 0);
    }
    CHECK(rmdir(cold_text("folder")) == 0);
}

static void use_terminal(void) {
    int* told_master = (int*)cold(sizeof(int));
    int* told_slave = (int*)cold(sizeof(int));
    struct winsize* size = (struct winsize*)cold(sizeof *size);
    *size = (struct winsize){.ws_row = 31, .ws_col = 117};
    struct termios* mode = (struct termios*)cold(sizeof *mode);
    CHECK(openpty(told_master, told_slave, NULL, NULL, size) == 0);
    const int master = *told_master;
    const int slave = *told_slave;
    CHECK(tcgetattr(slave, mode) == 0);
    cfmakeraw(mode);
    CHECK(tcsetattr(slave, TCSANOW, mode) == 0);
    for (int i = 0; i < 200; ++i) {
        struct winsize* told = (struct winsize*)cold(sizeof *told);
        CHECK(ioctl(slave, TIOCGWINSZ, told) == 0);
        CHECK(told->ws_row == 31 && told->ws_col == 117);
        // A terminal forgets what it has handed out, also when that could not be written.
        char* sent = (char*)cold(500);
        fill(sent, 500, (uint64_t)i);
        CHECK(write(master, sent, 500) == 500);
        char* read_back = (char*)cold(500);
        size_t done = 0;
        while (done < 500) {
            const ssize_t bytes = read(slave, read_back + done, 500 - done);
            CHECK(bytes > 0);
            done += (size_t)bytes;
        }
        CHECK(holds(read_back, 500, (uint64_t)i));
    }
    CHECK(close(master) == 0 && close(slave) == 0);
}

// As elsewhere: what is not mapped is an error, and what is in front of it is transferred.
static void use_bad_addresses(void) {
    unsigned char* place = (unsigned char*)far_memory(MIB);
    memset(place, 7, MIB);
    CHECK(munmap(place + MIB / 2, MIB / 2) == 0);
    const int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(write(file, place + MIB / 2, 10) == -1 && errno == EFAULT);
    CHECK(write(file, place + MIB / 2 - 5000, 10000) == 5000);
    CHECK(pread(file, place + MIB / 2, 10, 0) == -1 && errno == EFAULT);
    CHECK(open((const char*)place + MIB / 2, O_RDONLY) == -1 && errno == EFAULT);
    CHECK(fstat(file, (struct stat*)(place + MIB / 2)) == -1 && errno == EFAULT);
    CHECK(close(file) == 0 && unlink("file") == 0 && munmap(place, MIB / 2) == 0);
}

int main(void) {
    uint64_t random = 17;
    prepare();
    first = (unsigned char*)far_memory(BUFFER_BYTES);
    second = (unsigned char*)far_memory(BUFFER_BYTES);
    start_pressure();
    static const size_t sizes[] = {1,     7,       4095,        4096,    4097,     16384, 16385,
                                   65536, 3 * 65536 + 11, MIB, 8 * MIB, 26 * MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        for (int repeats = sizes[i] < MIB ? 20 : 1; repeats > 0; --repeats) {
            use_file(sizes[i], &random);
        }
    }
    use_direct_file(&random);
    use_streams(&random);
    use_names(&random);
    use_terminal();
    use_bad_addresses();
    unsigned char* noise = second + 12345;
    CHECK(getrandom(noise, 2 * MIB, 0) == (ssize_t)(2 * MIB));
    size_t zeros = 0;
    for (size_t i = 0; i < 2 * MIB; ++i) zeros += noise[i] == 0;
    CHECK(zeros > 6000 && zeros < 11000);
    stop_pressure();
    CHECK(access("file", F_OK) == -1);
    printf("files %016llx\n", (unsigned long long)digest);
    return 0;
}
