// SPDX-License-Identifier: Apache-2.0
//
// Stands for the library of `hanare run` in its tests: what it is preloaded into claims a row of
// the shared page and fills it with the figures of HANARE_TEST_ROW ("far local read written wait").
// Without that variable it does nothing.  Built by the test, so that no sanitizer gets into it.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "telemetry/run_page.hpp"

namespace {

using hanare::telemetry::RunPage;
using hanare::telemetry::RunRow;

void fill(RunPage& page, RunRow& row, const char* text) {
    unsigned long long far = 0, local = 0, read = 0, written = 0, wait = 0;
    std::sscanf(text, "%llu %llu %llu %llu %llu", &far, &local, &read, &written, &wait);
    struct stat status = {};
    if (stat("/proc/self/ns/pid", &status) != 0) return std::perror("/proc/self/ns/pid");
    row.process = {.id = getpid(), .name_space = static_cast<uint32_t>(status.st_ino)};
    const char name[] = "stand-in";
    for (size_t i = 0; i < sizeof name; ++i) row.command[i] = name[i];
    row.far_bytes = far;
    row.far_bytes_peak = far;
    row.used_bytes = far;
    row.used_bytes_peak = far;
    row.local_bytes = local;
    row.local_bytes_peak = local;
    row.budget_bytes = page.budget_bytes;
    row.read_bytes = read;
    row.written_bytes = written;
    row.wait_ns = wait;
    row.shares = 1;
    page.sharers.fetch_add(1);
    page.rows_used = static_cast<uint32_t>(&row - page.rows.data() + 1);
    page.processes.fetch_add(1);
    const uint64_t all = page.far_bytes.fetch_add(far) + far;
    if (all > page.far_bytes_peak) page.far_bytes_peak = all;
    row.state = RunRow::kLive;
}

[[gnu::constructor]] void claim() {
    const char* const text = std::getenv("HANARE_TEST_ROW");
    const char* const path = std::getenv("HANARE_RUN_PAGE");
    if (text == nullptr || path == nullptr) return;
    const int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) return std::perror(path);
    void* const memory =
        mmap(nullptr, sizeof(RunPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return std::perror("mmap");
    RunPage& page = *static_cast<RunPage*>(memory);
    if (page.magic != RunPage::kMagic || page.bytes != sizeof(RunPage)) return;
    // Row 0 says who has which: one process after the other starts in these tests.
    const uint32_t mine = page.processes.load();
    if (mine < RunPage::kRows) fill(page, page.rows[mine], text);
}

}  // namespace
