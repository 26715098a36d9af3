// SPDX-License-Identifier: Apache-2.0
#include "fabric/local_link.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/units.hpp"
#include "fabric/apply.hpp"
#include "fabric/fifo.hpp"
#include "sys/other_memory.hpp"
#include "sys/shared_memory.hpp"
#include "sys/signal.hpp"

namespace hanare::fabric {
namespace {

// Below, the target's thread is as fast.
constexpr uint64_t kForeignBytesMin = 4096;
// Who answers nothing of use so often is not asked any more.
constexpr uint32_t kFailuresMax = 16;

bool is_same(const Capability& a, const Capability& b) noexcept {
    return a.region == b.region && a.epoch == b.epoch && a.rights == b.rights && a.key == b.key;
}

}  // namespace

// A look at an entry, which nobody changes meanwhile.
class LocalLink::Use {
public:
    explicit Use(Attached& attached) noexcept
        : attached_(attached),
          is_open_((attached.users.fetch_add(1, std::memory_order_acquire) & Attached::kClosed) ==
                   0) {}
    ~Use() { attached_.users.fetch_sub(1, std::memory_order_release); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    bool is_of(const Capability& capability) const noexcept {
        return is_open_ && is_same(attached_.capability, capability);
    }

private:
    Attached& attached_;
    const bool is_open_;
};

Result<std::unique_ptr<LocalLink>> LocalLink::connect(const Settings& settings) {
    HANARE_TRY_ASSIGN(LocalConnection connection,
                      connect_locally(settings.address, settings.timeout_ms));
    HANARE_TRY_ASSIGN(std::unique_ptr<TcpLink> stream,
                      TcpLink::make(std::move(connection.transport), settings.spin_us));
    return std::unique_ptr<LocalLink>(
        new LocalLink(std::move(connection), std::move(stream), settings));
}

LocalLink::LocalLink(LocalConnection connection, std::unique_ptr<TcpLink> stream, Settings settings)
    : settings_(std::move(settings)),
      page_memory_(std::move(connection.page)),
      page_(*reinterpret_cast<const RegionPage*>(page_memory_.address())),
      process_(connection.process),
      neighbour_(connection.neighbour),
      stream_(std::move(stream)) {}

// ---- operations

void LocalLink::post(Operation& operation) noexcept {
    if (!try_directly(operation)) stream_->post(operation);
}

bool LocalLink::test(Operation& operation) noexcept {
    return operation.is_done() || stream_->test(operation);
}

hanare_status LocalLink::wait(Operation& operation) noexcept {
    return operation.is_done() ? operation.status() : stream_->wait(operation);
}

hanare_status LocalLink::carry_out(Operation& operation) noexcept {
    if (!try_directly(operation)) return stream_->carry_out(operation);
    return operation.status();
}

// False: it is left to the target's thread, which also finds whatever is wrong with it.
bool LocalLink::try_directly(Operation& operation) noexcept {
    // Of a process that cannot be seen from here, the threads mean nothing here, either.
    if (!settings_.is_direct || process_ == 0 || is_lost() || !stream_->is_idle()) return false;
    if (operation.kind == Kind::kCall) return false;
    if (neighbour_.directory != nullptr) return try_in_space(operation);
    // The operation may be gone once it is done.
    const Capability capability = operation.capability;
    Attached& attached = attached_[place_of(capability)];
    const Outcome outcome = carry_out_on(attached, operation);
    if (outcome == Outcome::kUnknown) attach(capability);
    if (outcome == Outcome::kRevoked) detach(attached, capability);
    return outcome == Outcome::kDone || outcome == Outcome::kRevoked;
}

// A task that has ended is left to the connection, which finds out.
bool LocalLink::try_in_space(Operation& operation) noexcept {
    const Capability& capability = operation.capability;
    if (capability.region >= kRegionsMax) return false;
    const task::Directory::Visit visit(
        *neighbour_.directory, neighbour_.self,
        {neighbour_.task, neighbour_.process, capability.region + 1});
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (!visit.has_begun() || !page_.serving.is_alive()) return false;
    hanare_status status = check(operation);
    std::span<std::byte> region;
    if (status == HANARE_STATUS_OK) {
        status = neighbour_.regions->look(capability, rights_for(operation.kind),
                                          offset_in(operation), bytes_in(operation), region);
    }
    if (status == HANARE_STATUS_OK) status = apply_to(region, process_, operation);
    operation.note_failure(status);
    operation.finish();
    return true;
}

LocalLink::Outcome LocalLink::carry_out_on(Attached& attached, Operation& operation) noexcept {
    const Use use(attached);
    if (!use.is_of(operation.capability) || attached.state == Attached::State::kAsked) {
        return Outcome::kUnknown;
    }
    hanare_status status = check(operation);
    if (attached.state == Attached::State::kNone || status != HANARE_STATUS_OK ||
        !page_.serving.is_alive()) {
        return Outcome::kNotHere;
    }
    if (attached.state == Attached::State::kMapped) {
        status = apply(attached, operation);
    } else if (!read_foreign(attached, operation, status)) {
        return Outcome::kNotHere;
    }
    // What was changed before this look was the memory that the target has.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool is_revoked = !is_current(operation.capability);
    operation.note_failure(is_revoked ? HANARE_STATUS_BAD_KEY : status);
    operation.finish();
    return is_revoked ? Outcome::kRevoked : Outcome::kDone;
}

bool LocalLink::is_attached(const Capability& capability) noexcept {
    if (neighbour_.directory != nullptr) return true;
    Attached& attached = attached_[place_of(capability)];
    const Use use(attached);
    return use.is_of(capability) && (attached.state == Attached::State::kMapped ||
                                     attached.state == Attached::State::kForeign);
}

bool LocalLink::is_current(const Capability& capability) const noexcept {
    return page_.epochs[capability.region].load(std::memory_order_acquire) == capability.epoch;
}

// The checks are those of ExposedRegions::enter(); that the key is right the target has said.
hanare_status LocalLink::apply(const Attached& attached, Operation& operation) noexcept {
    const Rights needed = rights_for(operation.kind);
    if (!is_current(operation.capability)) return HANARE_STATUS_BAD_KEY;
    if ((operation.capability.rights & needed) != needed) return HANARE_STATUS_PERMISSION;
    const uint64_t bytes = bytes_in(operation);
    const uint64_t offset = offset_in(operation);
    if (offset > attached.bytes || bytes > attached.bytes - offset) {
        return HANARE_STATUS_OUT_OF_RANGE;
    }
    return apply_to({attached.memory.address(), attached.bytes}, process_, operation);
}

// False: it cannot be done so.
bool LocalLink::read_foreign(const Attached& attached, Operation& operation,
                             hanare_status& status) noexcept {
    const uint64_t bytes = operation.bytes();
    if (operation.kind != Kind::kGet || bytes < kForeignBytesMin ||
        (operation.capability.rights & kRead) == 0 || operation.offset > attached.bytes ||
        bytes > attached.bytes - operation.offset || !is_current(operation.capability) ||
        !may_read_foreign_.load(std::memory_order_relaxed)) {
        return false;
    }
    const int error = sys::read_other_memory(process_, attached.address + operation.offset,
                                             operation.destination);
    if (error == EPERM || error == ENOSYS) may_read_foreign_.store(false);
    // The number may have been given to another process.
    if (error != 0 || !page_.serving.is_alive()) return false;
    status = HANARE_STATUS_OK;
    return true;
}

// ---- attaching

// One place for each; where two regions meet, the second one's operations go to the target.
size_t LocalLink::place_of(const Capability& capability) noexcept {
    return (capability.region * size_t{5} + capability.rights) % kAttachedMax;
}

// Goes on with what was asked for, or asks.  Never waits, not even for another thread.
void LocalLink::attach(const Capability& capability) noexcept {
    const sys::SignalBlock no_signals;
    if (!lock_.try_lock()) return;
    if (asked_ != nullptr) {
        if (request_.is_answered()) take_answer(*std::exchange(asked_, nullptr));
    } else if (failures_ < kFailuresMax && capability.region < kRegionsMax &&
               is_current(capability)) {
        ask(attached_[place_of(capability)], capability);
    }
    lock_.unlock();
}

void LocalLink::ask(Attached& attached, const Capability& capability) noexcept {
    // A region that is in use keeps its place.
    const bool is_taken =
        attached.state != Attached::State::kNone && is_current(attached.capability);
    if (is_taken || !close(attached)) return;
    attached.memory = {};
    attached.capability = capability;
    attached.state = Attached::State::kNone;
    if (request_.begin(settings_.address, capability) == 0) {
        attached.state = Attached::State::kAsked;
        asked_ = &attached;
    } else {
        // Too many at the same time, or the target is gone, which shows otherwise: asked again.
        attached.capability = {};
    }
    open(attached);
}

void LocalLink::take_answer(Attached& attached) noexcept {
    if (!close(attached)) {
        asked_ = &attached;
        return;
    }
    attached.state = Attached::State::kNone;
    const LocalAnswer& answer = request_.answer();
    sys::FileDescriptor file = request_.take_file();
    attached.address = answer.address;
    attached.bytes = answer.bytes;
    if (request_.status() != HANARE_STATUS_OK) {
        // A key that is refused will not become right.
        if (request_.status() != HANARE_STATUS_BAD_KEY) attached.capability = {};
        ++failures_;
    } else if (!file.is_open()) {
        attached.state = Attached::State::kForeign;
    } else if (Result<sys::Mapping> memory = map_region(file, attached); memory) {
        attached.memory = std::move(*memory);
        attached.state = Attached::State::kMapped;
        failures_ = 0;
    } else {
        ++failures_;
    }
    open(attached);
}

// Memory that nobody else has any more goes back.
void LocalLink::detach(Attached& attached, const Capability& capability) noexcept {
    const sys::SignalBlock no_signals;
    if (!lock_.try_lock()) return;
    if (is_same(attached.capability, capability) && &attached != asked_ && close(attached)) {
        attached.memory = {};
        attached.state = Attached::State::kNone;
        open(attached);
    }
    lock_.unlock();
}

// What the answer says is not believed.
Result<sys::Mapping> LocalLink::map_region(const sys::FileDescriptor& file,
                                           const Attached& attached) {
    HANARE_TRY_ASSIGN(const size_t bytes, sys::shared_memory_bytes(file.number()));
    if (attached.bytes == 0 || bytes < attached.bytes) {
        return fail(HANARE_STATUS_OUT_OF_RANGE, "a region of %llu bytes in a file of %zu",
                    static_cast<unsigned long long>(attached.bytes), bytes);
    }
    if ((attached.capability.rights & ~kRead) == 0) return sys::map_read_only(file.number(), bytes);
    HANARE_TRY_ASSIGN(sys::Mapping memory, sys::Mapping::reserve(bytes, kOsPageBytes));
    HANARE_TRY(sys::map_shared(memory, file));
    return memory;
}

// False: somebody is using it, and it stays open.
bool LocalLink::close(Attached& attached) noexcept {
    uint32_t nobody = 0;
    return attached.users.compare_exchange_strong(nobody, Attached::kClosed,
                                                  std::memory_order_acquire);
}

void LocalLink::open(Attached& attached) noexcept {
    attached.users.fetch_and(~Attached::kClosed, std::memory_order_release);
}

}  // namespace hanare::fabric
