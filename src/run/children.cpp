// SPDX-License-Identifier: Apache-2.0
#include "run/children.hpp"

#include "sys/process_end.hpp"

namespace hanare::run {

using telemetry::RunChild;
using telemetry::RunPage;

uint64_t bytes_set_aside(RunPage& page) noexcept {
    uint64_t bytes = 0;
    for (RunChild& child : page.children) {
        const int32_t process_id = child.process_id.load();
        if (process_id == 0) continue;
        if (sys::exists(process_id)) {
            bytes += child.bytes.load();
        } else {
            release(child, process_id);
        }
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

void release(RunChild& child, int process_id) noexcept {
    child.process_id.compare_exchange_strong(process_id, 0);
}

void release_all_of(RunPage& page, int process_id) noexcept {
    for (RunChild& child : page.children) release(child, process_id);
}

}  // namespace hanare::run
