// SPDX-License-Identifier: Apache-2.0
//
// A time line of any length in bounded memory: when it is full, every second entry is dropped, and
// from then on only every second one is taken.  Entries come at equal distances.  Used by one
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hanare {

template <typename T>
class BoundedSeries {
public:
    // `entries_max` is even, so that what comes when it is full is one of those to be kept.
    explicit BoundedSeries(size_t entries_max) : entries_max_(entries_max) {}

    void add(T entry) {
        if (count_++ % stride_ == 0) keep(std::move(entry));
    }
    // Whatever the resolution is by now; nothing comes after it.
    void add_last(T entry) { keep(std::move(entry)); }

    const std::vector<T>& entries() const { return entries_; }

private:
    void keep(T entry) {
        if (entries_.size() == entries_max_) {
            size_t kept = 0;
            for (size_t i = 0; i < entries_.size(); i += 2) entries_[kept++] = entries_[i];
            entries_.resize(kept);
            stride_ *= 2;
        }
        entries_.push_back(std::move(entry));
    }

    size_t entries_max_;
    uint64_t stride_ = 1;  // of so many that come one is kept
    uint64_t count_ = 0;
    std::vector<T> entries_;
};

}  // namespace hanare
