// SPDX-License-Identifier: Apache-2.0
#include "fabric/local_greeting.hpp"

#include <cerrno>
#include <new>
#include <span>

#include "base/units.hpp"
#include "sys/clock.hpp"
#include "sys/descriptor_passing.hpp"
#include "sys/local_socket.hpp"
#include "sys/lock.hpp"
#include "sys/process_namespace.hpp"
#include "sys/raw_thread.hpp"
#include "sys/shared_memory.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::fabric {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint32_t kYield_us = 500;

template <typename Message>
std::span<std::byte> bytes_of(Message& message) noexcept {
    return std::as_writable_bytes(std::span(&message, 1));
}

template <typename Message>
std::span<const std::byte> bytes_of(const Message& message) noexcept {
    return std::as_bytes(std::span(&message, 1));
}

Result<sys::Mapping> map_rings(const sys::FileDescriptor& file) {
    HANARE_TRY_ASSIGN(sys::Mapping memory,
                      sys::Mapping::reserve(Transport::kSharedBytes, kOsPageBytes));
    HANARE_TRY(sys::map_shared(memory, file));
    return memory;
}

bool has_bytes(const sys::FileDescriptor& file, size_t bytes) {
    if (!file.is_open()) return false;
    const Result<size_t> found = sys::shared_memory_bytes(file.number());
    return found && *found == bytes;
}

// Whether the target's numbers of processes and threads mean the same here, and the one that serves
// has that number.  The kernel may know another: who has listened, before a fork.
bool is_the_same_here(const RegionPage& page, int process) noexcept {
    const uint64_t own = sys::process_namespace();
    return own != 0 && page.process_namespace.load() == own && process > 0 &&
           page.process.load() == static_cast<uint32_t>(process);
}

// Tasks of a space believe each other: any of them could do harm otherwise.
Neighbour neighbour_of(const RegionPage& page, uint64_t address, int process) noexcept {
    task::Directory* const directory = task::Directory::here();
    if (directory == nullptr || address == 0) return {};
    const auto self = directory->task_of(sys::raw_process_id());
    const auto other = directory->task_of(static_cast<uint32_t>(process));
    if (!self || !other) return {};
    const Neighbour neighbour = {directory, *self, *other, static_cast<uint32_t>(process),
                                 reinterpret_cast<const ExposedRegions*>(address)};
    const task::Directory::Visit visit(*directory, *self, {*other, neighbour.process, 1});
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const bool is_there = visit.has_begun() && page.serving.is_alive();
    return is_there && neighbour.regions->is_understood() ? neighbour : Neighbour{};
}

}  // namespace

// ---- the target's side

LocalGreeting::Outcome LocalGreeting::go_on() noexcept {
    const ptrdiff_t got =
        sys::receive_message(socket_.number(), bytes_of(request_).subspan(come_bytes_));
    if (got == -EAGAIN) return Outcome::kWaits;
    if (got <= 0) return Outcome::kOver;
    come_bytes_ += static_cast<size_t>(got);
    if (come_bytes_ < sizeof request_) return Outcome::kWaits;
    if (request_.magic != LocalRequest::kMagic) return Outcome::kOver;
    try {
        switch (request_.what) {
            case LocalRequest::What::kConnection: return connect();
            case LocalRequest::What::kRegion: return give_region();
        }
    } catch (const std::bad_alloc&) {
        // The peer sees that it is closed.
    }
    return Outcome::kOver;
}

LocalGreeting::Outcome LocalGreeting::connect() {
    const Result<sys::FileDescriptor> file = sys::create_shared_memory(Transport::kSharedBytes);
    const Result<sys::FileDescriptor> page = regions_.share_page();
    if (!file || !page) return Outcome::kOver;
    Result<sys::Mapping> memory = map_rings(*file);
    if (!memory) return Outcome::kOver;
    const std::array<int, 2> descriptors = {file->number(), page->number()};
    LocalAnswer answer;
    answer.address = reinterpret_cast<uint64_t>(regions_.place_in_space());
    if (sys::send_message(socket_.number(), bytes_of(answer), descriptors) != 0) {
        return Outcome::kOver;
    }
    transport_ = std::make_unique<Transport>(std::move(socket_), std::move(*memory),
                                             Handshake::Side::kTarget);
    return Outcome::kConnected;
}

