// SPDX-License-Identifier: Apache-2.0
#include "space/copies.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstring>

#include "space/shared_mappings.hpp"
#include "space/task_table.hpp"

namespace hanare::space {

using hook::SystemCall;
using hook::Verdict;

namespace {

// Copies from one list of pieces to another, as far as the shorter one goes.
class Copying {
public:
    Copying(const iovec* to, uint64_t to_count, const iovec* from, uint64_t from_count) noexcept
        : to_{to, to_count}, from_{from, from_count} {}

    // The bytes copied.
    int64_t run() noexcept {
        int64_t all = 0;
        for (;;) {
            const size_t left_to = to_.left();
            const size_t left_from = from_.left();
            if (left_to == 0 || left_from == 0) return all;
            const size_t bytes = left_to < left_from ? left_to : left_from;
            copy(to_.place(), from_.place(), bytes);
            to_.pass(bytes);
            from_.pass(bytes);
            all += static_cast<int64_t>(bytes);
        }
    }

private:
    class List {
    public:
        List(const iovec* pieces, uint64_t count) noexcept : pieces_(pieces), count_(count) {}
        // Of the first piece that is not used up; 0 behind the last.
        size_t left() noexcept {
            while (count_ > 0 && pieces_->iov_len == used_) {
                ++pieces_;
                --count_;
                used_ = 0;
            }
            return count_ > 0 ? pieces_->iov_len - used_ : 0;
        }
        std::byte* place() const noexcept {
            return static_cast<std::byte*>(pieces_->iov_base) + used_;
        }
        void pass(size_t bytes) noexcept { used_ += bytes; }

    private:
        const iovec* pieces_;
        uint64_t count_;
        size_t used_ = 0;
    };
    struct Piece {
        std::byte* to;
        const std::byte* from;
        size_t bytes;
    };

    // Saving vector registers takes as long as some KiB.
    static constexpr size_t kByBytesMax = 4096;

    static void copy(std::byte* to, const std::byte* from, size_t bytes) noexcept {
        if (bytes <= kByBytesMax) {
            asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
            return;
        }
        Piece piece = {to, from, bytes};
        hook::hanare_hook_with_vector_registers(
            [](void* context) {
                const auto& whole = *static_cast<const Piece*>(context);
                std::memcpy(whole.to, whole.from, whole.bytes);
            },
            &piece);
    }

    List to_;
    List from_;
};

// A task that has become another program by exec has nothing there.
bool are_of_task(const Task& task, const iovec* pieces, uint64_t count) noexcept {
    if (task.has_left) return false;
    for (uint64_t i = 0; i < count; ++i) {
        const auto begin = reinterpret_cast<uint64_t>(pieces[i].iov_base);
        const uint64_t end = begin + pieces[i].iov_len;
        const bool is_own = task.partition.contains(begin) && end <= task.partition.whole().end;
        const bool is_shared = SharedMappings::contains(begin) && SharedMappings::contains(end - 1);
        if (end < begin || (!is_own && !is_shared && begin != end)) return false;
    }
    return true;
}

}  // namespace

Verdict answer_copy(const Task& self, SystemCall& call) noexcept {
    constexpr uint64_t kPiecesMax = 1024;  // of the kernel
    constexpr uint32_t kCopies = ~0u;
    const auto& arguments = call.arguments;
    const Task* other = nullptr;
    const bool is_usual =
        arguments[5] == 0 && arguments[2] <= kPiecesMax && arguments[4] <= kPiecesMax;
    if (!is_usual || !TaskTable::is_here() ||
        (other = TaskTable::of_process(static_cast<uint32_t>(arguments[0]))) == nullptr) {
        return Verdict::kNative;
    }
    const auto* const own = reinterpret_cast<const iovec*>(arguments[1]);
    const auto* const theirs = reinterpret_cast<const iovec*>(arguments[3]);
    if (!are_of_task(*other, theirs, arguments[4])) return Verdict::kNative;
    const task::Directory::Visit visit(
        TaskTable::directory(), TaskTable::index_of(self),
        {TaskTable::index_of(*other), static_cast<uint32_t>(arguments[0]), kCopies});
    if (!visit.has_begun()) return Verdict::kNative;
    Copying copying = call.number == SYS_process_vm_readv
                          ? Copying(own, arguments[2], theirs, arguments[4])
                          : Copying(theirs, arguments[4], own, arguments[2]);
    call.finish(copying.run());
    return Verdict::kDone;
}

}  // namespace hanare::space
