// SPDX-License-Identifier: Apache-2.0
#include "job/control_memory.hpp"

#include <new>
#include <utility>

#include "fabric/fifo.hpp"

namespace hanare::job {
namespace {

Result<fabric::Capability> exposed(fabric::ExposedRegions& regions, ExposableMemory& memory,
                                   fabric::Rights rights) {
    HANARE_TRY_ASSIGN(const uint32_t region,
                      regions.expose(memory.memory, rights, std::move(memory.file)));
    return regions.capability(region, rights);
}

}  // namespace

Result<std::unique_ptr<ControlMemory>> ControlMemory::expose(fabric::ExposedRegions& regions) {
    auto control = std::unique_ptr<ControlMemory>(new ControlMemory());
    HANARE_TRY_ASSIGN(control->words_, ExposableMemory::allocate(sizeof(ControlWords)));
    HANARE_TRY_ASSIGN(control->forwards_, ExposableMemory::allocate(kQueueBytes));
    HANARE_TRY_ASSIGN(control->collectives_, ExposableMemory::allocate(kQueueBytes));
    new (control->words_.mapping.address()) ControlWords{};
    fabric::Fifo::format(control->forwards());
    fabric::Fifo::format(control->collectives());
    ControlKeys& keys = control->keys_;
    HANARE_TRY_ASSIGN(keys.words,
                      exposed(regions, control->words_, fabric::kRead | fabric::kAtomic));
    HANARE_TRY_ASSIGN(keys.forwards, exposed(regions, control->forwards_, fabric::kPush));
    HANARE_TRY_ASSIGN(keys.collectives, exposed(regions, control->collectives_, fabric::kPush));
    return control;
}

}  // namespace hanare::job
