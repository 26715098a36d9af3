// SPDX-License-Identifier: Apache-2.0
#include "run/children.hpp"

namespace hanare::run {

using telemetry::RunChild;
using telemetry::RunPage;
using telemetry::RunProcess;

uint64_t bytes_set_aside(const RunPage& page, const RunChild* but_for) noexcept {
    uint64_t bytes = 0;
    for (const RunChild& child : page.children) {
        if (&child != but_for && child.process.load().id != 0) bytes += child.bytes.load();
    }
    return bytes;
}

RunChild* set_aside(RunPage& page, RunProcess parent, uint64_t bytes) noexcept {
    for (RunChild& child : page.children) {
        RunProcess nobody;
        if (!child.process.compare_exchange_strong(nobody, parent)) continue;
        child.bytes.store(bytes);
        return &child;
    }
    return nullptr;
}

void note_owner(RunChild& child, RunProcess parent, int process_id) noexcept {
    const RunProcess owner{.id = process_id, .name_space = parent.name_space};
    child.process.compare_exchange_strong(parent, owner);
}

void release(RunChild& child) noexcept { child.process.store(RunProcess()); }

void release_all_of(RunPage& page, RunProcess process) noexcept {
    for (RunChild& child : page.children) {
        RunProcess expected = process;
        child.process.compare_exchange_strong(expected, RunProcess());
    }
}

}  // namespace hanare::run
