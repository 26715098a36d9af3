// SPDX-License-Identifier: Apache-2.0
//
// What peers ask, answered by the thread that serves them: whatever it says, nothing is believed
// before it was looked at.
#include <cstring>

#include "dsm/home_protocol.hpp"

namespace hanare::dsm {

bool HomeProtocol::knows(QuestionKind kind) const noexcept {
    if (HomeWaits::knows(kind)) return true;
    switch (kind) {
        case QuestionKind::kClaim:
        case QuestionKind::kFetch:
        case QuestionKind::kApply:
        case QuestionKind::kMove:
        case QuestionKind::kSnapshot:
        case QuestionKind::kLastHolder:
        case QuestionKind::kHandOver:
        case QuestionKind::kHandedOver: return true;
        default: return false;
    }
}

hanare_status HomeProtocol::answer(const Question& question, std::span<const std::byte> rest,
                                   std::span<std::byte> room, size_t& bytes) {
    const auto done = [](bool is_sound) {
        return is_sound ? HANARE_STATUS_OK : HANARE_STATUS_INVALID_ARGUMENT;
    };
    const auto give = [&](const void* answer, size_t size) {
        if (room.size() - bytes < size) return HANARE_STATUS_OUT_OF_RANGE;
        std::memcpy(room.data() + bytes, answer, size);
        bytes += size;
        return HANARE_STATUS_OK;
    };
    const auto number = static_cast<uint32_t>(question.begin);
    const size_t positions_bytes = peers_.size() * sizeof(uint64_t);
    if (question.from >= peers_.size()) return HANARE_STATUS_INVALID_ARGUMENT;
    if (HomeWaits::knows(question.kind)) return waits_.answer(question, rest, room, bytes);
    switch (question.kind) {
        case QuestionKind::kClaim: {
            const uint64_t count = question.count & UINT32_MAX;
            bytes = count * sizeof(uint16_t);
            if (count > HomeMemory::kClaimsMax || room.size() < bytes) return done(false);
            return done(memory_->claim_for(question.from, question.begin, count,
                                           question.count >> 32,
                                           reinterpret_cast<uint16_t*>(room.data())));
        }
        case QuestionKind::kFetch: {
            HomeAnswer said;
            if (question.count > Fetch::kBlocksMax) return done(false);
            if (!memory_->note_fetch(question.begin, question.count, said)) return done(false);
            return give(&said, sizeof said);
        }
        case QuestionKind::kSnapshot: {
            HomeAnswer said;
            const uint64_t count = question.count & UINT32_MAX;
            const uint64_t place = (question.count & ~kFollows) >> 32;
            const uint32_t follower =
                (question.count & kFollows) != 0 ? question.from : Followers::kNobody;
            if (place + count > kSnapshotBlocksMax) return done(false);
            std::byte* const snapshot = mail_.snapshot_for(question.from) + place * kBlockBytes;
            if (!memory_->take_snapshot(question.begin, count, follower, said, snapshot)) {
                return done(false);
            }
            return give(&said, sizeof said);
        }
        case QuestionKind::kMove: {
            HomeAnswer said;
            uint8_t grants[Fetch::kBlocksMax];
            if (question.count > sizeof grants || room.size() < sizeof said + question.count ||
                !memory_->move_to(question.from, question.begin, question.count, said, grants)) {
                return done(false);
            }
            give(&said, sizeof said);
            return give(grants, said.count);
        }
        case QuestionKind::kApply: {
            if (question.begin > kMailDiffBytes) return done(false);
            const auto diffs =
                question.begin == 0
                    ? rest
                    : std::span<const std::byte>(mail_.diffs_of(question.from), question.begin);
            HomeAnswer said;
            if (!memory_->apply(diffs, said)) return done(false);
            return give(&said, sizeof said);
        }
        case QuestionKind::kLastHolder:
        case QuestionKind::kHandOver: {
            if (question.begin >= kLocks || rest.size() != positions_bytes ||
                room.size() < sizeof(LockAnswer) + positions_bytes) {
                return done(false);
            }
            if (peers_.trouble() != HANARE_STATUS_OK) return HANARE_STATUS_BUSY;
            std::vector<uint64_t> told(peers_.size());
            std::memcpy(told.data(), rest.data(), positions_bytes);
            bytes = question.kind == QuestionKind::kHandOver
                        ? locks_.hand_over(number, question.from, told, room)
                        : locks_.find_last(number, question.from, told, room);
            // Meanwhile.
            if (bytes == 0 && peers_.failure() != HANARE_STATUS_OK) return HANARE_STATUS_BUSY;
            return done(bytes != 0);
        }
        case QuestionKind::kHandedOver: {
            if (question.begin >= kLocks || rest.size() < positions_bytes) return done(false);
            locks_.take_over(number, question.from, rest);
            return HANARE_STATUS_OK;
        }
        default: return HANARE_STATUS_NOT_SUPPORTED;
    }
}

}  // namespace hanare::dsm
