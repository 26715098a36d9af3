// SPDX-License-Identifier: Apache-2.0
//
// The channel of a composed store: one channel of each member, whose transfers together make those
// of the caller.  Whole stripes and copies go out at once; what needs to read before it writes, and
// what a member has lost, is waited for.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "compose/composed_store.hpp"
#include "store/store.hpp"
#include "sys/event.hpp"
#include "sys/memory.hpp"

namespace hanare::compose {

class ComposedChannel final : public store::IoChannel, private Healer::Listener {
public:
    static Result<std::unique_ptr<store::IoChannel>> open(ComposedStore& store);
    ~ComposedChannel() override;

    bool submit(store::IoRequest& request) noexcept override;
    void flush() noexcept override;
    store::IoRequest* next_completed() noexcept override;
    bool has_completed() const noexcept override;
    void wait(int timeout_ms) noexcept override;
    void notify() noexcept override;
    void watch(int descriptor) noexcept override { watched_ = descriptor; }
    bool take_watched() noexcept override;
    bool begin_wait(sys::PollSet& set) noexcept override;
    void end_wait() noexcept override;
    size_t in_flight() const noexcept override { return jobs_in_flight_; }

private:
    // A transfer of the caller's.
    struct Job {
        store::IoRequest* request = nullptr;
        Group group;
        Job* next = nullptr;
        uint32_t waiting = 0;  // parts
        bool has_failed = false;
        bool is_settled = false;  // the request has its status
    };
    // One of a member's.
    struct Part : store::IoRequest {
        Job* job = nullptr;
        Part* next_part = nullptr;
        std::byte* parity = nullptr;  // the buffer that it comes out of
        uint32_t member = 0;
    };
    template <typename T, T* T::* next>
    struct Queue {
        T* first = nullptr;
        T* last = nullptr;
        bool empty() const noexcept { return first == nullptr; }
        void push(T& element) noexcept {
            element.*next = nullptr;
            (first == nullptr ? first : last->*next) = &element;
            last = &element;
        }
        T* pop() noexcept {
            T* const element = first;
            if (element != nullptr) first = element->*next;
            return element;
        }
    };
    using JobQueue = Queue<Job, &Job::next>;
    using PartQueue = Queue<Part, &Part::next_part>;
    using RequestQueue = Queue<store::IoRequest, &store::IoRequest::next>;

    static constexpr size_t kJobs = 256;
    static constexpr size_t kParts = 2048;
    static constexpr size_t kParityBytes = 8 * kMiB;

    ComposedChannel(ComposedStore& store, sys::EventFd notice, sys::Mapping parity);

    void group_opened() noexcept override;
    bool has_channels_for(const Group& group) noexcept;
    bool open_channels() noexcept;
    bool has_parts_for(const store::IoRequest& request) const noexcept;
    void begin(Job& job) noexcept;
    void carry_out_here(Job& job) noexcept;
    void add_part(Job& job, uint32_t role, uint64_t offset, std::byte* memory, size_t bytes,
                  std::byte* parity) noexcept;
    void start_parts(uint32_t member) noexcept;
    void finish_part(Part& part) noexcept;
    void finish(Job& job) noexcept;
    void complete(Job& job) noexcept;
    void turn() noexcept;

    ComposedStore& store_;
    sys::EventFd notice_;
    std::atomic<bool> is_notified_{false};
    int watched_ = -1;
    std::vector<std::unique_ptr<store::IoChannel>> channels_;   // by member
    std::array<PartQueue, Members::kMembersMax> pending_ = {};  // what a channel would not take yet

    std::vector<Job> jobs_;
    std::vector<Part> parts_;
    JobQueue free_jobs_;
    PartQueue free_parts_;
    size_t free_part_count_ = 0;
    sys::Mapping parity_memory_;
    std::vector<std::byte*> parities_;  // free ones
    JobQueue held_;                     // their groups are closed
    RequestQueue completed_;
    size_t jobs_in_flight_ = 0;
    size_t bytes_in_flight_ = 0;
};

}  // namespace hanare::compose
