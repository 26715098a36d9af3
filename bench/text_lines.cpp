// SPDX-License-Identifier: Apache-2.0
#include "bench/text_lines.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/units.hpp"

namespace hanare::bench {
namespace {

constexpr size_t kReadBytes = kMiB;

struct StateDeleter {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

// Lines come in parts; the last whole one is kept for the comparison with the next.
class Lines {
public:
    explicit Lines(TextCheck& check) : check_(check) {}

    void take(std::string_view part) {
        size_t begin = 0;
        for (size_t end; (end = part.find('\n', begin)) != std::string_view::npos;
             begin = end + 1) {
            const std::string_view rest = part.substr(begin, end - begin);
            if (unfinished_.empty()) {
                finish(rest);
            } else {
                unfinished_ += rest;
                finish(std::exchange(unfinished_, {}));
            }
        }
        unfinished_ += part.substr(begin);
        // `previous_` is a view into the part unless it is kept.
        kept_.assign(previous_);
        previous_ = kept_;
    }

    void end() {
        if (!unfinished_.empty()) check_.is_sorted = false;  // sort ends every line
    }

private:
    void finish(std::string_view line) {
        if (check_.bag.lines() > 0 && line < previous_) check_.is_sorted = false;
        check_.bag.add(line);
        previous_ = line;
    }
    void finish(std::string&& line) {
        finish(std::string_view(line));
        joined_ = std::move(line);
        previous_ = joined_;
    }

    TextCheck& check_;
    std::string_view previous_;
    std::string kept_;        // of an earlier part
    std::string joined_;      // a line that two parts share
    std::string unfinished_;  // the beginning of a line whose end is to come
};

}  // namespace

void LineBag::add(std::string_view line) {
    const XXH128_hash_t hash = XXH3_128bits(line.data(), line.size());
    sums_[0] += hash.low64;
    sums_[1] += hash.high64;
    ++lines_;
    bytes_ += line.size() + 1;
}

Result<TextCheck> check_text(int file, const std::function<bool()>& should_stop) {
    const std::unique_ptr<XXH3_state_t, StateDeleter> state(XXH3_createState());
    if (state == nullptr) return fail(HANARE_STATUS_NO_MEMORY, "no memory for a digest");
    XXH3_128bits_reset(state.get());
    TextCheck check;
    Lines lines(check);
    std::vector<char> buffer(kReadBytes);
    for (off_t at = 0; !should_stop();) {
        const ssize_t got = pread(file, buffer.data(), buffer.size(), at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno(HANARE_STATUS_SYSTEM, errno, "reading the sorted text");
        if (got == 0) {
            lines.end();
            const XXH128_hash_t digest = XXH3_128bits_digest(state.get());
            check.digest[0] = digest.high64;
            check.digest[1] = digest.low64;
            check.is_complete = true;
            break;
        }
        XXH3_128bits_update(state.get(), buffer.data(), static_cast<size_t>(got));
        lines.take({buffer.data(), static_cast<size_t>(got)});
        at += got;
    }
    return check;
}

}  // namespace hanare::bench
