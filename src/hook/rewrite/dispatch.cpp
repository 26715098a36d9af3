// SPDX-License-Identifier: Apache-2.0
//
// Who gets a caught system call.  Compiled for general registers only, like all that a stub reaches
// directly.
#include "hook/rewrite/dispatch.hpp"

#include <sys/syscall.h>

#include <atomic>

#include "hook/rewrite/entry.hpp"
#include "hook/rewrite/modules.hpp"

namespace hanare::hook {

namespace {

std::atomic<SystemCallHandler> handler{nullptr};
std::atomic<TransferHandler> fell_short{nullptr};
bool wanted_by_handler[kSystemCallNumbers] = {};

// Of mmap: PROT_EXEC, MAP_PRIVATE, MAP_TYPE, MAP_ANONYMOUS.  What is shared is the file itself.
constexpr uint64_t kExecutable = 0x4;
constexpr uint64_t kPrivate = 0x2;
constexpr uint64_t kMapType = 0xf;
constexpr uint64_t kAnonymous = 0x20;

bool is_error(uint64_t result) noexcept { return result > -4096UL; }

// Looks at these arguments, and at others: what is left over there in a register costs time.
Wanted wanted_at(uint8_t arguments) noexcept {
    constexpr uint8_t kFirst = 0b01;
    constexpr uint8_t kSecond = 0b10;
    constexpr uint8_t kFirstTwo = 0b11;
    constexpr uint8_t kFirstThree = 0b111;
    if ((arguments & ~kSecond) == 0) return Wanted::kWhereSecondIs;
    if ((arguments & ~kFirst) == 0) return Wanted::kWhereFirstIs;
    if ((arguments & ~kFirstTwo) == 0) return Wanted::kWhereFirstTwoAre;
    return (arguments & ~kFirstThree) == 0 ? Wanted::kWhereFirstThreeAre : Wanted::kWhereAnyIs;
}

void rewrite_what_was_mapped(void* context) {
    const auto& call = *static_cast<const SystemCall*>(context);
    rewrite_mapped_code(reinterpret_cast<uint8_t*>(call.number), call.arguments[1],
                        static_cast<int>(call.arguments[4]), call.arguments[5]);
}

// A munmap; the call's number is its result once it is made.
struct Unmapping {
    const SystemCall& call;
    const uint8_t* memory;
    size_t bytes;
};

void withdraw_before_unmapping(void* context) {
    const auto& unmapping = *static_cast<const Unmapping*>(context);
    withdraw_code(unmapping.memory, unmapping.bytes);
}

void finish_unmapping(void* context) {
    const auto& unmapping = *static_cast<const Unmapping*>(context);
    finish_withdrawal(unmapping.memory, unmapping.bytes, !is_error(unmapping.call.number));
}

Verdict ask_handler(SystemCall& call) {
    if (call.number >= kSystemCallNumbers || !wanted_by_handler[call.number])
        return Verdict::kNative;
    return handler.load(std::memory_order_acquire)(call);
}

}  // namespace

bool maps_code_of_a_file(const SystemCall& call) noexcept {
    return (call.arguments[2] & kExecutable) != 0 &&
           (call.arguments[3] & (kAnonymous | kMapType)) == kPrivate;
}

void make_system_call(SystemCall& call) {
    const uint64_t number = call.number;
    const Verdict verdict = ask_handler(call);
    if (verdict == Verdict::kDone) return;
    call.finish(raw_system_call(number, call.arguments));
    if (verdict != Verdict::kThenAfter) return;
    call.cleared->store(0, std::memory_order_release);
    if (call.watched->load() != 0) call.after(call);
}

void set_handler(SystemCallHandler function, std::span<const uint32_t> numbers,
                 std::span<const AddressedCall> addressed, const Transfers& transfers) noexcept {
    const auto want = [](uint32_t number, Wanted wanted) {
        hanare_hook_wanted[number] = static_cast<uint8_t>(wanted);
    };
    for (const uint32_t number : numbers) {
        wanted_by_handler[number] = true;
        want(number, Wanted::kAlways);
    }
    for (const AddressedCall& call : addressed) want(call.number, wanted_at(call.arguments));
    fell_short.store(transfers.fell_short, std::memory_order_release);
    for (const uint32_t number : transfers.reads_at_offsets) want(number, Wanted::kReadAtOffset);
    for (const uint32_t number : transfers.others) want(number, Wanted::kTransfer);
    handler.store(function, std::memory_order_release);
    want(SYS_mmap, Wanted::kAlways);
    want(SYS_munmap, Wanted::kAlways);
}

namespace {

std::atomic_ref<uint8_t> place_at(uint64_t number) noexcept {
    return std::atomic_ref(hanare_hook_places[number % kPlaces]);
}

// All of it in one place.
void note_in_parts(uintptr_t begin, uintptr_t end) noexcept {
    for (uint64_t part = begin / kPartBytes; part <= (end - 1) / kPartBytes; ++part) {
        std::atomic_ref(hanare_hook_places[kPlaces + part % kParts])
            .store(1, std::memory_order_relaxed);
    }
    auto far = static_cast<uint8_t>(Place::kFar);
    place_at(begin / kPlaceBytes)
        .compare_exchange_strong(far, static_cast<uint8_t>(Place::kNearInParts));
}

}  // namespace

void note_handlers_memory(uintptr_t front, uintptr_t end) noexcept {
    const uintptr_t first_whole = (front + kPlaceBytes - 1) / kPlaceBytes * kPlaceBytes;
    if (front != first_whole) note_in_parts(front, end < first_whole ? end : first_whole);
    for (uintptr_t place = first_whole; place < end; place += kPlaceBytes) {
        place_at(place / kPlaceBytes).store(static_cast<uint8_t>(Place::kNear));
    }
}

namespace {

// Apart from what is usual, which then needs no stack frame for all this.
[[gnu::noinline]] Verdict dispatch_any(SystemCall* call) {
    if (call->number == SYS_mmap && maps_code_of_a_file(*call)) {
        make_system_call(*call);
        if (!is_error(call->number)) {
            hanare_hook_with_vector_registers(rewrite_what_was_mapped, call);
        }
        return Verdict::kDone;
    }
    if (call->number == SYS_munmap) {
        Unmapping unmapping{.call = *call,
                            .memory = reinterpret_cast<const uint8_t*>(call->arguments[0]),
                            .bytes = call->arguments[1]};
        if (has_rewritten_code(unmapping.memory, unmapping.bytes)) {
            hanare_hook_with_vector_registers(withdraw_before_unmapping, &unmapping);
            make_system_call(*call);
            hanare_hook_with_vector_registers(finish_unmapping, &unmapping);
            return Verdict::kDone;
        }
    }
    return ask_handler(*call);
}

}  // namespace

extern "C" Verdict hanare_hook_dispatch(SystemCall* call) {
    if (call->number < kSystemCallNumbers &&
        hanare_hook_wanted[call->number] < static_cast<uint8_t>(Wanted::kAlways)) {
        return handler.load(std::memory_order_acquire)(*call);
    }
    return dispatch_any(call);
}

extern "C" Verdict hanare_hook_dispatch_again(SystemCall* call, int64_t result) {
    return fell_short.load(std::memory_order_acquire)(*call, result);
}

}  // namespace hanare::hook