LocalGreeting::Outcome LocalGreeting::give_region() {
    const Result<ExposedRegions::Attachment> attachment = regions_.attach(request_.capability);
    LocalAnswer answer;
    if (!attachment) {
        answer.status = attachment.error().status;
        sys::send_message(socket_.number(), bytes_of(answer));
        return Outcome::kOver;
    }
    answer.address = attachment->address;
    answer.bytes = attachment->bytes;
    const std::array<int, 1> descriptors = {attachment->file.number()};
    sys::send_message(socket_.number(), bytes_of(answer),
                      std::span(descriptors).first(attachment->file.is_open() ? 1 : 0));
    return Outcome::kOver;
}

// ---- the source's side

Result<LocalConnection> connect_locally(const std::string& address, int timeout_ms) {
    const uint64_t end_ns = sys::now_ns() + static_cast<uint64_t>(timeout_ms) * kNsPerMs;
    Result<sys::FileDescriptor> connected = sys::connect_local(address);
    // Too many wait there; nothing tells when there are fewer.
    while (!connected && connected.error().os_errno == EAGAIN && sys::now_ns() < end_ns) {
        sys::yield_for_us(kYield_us);
        connected = sys::connect_local(address);
    }
    if (!connected) {
        return fail(HANARE_STATUS_PEER_LOST, "nobody serves at %.150s: %.80s", address.c_str(),
                    connected.error().text);
    }
    const sys::FileDescriptor& socket = *connected;
    LocalAnswer answer;
    std::array<sys::FileDescriptor, 2> passed;
    ptrdiff_t got = -EAGAIN;
    if (sys::send_message(socket.number(), bytes_of(LocalRequest{})) == 0) {
        for (uint64_t now = sys::now_ns(); got == -EAGAIN && now < end_ns; now = sys::now_ns()) {
            sys::wait_for_socket(socket.number(), {.to_read = true},
                                 static_cast<int>((end_ns - now) / kNsPerMs) + 1);
            got = sys::receive_message(socket.number(), bytes_of(answer), passed);
        }
        if (got == -EAGAIN) {
            return fail(HANARE_STATUS_TIMEOUT, "%.150s: no answer within %d ms", address.c_str(),
                        timeout_ms);
        }
    }
    // The answer goes in one message, and has come as a whole or not at all.
    if (got != sizeof answer || answer.magic != LocalRequest::kMagic ||
        answer.status != HANARE_STATUS_OK || !has_bytes(passed[0], Transport::kSharedBytes) ||
        !has_bytes(passed[1], kRegionPageBytes)) {
        return fail(HANARE_STATUS_PEER_LOST, "%.150s has closed, or says what nobody understands",
                    address.c_str());
    }
    LocalConnection connection;
    HANARE_TRY_ASSIGN(sys::Mapping rings, map_rings(passed[0]));
    HANARE_TRY_ASSIGN(connection.page, sys::map_read_only(passed[1].number(), kRegionPageBytes));
    const auto& page = *reinterpret_cast<const RegionPage*>(connection.page.address());
    const int process = sys::peer_process(socket.number());
    if (is_the_same_here(page, process)) {
        connection.process = process;
        connection.neighbour = neighbour_of(page, answer.address, process);
    }
    connection.transport = std::make_unique<Transport>(std::move(*connected), std::move(rings),
                                                       Handshake::Side::kSource);
    return connection;
}

int RegionRequest::begin(const std::string& address, const Capability& capability) noexcept {
    Result<sys::FileDescriptor> connected = sys::connect_local(address);
    if (!connected) return connected.error().os_errno;
    const LocalRequest request = {.what = LocalRequest::What::kRegion, .capability = capability};
    if (const int error = sys::send_message(connected->number(), bytes_of(request)); error != 0) {
        return error;
    }
    socket_ = std::move(*connected);
    file_.close();
    answer_ = {};
    come_bytes_ = 0;
    return 0;
}

bool RegionRequest::is_answered() noexcept {
    if (!socket_.is_open()) return true;
    const ptrdiff_t got =
        sys::receive_message(socket_.number(), bytes_of(answer_).subspan(come_bytes_), {&file_, 1});
    if (got == -EAGAIN) return false;
    const bool is_whole = got > 0 && come_bytes_ + static_cast<size_t>(got) == sizeof answer_;
    if (!is_whole || answer_.magic != LocalRequest::kMagic) {
        answer_.status = HANARE_STATUS_PEER_LOST;
    }
    socket_.close();
    return true;
}

}  // namespace hanare::fabric
