// SPDX-License-Identifier: Apache-2.0
//
// hanare_comm_*: what all tasks do together, and multicasts.
#include "capi/comm.hpp"
#include "job/word_wait.hpp"

namespace hanare::capi {
namespace {

template <typename Body>
hanare_status on_window(const char* function, hanare_comm_window* window, Body body) noexcept {
    if (window == nullptr) return report(null_argument(function, "window"));
    return on_comm(function, window->comm, [&](hanare_comm& comm) { return body(*window, comm); });
}

Result<job::Group::Multicast> multicast_of(const hanare_multicast_options* given) {
    HANARE_TRY_ASSIGN(const auto options, copy_options("hanare_comm_multicast_put", given));
    if ((options.flags & ~HANARE_MULTICAST_FLAT) != 0) {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "multicast: flags 0x%x; allowed is HANARE_MULTICAST_FLAT", options.flags);
    }
    job::Group::Multicast multicast;
    if (options.arity != 0) multicast.arity = options.arity;
    multicast.is_flat = (options.flags & HANARE_MULTICAST_FLAT) != 0;
    return multicast;
}

// As much as the caller knows of the struct.
Result<void> check_counts(const hanare_multicast_counts* counts) {
    if (counts == nullptr || counts->struct_size >= sizeof counts->struct_size) return {};
    return fail(HANARE_STATUS_INVALID_ARGUMENT,
                "multicast: counts->struct_size is %zu; set it to sizeof the struct",
                counts->struct_size);
}

void give_counts(const job::Group::Counts& counts, hanare_multicast_counts* given) {
    if (given == nullptr) return;
    const hanare_multicast_counts all = {given->struct_size, counts.puts, counts.notices,
                                         counts.acknowledgements};
    std::memcpy(given, &all, std::min(given->struct_size, sizeof all));
}

}  // namespace
}  // namespace hanare::capi

using hanare::Result;
using hanare::capi::on_comm;
using hanare::capi::on_window;
using hanare::job::deadline_after;

extern "C" {

hanare_status hanare_comm_barrier(hanare_comm* comm, int timeout_ms) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) {
        return opened.group->barrier(deadline_after(timeout_ms));
    });
}

hanare_status hanare_comm_broadcast(hanare_comm* comm, void* data, size_t bytes, uint32_t root,
                                    int timeout_ms) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        // Checked there, since every call counts.
        return opened.group->broadcast(hanare::capi::room_at(data, bytes), root,
                                       deadline_after(timeout_ms));
    });
}

hanare_status hanare_comm_allgather(hanare_comm* comm, const void* own, size_t bytes, void* all,
                                    int timeout_ms) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        // Checked there, since every call counts; no room is enough for more than SIZE_MAX.
        const size_t tasks = opened.communicator->size();
        const size_t room = bytes > SIZE_MAX / tasks ? 0 : bytes * tasks;
        return opened.group->allgather(hanare::capi::bytes_at(own, bytes),
                                       hanare::capi::room_at(all, room),
                                       deadline_after(timeout_ms));
    });
}

hanare_status hanare_comm_window_open(hanare_comm* comm, uint32_t region, int timeout_ms,
                                      hanare_comm_window** window) {
    return on_comm(__func__, comm, [&](hanare_comm& opened) -> Result<void> {
        if (const auto good = hanare::capi::check_pointer("window", window); !good) {
            return opened.group->refuse_window(good.error());
        }
        auto made = std::make_unique<hanare_comm_window>();
        made->comm = &opened;
        HANARE_TRY_ASSIGN(made->number,
                          opened.group->open_window(region, deadline_after(timeout_ms)));
        const std::lock_guard guard(opened.windows_lock);
        *window = opened.windows.emplace_back(std::move(made)).get();
        return {};
    });
}

hanare_status hanare_comm_window_close(hanare_comm_window* window, int timeout_ms) {
    return on_window(
        __func__, window, [&](hanare_comm_window& opened, hanare_comm& comm) -> Result<void> {
            bool is_closed = false;
            const auto done =
                comm.group->close_window(opened.number, deadline_after(timeout_ms), is_closed);
            if (is_closed) {
                const std::lock_guard guard(comm.windows_lock);
                std::erase_if(comm.windows,
                              [&](const auto& each) { return each.get() == &opened; });
            }
            return done;
        });
}

hanare_status hanare_comm_multicast_put(hanare_comm_window* window, uint64_t offset,
                                        const void* data, size_t bytes, int timeout_ms,
                                        const hanare_multicast_options* options,
                                        hanare_multicast_counts* counts) {
    return on_window(__func__, window,
                     [&](hanare_comm_window& opened, hanare_comm& comm) -> Result<void> {
                         HANARE_TRY(hanare::capi::check_pointer("data", data, bytes));
                         HANARE_TRY(hanare::capi::check_counts(counts));
                         HANARE_TRY_ASSIGN(auto multicast, hanare::capi::multicast_of(options));
                         multicast.window = opened.number;
                         multicast.offset = offset;
                         multicast.data = hanare::capi::bytes_at(data, bytes);
                         multicast.deadline_ns = deadline_after(timeout_ms);
                         HANARE_TRY_ASSIGN(const auto sent, comm.group->multicast_put(multicast));
                         hanare::capi::give_counts(sent, counts);
                         return {};
                     });
}

}  // extern "C"
