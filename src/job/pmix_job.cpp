// SPDX-License-Identifier: Apache-2.0
#include "job/pmix_job.hpp"

#include "job/environment.hpp"
#include "job/key_value_job.hpp"
#include "job/pmix_library.hpp"

namespace hanare::job {
namespace {

class PmixValues : public KeyValues {
public:
    PmixValues(PmixLibrary library, const PmixLibrary::Process& own)
        : library_(library), own_(own) {}
    ~PmixValues() override { library_.finalize(); }

    Result<void> ask_for_sizes(const Deadline& deadline) {
        HANARE_TRY_ASSIGN(size_, library_.job_number(own_, PmixLibrary::kJobSize, deadline));
        if (own_.rank >= size_ || size_ > Job::kTasksMax) {
            return fail(HANARE_STATUS_INVALID_ARGUMENT,
                        "PMIx: task %u of %u; allowed are at most %u tasks", own_.rank, size_,
                        Job::kTasksMax);
        }
        const auto local = library_.job_number(own_, PmixLibrary::kLocalSize, deadline);
        is_on_one_machine_ = local && *local == size_;
        return {};
    }

    uint32_t rank() const noexcept override { return own_.rank; }
    uint32_t size() const noexcept override { return size_; }
    bool is_on_one_machine() const noexcept override { return is_on_one_machine_; }

    Result<void> put(const std::string& name, std::span<const std::byte> value,
                     const Deadline&) override {
        return library_.put(name, value);
    }
    Result<void> exchange(const Deadline& deadline) override {
        return library_.exchange(own_, deadline);
    }
    Result<std::vector<std::byte>> get(uint32_t rank, const std::string& name,
                                       const Deadline& deadline) override {
        PmixLibrary::Process other = own_;
        other.rank = rank;
        return library_.get(other, name, deadline);
    }

private:
    PmixLibrary library_;
    const PmixLibrary::Process own_;
    uint32_t size_ = 0;
    bool is_on_one_machine_ = false;
};

}  // namespace

bool is_pmix_job() { return variable("PMIX_RANK").has_value(); }

Result<std::unique_ptr<Job>> join_pmix_job(const Deadline& deadline) {
    HANARE_TRY_ASSIGN(PmixLibrary library, PmixLibrary::load());
    HANARE_TRY_ASSIGN(const PmixLibrary::Process own, library.init());
    auto values = std::make_unique<PmixValues>(library, own);
    HANARE_TRY(values->ask_for_sizes(deadline));
    return KeyValueJob::join("pmix", std::move(values), deadline);
}

}  // namespace hanare::job
