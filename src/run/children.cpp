// SPDX-License-Identifier: Apache-2.0
#include "run/children.hpp"

namespace hanare::run {

using telemetry::RunChild;
using telemetry::RunPage;

uint64_t bytes_set_aside(const RunPage& page, const RunChild* but_for) noexcept {
    uint64_t bytes = 0;
    for (const RunChild& child : page.children) {
        if (&child != but_for && child.process_id.load() != 0) bytes += child.bytes.load();
    }
    return bytes;
}

RunChild* set_aside(RunPage& page, int parent, uint64_t bytes) noexcept {
    for (RunChild& child : page.children) {
        int32_t nobody = 0;
        if (!child.process_id.compare_exchange_strong(nobody, parent)) continue;
        child.bytes.store(bytes);
        return &child;
    }
    return nullptr;
}

void note_owner(RunChild& child, int parent, int process_id) noexcept {
    child.process_id.compare_exchange_strong(parent, process_id);
}

void release(RunChild& child) noexcept { child.process_id.store(0); }

void release_all_of(RunPage& page, int process_id) noexcept {
    for (RunChild& child : page.children) {
        int32_t expected = process_id;
        child.process_id.compare_exchange_strong(expected, 0);
    }
}

}  // namespace hanare::run
