/* SPDX-License-Identifier: Apache-2.0
 *
 * A user's C11 program: 64 MiB of far memory through 16 MiB of local memory, written and summed.
 * Its argument is the version that pkg-config names.
 */
#include <hanare/hanare.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define COUNT ((size_t)8 << 20)

static int failed(const char *what, hanare_status status) {
    char text[256] = "";
    hanare_last_error(text, sizeof text);
    fprintf(stderr, "user.c: %s: %s: %s\n", what, hanare_status_name(status), text);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2 || strcmp(argv[1], hanare_version()) != 0) {
        fprintf(stderr, "user.c: the library is version %s\n", hanare_version());
        return 1;
    }
    const hanare_pool_options options = {
        .struct_size = sizeof options, .local_bytes = (uint64_t)16 << 20, .store = "file:/var/tmp"};
    hanare_pool *pool = NULL;
    hanare_status status = hanare_pool_open(&options, &pool);
    if (status != HANARE_STATUS_OK) return failed("hanare_pool_open", status);
    void *address = NULL;
    status = hanare_alloc(pool, COUNT * sizeof(uint64_t), NULL, &address);
    if (status != HANARE_STATUS_OK) return failed("hanare_alloc", status);

    uint64_t *numbers = address;
    for (uint64_t i = 0; i < COUNT; i++) numbers[i] = 3 * i + 1;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < COUNT; i++) sum += numbers[i];
    const uint64_t expected = 3 * (COUNT * (COUNT - 1) / 2) + COUNT;
    printf("user.c: version %s, sum %llu, expected %llu\n", hanare_version(),
           (unsigned long long)sum, (unsigned long long)expected);

    hanare_counters counters = {.struct_size = sizeof counters};
    status = hanare_stats(pool, NULL, &counters);
    if (status != HANARE_STATUS_OK) return failed("hanare_stats", status);
    if (counters.frame_bytes > options.local_bytes || counters.written_bytes == 0) {
        fprintf(stderr, "user.c: %llu bytes of frames, %llu bytes written\n",
                (unsigned long long)counters.frame_bytes,
                (unsigned long long)counters.written_bytes);
        return 1;
    }
    status = hanare_free(pool, address);
    if (status != HANARE_STATUS_OK) return failed("hanare_free", status);
    status = hanare_pool_close(pool);
    if (status != HANARE_STATUS_OK) return failed("hanare_pool_close", status);
    return sum == expected ? 0 : 1;
}
