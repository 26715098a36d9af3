// SPDX-License-Identifier: Apache-2.0
#include "bench/memory.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "hanare/pool.h"
#include "sys/file.hpp"
#include "sys/file_mapping.hpp"
#include "sys/memory.hpp"
#include "sys/text_file.hpp"

namespace hanare::bench {
namespace {

hanare_counters no_counters() {
    hanare_counters none = {};
    none.struct_size = sizeof none;
    return none;
}

template <typename Array>
auto find_array(std::vector<Array>& arrays, const double* address) {
    return std::find_if(arrays.begin(), arrays.end(), [&](const Array& array) {
        return array.address() == static_cast<const void*>(address);
    });
}

class PlainMemory : public Memory {
public:
    explicit PlainMemory(HugePages huge_pages) : huge_pages_(huge_pages) {}

    Result<double*> allocate(size_t bytes) override {
        HANARE_TRY_ASSIGN(sys::Mapping mapping,
                          sys::Mapping::reserve(round_up(bytes, kOsPageBytes), kArrayAlignment));
        if (huge_pages_ != HugePages::kSystem) {
            sys::advise_huge_pages(mapping, huge_pages_ == HugePages::kAsked);
        }
        mappings_.push_back(std::move(mapping));
        return reinterpret_cast<double*>(mappings_.back().address());
    }
    Result<double*> allocate_again(double* array) override {
        const auto found = find_array(mappings_, array);
        const size_t bytes = found->bytes();
        mappings_.erase(found);
        return allocate(bytes);
    }
    Result<void> flush() override { return {}; }
    Result<void> drop() override {
        for (const sys::Mapping& mapping : mappings_) HANARE_TRY(sys::page_out(mapping));
        return {};
    }
    Result<void> use_advice(bool) override { return {}; }
    Result<hanare_counters> counters() override { return no_counters(); }

private:
    HugePages huge_pages_;
    std::vector<sys::Mapping> mappings_;
};

class FileMemory : public Memory {
public:
    FileMemory(sys::FileDescriptor file, sys::AccessOrder advice)
        : file_(std::move(file)), advice_(advice) {}

    Result<double*> allocate(size_t bytes) override {
        bytes = round_up(bytes, kOsPageBytes);
        HANARE_TRY_ASSIGN(double* const array, allocate_at(bytes_, bytes));
        bytes_ += bytes;
        return array;
    }
    // In the same place of the file, and on the same blocks of the disk: where those are given back
    // on the way, a virtual disk may have to find new ones at every write.
    Result<double*> allocate_again(double* array) override {
        const auto found = find_array(arrays_, array);
        const uint64_t offset = found->offset;
        const size_t bytes = found->bytes;
        arrays_.erase(found);
        int error = sys::zero_range(file_.number(), offset, bytes);
        if (error == EOPNOTSUPP) error = sys::punch_hole(file_.number(), offset, bytes);
        if (error != 0) {
            return fail_errno(HANARE_STATUS_STORE_IO, error, "making a part of a file zero");
        }
        return allocate_at(offset, bytes);
    }
    Result<void> flush() override {
        for (Array& array : arrays_) HANARE_TRY(array.mapping.flush());
        return {};
    }
    Result<void> drop() override {
        for (Array& array : arrays_) HANARE_TRY(array.mapping.unload());
        return sys::drop_cached_pages(file_.number());
    }
    Result<void> use_advice(bool wanted) override {
        const sys::AccessOrder order = wanted ? advice_ : sys::AccessOrder::kUnknown;
        for (Array& array : arrays_) HANARE_TRY(array.mapping.expect(order));
        return {};
    }
    Result<hanare_counters> counters() override { return no_counters(); }

private:
    struct Array {
        sys::FileMapping mapping;
        uint64_t offset;
        size_t bytes;
        const void* address() const { return mapping.address(); }
    };

    Result<double*> allocate_at(uint64_t offset, size_t bytes) {
        HANARE_TRY(sys::check_file_bytes("a file", offset + bytes));
        if (const int error = sys::preallocate(file_.number(), offset, bytes)) {
            return fail_errno(HANARE_STATUS_STORE_FULL, error, "allocating a file of %s",
                              format_size(offset + bytes).c_str());
        }
        HANARE_TRY_ASSIGN(sys::FileMapping mapping,
                          sys::FileMapping::create(file_.number(), offset, bytes, kArrayAlignment));
        HANARE_TRY(mapping.expect(advice_));
        arrays_.push_back({std::move(mapping), offset, bytes});
        return reinterpret_cast<double*>(arrays_.back().mapping.address());
    }

    sys::FileDescriptor file_;
    sys::AccessOrder advice_;
    uint64_t bytes_ = 0;
    std::vector<Array> arrays_;
};

std::unexpected<Error> last_failure(hanare_status status, const char* what) {
    char text[Error::kTextBytes] = "";
    hanare_last_error(text, sizeof text);
    return fail(status, "%s: %.200s", what, text);
}

class HanareMemory : public Memory {
public:
    explicit HanareMemory(hanare_pool* pool) : pool_(pool) {}
    ~HanareMemory() override { hanare_pool_close(pool_); }
    HanareMemory(const HanareMemory&) = delete;
    HanareMemory& operator=(const HanareMemory&) = delete;

