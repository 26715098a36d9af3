// SPDX-License-Identifier: Apache-2.0
#include "job/pmi1_job.hpp"

#include "job/environment.hpp"
#include "job/key_value_job.hpp"
#include "job/pieces.hpp"
#include "job/wipe.hpp"

namespace hanare::job {
namespace {

constexpr const char* kRankName = "PMI_RANK";
constexpr const char* kSizeName = "PMI_SIZE";
constexpr const char* kDescriptorName = "PMI_FD";
constexpr uint32_t kDescriptorMax = 1u << 20;
// The launcher takes a task that ends without this for one that has failed.
constexpr int kFinalize_ms = 5000;

std::string name_of(const std::string& name, uint32_t rank, size_t piece) {
    return name + "-" + std::to_string(rank) + "-" + std::to_string(piece);
}

class Pmi1Values : public KeyValues {
public:
    Pmi1Values(Pmi1Connection connection, uint32_t rank, uint32_t size, bool is_on_one_machine)
        : connection_(std::move(connection)),
          rank_(rank),
          size_(size),
          is_on_one_machine_(is_on_one_machine) {}
    ~Pmi1Values() override { connection_.finalize(Deadline(kFinalize_ms)); }

    uint32_t rank() const noexcept override { return rank_; }
    uint32_t size() const noexcept override { return size_; }
    bool is_on_one_machine() const noexcept override { return is_on_one_machine_; }

    Result<void> put(const std::string& name, std::span<const std::byte> value,
                     const Deadline& deadline) override {
        auto pieces = pieces_of(value, connection_.limits().value_bytes);
        const WipeAtEnd wiping(pieces);
        for (size_t i = 0; i < pieces.size(); ++i) {
            HANARE_TRY(connection_.put(name_of(name, rank_, i), pieces[i], deadline));
        }
        return {};
    }

    Result<void> exchange(const Deadline& deadline) override {
        return connection_.barrier(deadline);
    }

    Result<std::vector<std::byte>> get(uint32_t rank, const std::string& name,
                                       const Deadline& deadline) override {
        std::vector<std::string> pieces;
        const WipeAtEnd wiping(pieces);
        size_t count = 1;
        while (pieces.size() < count) {
            HANARE_TRY_ASSIGN(std::string piece,
                              connection_.get(name_of(name, rank, pieces.size()), deadline));
            if (pieces.empty()) count = piece_count(piece);
            pieces.push_back(std::move(piece));
        }
        auto bytes = join_pieces(pieces);
        if (bytes) return std::move(*bytes);
        return fail(HANARE_STATUS_CORRUPT, "PMI-1: %.60s of task %u is not what it was",
                    name.c_str(), rank);
    }

private:
    Pmi1Connection connection_;
    const uint32_t rank_;
    const uint32_t size_;
    const bool is_on_one_machine_;
};

}  // namespace

bool is_pmi1_job() { return variable(kDescriptorName).has_value(); }

Result<std::unique_ptr<Job>> join_pmi1_job(const Deadline& deadline) {
    HANARE_TRY_ASSIGN(const Place place, place_variables(kRankName, kSizeName));
    HANARE_TRY_ASSIGN(const uint32_t descriptor,
                      number_variable(kDescriptorName, 0, kDescriptorMax));
    HANARE_TRY_ASSIGN(
        Pmi1Connection connection,
        Pmi1Connection::open(sys::FileDescriptor(static_cast<int>(descriptor)), deadline));
    return join_pmi1_job(std::move(connection), place.rank, place.size, deadline);
}

Result<std::unique_ptr<Job>> join_pmi1_job(Pmi1Connection connection, uint32_t rank, uint32_t size,
                                           const Deadline& deadline) {
    const auto mapping = connection.get("PMI_process_mapping", deadline);
    if (!mapping && mapping.error().status != HANARE_STATUS_NOT_FOUND) {
        return std::unexpected(mapping.error());
    }
    auto values = std::make_unique<Pmi1Values>(std::move(connection), rank, size,
                                               mapping && maps_to_one_machine(*mapping));
    return KeyValueJob::join("pmi1", std::move(values), deadline);
}

}  // namespace hanare::job
