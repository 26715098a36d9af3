/* SPDX-License-Identifier: Apache-2.0
 *
 * A library to be loaded before all others (LD_PRELOAD) that puts a slow network between tasks: a
 * connection to an IPv4 address goes by way of two threads, one for each direction, which pass on
 * pieces of drawn lengths after drawn times.  What goes by one connection stays in order; what goes
 * by several, or in different directions, is reordered as on no machine of its own.
 *
 * SLOW_NETWORK_SEED is the seed; SLOW_NETWORK_US how long a piece takes at most (default 1000).
 * Pieces as short as a request are as frequent as long ones. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kPieceBitsMax = 16, kPausesOneIn = 4 };

struct direction {
    int from;
    int to;
    uint64_t state;
};

struct way {
    int listener;
    int target;
    uint64_t state;
};

static uint64_t draw(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

static uint64_t number(const char *name, uint64_t otherwise) {
    const char *const text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static int real_connect(int socket, const void *address, socklen_t bytes) {
    return (int)syscall(SYS_connect, socket, address, bytes);
}

static void start(void *(*run)(void *), void *argument) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_t thread;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, run, argument) != 0) abort();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_detach(thread);
}

static void pause_for(uint64_t us) {
    const struct timespec time = {0, (long)us * 1000};
    nanosleep(&time, NULL);
}

static void *pass_on(void *argument) {
    struct direction *const direction = argument;
    static __thread char piece[1 << kPieceBitsMax];
    const uint64_t us_max = number("SLOW_NETWORK_US", 1000);
    for (;;) {
        const uint64_t bits = 6 + draw(&direction->state) % (kPieceBitsMax - 5);
        const size_t most = 1 + draw(&direction->state) % (1u << bits);
        const ssize_t bytes = recv(direction->from, piece, most, 0);
        if (bytes <= 0) break;
        if (draw(&direction->state) % kPausesOneIn == 0) {
            pause_for(draw(&direction->state) % (us_max + 1));
        }
        ssize_t sent = 0;
        while (sent < bytes) {
            const ssize_t now =
                send(direction->to, piece + sent, (size_t)(bytes - sent), MSG_NOSIGNAL);
            if (now <= 0) break;
            sent += now;
        }
        if (sent < bytes) break;
    }
    /* Descriptors stay: the other direction has them, too. */
    shutdown(direction->from, SHUT_RD);
    shutdown(direction->to, SHUT_WR);
    free(direction);
    return NULL;
}

static void pass_between(int from, int to, uint64_t state) {
    struct direction *const direction = malloc(sizeof *direction);
    if (direction == NULL) abort();
    *direction = (struct direction){from, to, state};
    start(pass_on, direction);
}

static void *accept_one(void *argument) {
    struct way *const way = argument;
    const int source = accept(way->listener, NULL, NULL);
    close(way->listener);
    if (source >= 0) {
        const int one = 1;
        setsockopt(source, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(way->target, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        pass_between(source, way->target, draw(&way->state));
        pass_between(way->target, source, draw(&way->state));
    }
    free(way);
    return NULL;
}

/* As glibc declares it. */
int connect(int socket_number, __CONST_SOCKADDR_ARG name, socklen_t bytes) {
    const struct sockaddr *const address = name.__sockaddr__;
    if (address->sa_family != AF_INET) return real_connect(socket_number, address, bytes);
    static _Atomic uint64_t connections;
    const int target = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (target < 0) return -1;
    if (real_connect(target, address, bytes) != 0) {
        const int why = errno;
        close(target);
        errno = why;
        return -1;
    }
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t here_bytes = sizeof here;
    struct way *const way = malloc(sizeof *way);
    if (listener < 0 || way == NULL || bind(listener, (void *)&here, sizeof here) != 0 ||
        listen(listener, 1) != 0 || getsockname(listener, (void *)&here, &here_bytes) != 0) {
        abort();
    }
    uint64_t state = number("SLOW_NETWORK_SEED", 1) + ((uint64_t)getpid() << 32) + ++connections;
    *way = (struct way){listener, target, draw(&state)};
    start(accept_one, way);
    return real_connect(socket_number, &here, sizeof here);
}
