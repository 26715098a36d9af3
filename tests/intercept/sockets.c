// SPDX-License-Identifier: Apache-2.0
//
// System calls on sockets, where all that is named by address lies in far memory: no datagram may
// be lost or cut, no connection and no descriptor that a message carries.
#include "far.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#define DATAGRAM_BYTES_MAX 60000

static uint64_t random_state = 3;
static uint64_t digest;

static struct sockaddr_in* loopback(void) {
    struct sockaddr_in* address = (struct sockaddr_in*)cold(sizeof *address);
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static socklen_t* length(size_t bytes) {
    socklen_t* at = (socklen_t*)cold(sizeof *at);
    *at = (socklen_t)bytes;
    return at;
}

static int bound_udp(struct sockaddr_in* told) {
    const int number = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in* address = loopback();
    CHECK(number >= 0 && bind(number, (struct sockaddr*)address, sizeof *address) == 0);
    socklen_t* bytes = length(sizeof *address);
    CHECK(getsockname(number, (struct sockaddr*)address, bytes) == 0);
    CHECK(*bytes == sizeof *address && address->sin_port != 0);
    *told = *address;
    return number;
}

static void make_pair(int type, int* told) {
    int* pair = (int*)cold(2 * sizeof(int));
    CHECK(socketpair(AF_UNIX, type, 0, pair) == 0);
    told[0] = pair[0];
    told[1] = pair[1];
}

static size_t datagram_bytes(int turn) {
    static const size_t sizes[] = {0, 1, 100, 1472, 4096, 16384, 16385, 49152, DATAGRAM_BYTES_MAX};
    return turn % 3 == 0 ? sizes[below(&random_state, 9)]
                         : below(&random_state, DATAGRAM_BYTES_MAX);
}

static void use_udp(void) {
    struct sockaddr_in from, to;
    const int sender = bound_udp(&from);
    const int receiver = bound_udp(&to);
    for (int i = 0; i < 240; ++i) {
        const size_t bytes = datagram_bytes(i);
        void* sent = cold(DATAGRAM_BYTES_MAX);
        void* got = cold(70000);
        fill(sent, bytes, (uint64_t)i);
        struct sockaddr_in* target = (struct sockaddr_in*)cold(sizeof *target);
        *target = to;
        CHECK(sendto(sender, sent, bytes, 0, (struct sockaddr*)target, sizeof *target) ==
              (ssize_t)bytes);
        struct sockaddr_in* source = loopback();
        socklen_t* source_bytes = length(sizeof *source);
        ssize_t done;
        switch (i % 4) {
            case 0: done = recv(receiver, got, 70000, 0); break;
            case 1: done = read(receiver, got, 70000); break;
            default:
                done = recvfrom(receiver, got, 70000, 0, (struct sockaddr*)source, source_bytes);
                CHECK(*source_bytes == sizeof *source && source->sin_port == from.sin_port);
                break;
        }
        CHECK(done == (ssize_t)bytes && holds(got, bytes, (uint64_t)i));
        digest = mix(digest, bytes);
    }
    CHECK(recv(receiver, cold(100), 100, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK(close(sender) == 0 && close(receiver) == 0);
}

static struct iovec* vectors(unsigned char* at, size_t bytes, size_t count) {
    struct iovec* parts = (struct iovec*)cold(count * sizeof *parts);
    for (size_t i = 0; i < count; ++i) {
        const size_t part = i + 1 == count ? bytes : below(&random_state, bytes / 2 + 1);
        parts[i] = (struct iovec){at, part};
        at += part;
        bytes -= part;
    }
    return parts;
}

static struct msghdr* message(unsigned char* at, size_t bytes) {
    struct msghdr* header = (struct msghdr*)cold(sizeof *header);
    memset(header, 0, sizeof *header);
    header->msg_iovlen = 1 + below(&random_state, 8);
    header->msg_iov = vectors(at, bytes, header->msg_iovlen);
    return header;
}

// Descriptors travel along; each is looked at on the other side.
static void pass_descriptors(int type, int sender, int receiver, int turn) {
    // A stream gives what has come up to the first descriptors, at most one buffer of the kernel's.
    const size_t bytes = 1 + datagram_bytes(turn) / (type == SOCK_STREAM ? 4 : 1);
    const size_t count = 1 + below(&random_state, 3);
    unsigned char* sent = (unsigned char*)cold(DATAGRAM_BYTES_MAX + 1);
    unsigned char* got = (unsigned char*)cold(DATAGRAM_BYTES_MAX + 1);
    fill(sent, bytes, (uint64_t)turn);
    struct msghdr* out = message(sent, bytes);
    out->msg_controllen = CMSG_SPACE(count * sizeof(int));
    out->msg_control = cold(out->msg_controllen);
    memset(out->msg_control, 0, out->msg_controllen);
    struct cmsghdr* control = CMSG_FIRSTHDR(out);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(count * sizeof(int));
    int ends[3][2];
    for (size_t i = 0; i < count; ++i) {
        CHECK(pipe(ends[i]) == 0);
        memcpy(CMSG_DATA(control) + i * sizeof(int), &ends[i][1], sizeof(int));
    }
    CHECK(sendmsg(sender, out, 0) == (ssize_t)bytes);
    for (size_t i = 0; i < count; ++i) CHECK(close(ends[i][1]) == 0);

    struct msghdr* in = message(got, bytes);
    in->msg_controllen = CMSG_SPACE(3 * sizeof(int));
    in->msg_control = cold(in->msg_controllen);
    in->msg_name = cold(sizeof(struct sockaddr_un));
    in->msg_namelen = sizeof(struct sockaddr_un);
    CHECK(recvmsg(receiver, in, MSG_WAITALL) == (ssize_t)bytes);
    CHECK((in->msg_flags & (MSG_CTRUNC | MSG_TRUNC)) == 0);
    CHECK(holds(got, bytes, (uint64_t)turn));
    control = CMSG_FIRSTHDR(in);
    CHECK(control != NULL && control->cmsg_type == SCM_RIGHTS);
    CHECK(control->cmsg_len == CMSG_LEN(count * sizeof(int)));
    for (size_t i = 0; i < count; ++i) {
        int passed;
        memcpy(&passed, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
        const int word = turn + (int)i;
        int read_back = 0;
        CHECK(write(passed, &word, sizeof word) == sizeof word && close(passed) == 0);
        CHECK(read(ends[i][0], &read_back, sizeof word) == sizeof word && read_back == word);
        CHECK(close(ends[i][0]) == 0);
    }
    digest = mix(digest, bytes * 4 + count);
}

static void use_messages(void) {
    static const int types[] = {SOCK_DGRAM, SOCK_SEQPACKET, SOCK_STREAM};
    for (int i = 0; i < 3; ++i) {
        int pair[2];
        make_pair(types[i], pair);
        int* room = (int*)cold(sizeof(int));
        *room = 400000;
        CHECK(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, room, sizeof *room) == 0);
        CHECK(getsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, room, length(sizeof *room)) == 0);
        CHECK(*room > 200000);
        for (int turn = 0; turn < 60; ++turn) pass_descriptors(types[i], pair[0], pair[1], turn);
        CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
    }
}

#define MANY 12

static void use_many_messages(void) {
    int pair[2];
    make_pair(SOCK_DGRAM, pair);
    for (int turn = 0; turn < 20; ++turn) {
        struct mmsghdr* out = (struct mmsghdr*)cold(MANY * sizeof *out);
        struct mmsghdr* in = (struct mmsghdr*)cold(MANY * sizeof *in);
        size_t bytes[MANY];
        for (int i = 0; i < MANY; ++i) {
            bytes[i] = below(&random_state, 12000);
            unsigned char* at = (unsigned char*)cold(12000);
            fill(at, bytes[i], (uint64_t)(turn * MANY + i));
            out[i].msg_hdr = *message(at, bytes[i]);
            in[i].msg_hdr = *message((unsigned char*)cold(12000), 12000);
        }
        // As many as fit; no more than the queue takes.
        for (int begin = 0; begin < MANY;) {
            const int sent = sendmmsg(pair[0], out + begin, (unsigned)(MANY - begin), MSG_DONTWAIT);
            CHECK(sent > 0);
            const int got = recvmmsg(pair[1], in + begin, (unsigned)sent, 0, NULL);
            CHECK(got == sent);
            for (int i = begin; i < begin + got; ++i) {
                CHECK(out[i].msg_len == bytes[i] && in[i].msg_len == bytes[i]);
                uint64_t seed = (uint64_t)(turn * MANY + i);
                unsigned char* flat = (unsigned char*)malloc(12000);
                size_t at = 0;
                for (size_t part = 0; part < in[i].msg_hdr.msg_iovlen; ++part) {
                    const struct iovec* v = &in[i].msg_hdr.msg_iov[part];
                    memcpy(flat + at, v->iov_base, v->iov_len);
                    at += v->iov_len;
                }
                CHECK(holds(flat, bytes[i], seed));
                free(flat);
            }
            begin += got;
        }
    }
    CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
}

static void use_connections(void) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in* address = loopback();
    CHECK(bind(listener, (struct sockaddr*)address, sizeof *address) == 0);
    CHECK(listen(listener, 16) == 0);
    CHECK(getsockname(listener, (struct sockaddr*)address, length(sizeof *address)) == 0);
    const struct sockaddr_in target = *address;
    for (int i = 0; i < 80; ++i) {
        const int client = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in* to = (struct sockaddr_in*)cold(sizeof *to);
        *to = target;
        CHECK(connect(client, (struct sockaddr*)to, sizeof *to) == 0);
        struct sockaddr_in* peer = loopback();
        socklen_t* bytes = length(sizeof *peer);
        const int server = accept4(listener, (struct sockaddr*)peer, bytes, SOCK_CLOEXEC);
        CHECK(server >= 0 && *bytes == sizeof *peer);
        struct sockaddr_in* own = loopback();
        CHECK(getsockname(client, (struct sockaddr*)own, length(sizeof *own)) == 0);
        CHECK(own->sin_port == peer->sin_port);
        struct sockaddr_in* other = loopback();
        CHECK(getpeername(server, (struct sockaddr*)other, length(sizeof *other)) == 0);
        CHECK(other->sin_port == own->sin_port);
        CHECK(close(client) == 0 && close(server) == 0);
    }
    CHECK(close(listener) == 0);
}

// Messages on a stream that are as large as local memory.
struct stream {
    int file;
    unsigned char* at;
    size_t bytes;
};

static void* send_stream(void* context) {
    const struct stream* stream = (const struct stream*)context;
    for (size_t done = 0; done < stream->bytes;) {
        const ssize_t sent =
            sendmsg(stream->file, message(stream->at + done, stream->bytes - done), 0);
        CHECK(sent > 0);
        done += (size_t)sent;
    }
    return NULL;
}

static void use_large_messages(void) {
    int pair[2];
    make_pair(SOCK_STREAM, pair);
    const size_t bytes = 20 * MIB;
    struct stream stream = {pair[0], (unsigned char*)far_memory(bytes), bytes};
    unsigned char* got = (unsigned char*)far_memory(bytes);
    fill(stream.at, bytes, 55);
    pthread_t sender;
    CHECK(pthread_create(&sender, NULL, send_stream, &stream) == 0);
    for (size_t done = 0; done < bytes;) {
        struct msghdr* header = (struct msghdr*)cold(sizeof *header);
        memset(header, 0, sizeof *header);
        header->msg_iov = (struct iovec*)cold(sizeof(struct iovec));
        header->msg_iov[0] = (struct iovec){got + done, bytes - done};
        header->msg_iovlen = 1;
        const ssize_t part = recvmsg(pair[1], header, 0);
        CHECK(part > 0);
        done += (size_t)part;
    }
    CHECK(pthread_join(sender, NULL) == 0);
    CHECK(holds(got, bytes, 55));
    CHECK(munmap(got, bytes) == 0 && munmap(stream.at, bytes) == 0);
    CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
}

int main(void) {
    prepare();
    start_pressure();
    use_udp();
    use_messages();
    use_many_messages();
    use_connections();
    use_large_messages();
    stop_pressure();
    printf("sockets %016llx\n", (unsigned long long)digest);
    return 0;
}
