// SPDX-License-Identifier: Apache-2.0
#include "run/report.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "intercept/intercept.hpp"
#include "sys/file.hpp"
#include "sys/lock.hpp"
#include "telemetry/run_page.hpp"

namespace hanare::run {

namespace {

using telemetry::RunPage;
using telemetry::RunRow;

struct Report {
    RunPage* page = nullptr;
    RunRow* row = nullptr;
    uint64_t far_bytes = 0;  // as it was added to the page's last
    hook::RewriteReport sites;
};
constinit Report report;
constinit std::atomic<bool> busy{false};

RunPage* map_page(const char* path) {
    const sys::FileDescriptor file(open(path, O_RDWR | O_CLOEXEC));
    if (!file.is_open()) return nullptr;
    void* memory =
        mmap(nullptr, sizeof(RunPage), PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* const page = static_cast<RunPage*>(memory);
    if (page->magic == RunPage::kMagic && page->bytes == sizeof(RunPage)) return page;
    munmap(memory, sizeof(RunPage));
    return nullptr;
}

RunRow* claim_row() noexcept {
    for (RunRow& row : report.page->rows) {
        uint32_t free = RunRow::kFree;
        if (!row.state.compare_exchange_strong(free, RunRow::kLive)) continue;
        row.process_id.store(getpid());
        char name[16] = {};
        prctl(PR_GET_NAME, name);
        for (size_t i = 0; i < sizeof name; ++i) row.command[i].store(name[i]);
        row.shares.store(1);
        report.page->sharers.fetch_add(1);
        report.page->processes.fetch_add(1);
        return &row;
    }
    return nullptr;
}

void raise(std::atomic<uint64_t>& peak, uint64_t value) noexcept {
    uint64_t seen = peak.load();
    while (seen < value && !peak.compare_exchange_weak(seen, value)) {
    }
}

void write_row(intercept::Space& space) noexcept {
    RunRow& row = *report.row;
    hanare_counters counters = {};
    static_cast<void>(space.pool()->stats(nullptr, counters));
    const intercept::Space::Figures figures = space.figures();
    row.far_bytes = figures.far_bytes;
    raise(row.far_bytes_peak, figures.far_bytes);
    row.local_bytes = counters.resident_bytes;
    raise(row.local_bytes_peak, counters.resident_bytes);
    row.budget_bytes = counters.budget_bytes;
    row.heap_bytes_peak = figures.heap_bytes_peak;
    row.static_bytes_peak = figures.static_bytes_peak;
    row.mapping_bytes_peak = figures.mapping_bytes_peak;
    row.wait_ns = space.pool()->pager().wait_ns();
    row.faults = counters.read_faults + counters.write_faults + counters.upgrade_faults;
    row.read_bytes = counters.read_bytes;
    row.written_bytes = counters.written_bytes;
    row.protected_calls = space.protected_calls();
    row.rewritten_sites = report.sites.rewritten;
    row.left_sites = report.sites.left;
    const uint64_t far = figures.far_bytes;
    const uint64_t total =
        report.page->far_bytes.fetch_add(far - report.far_bytes) + (far - report.far_bytes);
    report.far_bytes = far;
    raise(report.page->far_bytes_peak, total);
}

[[gnu::destructor]] void report_at_exit() { report_figures(); }

}  // namespace

void open_report(const hook::RewriteReport& sites) {
    report.sites = sites;
    if (const char* path = std::getenv("HANARE_RUN_PAGE")) report.page = map_page(path);
}

void report_figures() noexcept {
    intercept::Space* const space = intercept::space();
    if (report.page == nullptr || space == nullptr || space->pool() == nullptr) return;
    if (busy.exchange(true)) return;
    if (report.row == nullptr) report.row = claim_row();
    if (report.row != nullptr) write_row(*space);
    busy.store(false);
}

}  // namespace hanare::run