    Result<double*> allocate(size_t bytes) override {
        void* address = nullptr;
        const hanare_status status = hanare_alloc(pool_, bytes, nullptr, &address);
        if (status != HANARE_STATUS_OK) return last_failure(status, "hanare_alloc");
        regions_.push_back({address, bytes});
        return static_cast<double*>(address);
    }
    Result<double*> allocate_again(double* array) override {
        const auto found = std::find_if(regions_.begin(), regions_.end(),
                                        [&](const auto& region) { return region.first == array; });
        const size_t bytes = found->second;
        regions_.erase(found);
        const hanare_status status = hanare_free(pool_, array);
        if (status != HANARE_STATUS_OK) return last_failure(status, "hanare_free");
        return allocate(bytes);
    }
    Result<void> flush() override {
        const hanare_status status = hanare_flush(pool_, nullptr, 0);
        if (status != HANARE_STATUS_OK) return last_failure(status, "hanare_flush");
        return {};
    }
    Result<void> drop() override {
        for (const auto& [address, bytes] : regions_) {
            const hanare_status status =
                hanare_advise(pool_, address, bytes, HANARE_ADVICE_DONTNEED);
            if (status != HANARE_STATUS_OK) return last_failure(status, "hanare_advise");
        }
        return {};
    }
    Result<void> use_advice(bool) override { return {}; }
    Result<hanare_counters> counters() override {
        HANARE_TRY_ASSIGN(hanare_counters counters, counters_of(nullptr));
        if (!regions_.empty()) {
            HANARE_TRY_ASSIGN(const auto first, counters_of(regions_.front().first));
            counters.block_bytes = first.block_bytes;
        }
        return counters;
    }

private:
    Result<hanare_counters> counters_of(const void* address) {
        hanare_counters counters = no_counters();
        const hanare_status status = hanare_stats(pool_, address, &counters);
        if (status != HANARE_STATUS_OK) return last_failure(status, "hanare_stats");
        return counters;
    }

    hanare_pool* pool_;
    std::vector<std::pair<void*, size_t>> regions_;
};

}  // namespace

std::unique_ptr<Memory> plain_memory(HugePages huge_pages) {
    return std::make_unique<PlainMemory>(huge_pages);
}

Result<std::unique_ptr<Memory>> file_memory(const std::string& directory, sys::AccessOrder advice) {
    sys::FileDescriptor file;
    if (const int error = sys::open_unnamed(directory, file)) {
        return fail_errno(HANARE_STATUS_STORE_UNAVAILABLE, error, "creating a file in %s",
                          directory.c_str());
    }
    return std::make_unique<FileMemory>(std::move(file), advice);
}

Result<std::unique_ptr<Memory>> hanare_memory(const HanareMemoryOptions& options) {
    hanare_pool_options pool_options = {};
    pool_options.struct_size = sizeof pool_options;
    pool_options.local_bytes = options.local_bytes;
    pool_options.store = options.store.empty() ? nullptr : options.store.c_str();
    pool_options.block_bytes = options.block_bytes;
    pool_options.engine = options.engine.empty() ? nullptr : options.engine.c_str();
    pool_options.read_ahead_blocks =
        options.read_ahead_blocks == 0 ? HANARE_READ_AHEAD_OFF : options.read_ahead_blocks;
    pool_options.replacement = options.replacement.empty() ? nullptr : options.replacement.c_str();
    hanare_pool* pool = nullptr;
    const hanare_status status = hanare_pool_open(&pool_options, &pool);
    if (status != HANARE_STATUS_OK) return last_failure(status, "hanare_pool_open");
    return std::make_unique<HanareMemory>(pool);
}

Result<void> warm_memory(uint64_t bytes) {
    // The kernel keeps free huge pages apart from what it cuts single pages from.
    for (const bool huge_pages : {false, true}) {
        HANARE_TRY_ASSIGN(const sys::Mapping mapping,
                          sys::Mapping::reserve(round_up(bytes, kOsPageBytes), kArrayAlignment));
        sys::advise_huge_pages(mapping, huge_pages);
        for (size_t at = 0; at < mapping.bytes(); at += kOsPageBytes) {
            *static_cast<volatile std::byte*>(mapping.address() + at) = std::byte{1};
        }
    }
    return {};
}

std::string transparent_huge_page_mode() {
    const auto text = sys::read_text_file("/sys/kernel/mm/transparent_hugepage/enabled");
    if (!text) return "unknown";
    const size_t open_bracket = text->find('[');
    const size_t close_bracket = text->find(']');
    if (open_bracket == std::string::npos || close_bracket == std::string::npos) return "unknown";
    return text->substr(open_bracket + 1, close_bracket - open_bracket - 1);
}

}  // namespace hanare::bench
