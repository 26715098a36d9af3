// SPDX-License-Identifier: Apache-2.0
#include "job/ucx_side.hpp"

#ifdef HANARE_HAVE_UCX
#include <thread>
#include <utility>

#include "fabric/ucx_link.hpp"
#include "fabric/ucx_target.hpp"
#include "sys/signal.hpp"
#endif

namespace hanare::job {

#ifdef HANARE_HAVE_UCX

namespace {

using fabric::UcxContext;
using fabric::UcxMemory;
using fabric::UcxTarget;

class UcxSideHere final : public UcxSide {
public:
    UcxSideHere(std::unique_ptr<UcxContext> context, std::unique_ptr<UcxTarget> target)
        : context_(std::move(context)), target_(std::move(target)) {
        // Inherited by the thread.
        const sys::SignalBlock no_signals;
        thread_ = std::thread([target = target_.get()] { target->run(); });
    }
    ~UcxSideHere() override { end(); }

    void end() noexcept override {
        if (target_ == nullptr) return;
        target_->stop();
        thread_.join();
        target_.reset();
    }

    fabric::Capability card() const noexcept override { return target_->card(); }

    Result<std::unique_ptr<UcxMemory>> allocate(size_t bytes) override {
        return UcxMemory::allocate(*context_, bytes);
    }
    Result<uint32_t> expose(UcxMemory& memory, fabric::Rights rights) override {
        return target_->expose(memory, rights);
    }
    Result<void> revoke(uint32_t region) override { return target_->revoke(region); }
    Result<void> conceal(uint32_t region) override { return target_->conceal(region); }

    std::unique_ptr<fabric::Link> extend(std::unique_ptr<fabric::Link> base,
                                         const fabric::Capability& card, int timeout_ms) override {
        auto link =
            fabric::UcxLink::connect(*context_, base, {.card = card, .timeout_ms = timeout_ms});
        if (!link) return base;
        return std::move(*link);
    }

private:
    const std::unique_ptr<UcxContext> context_;
    std::unique_ptr<UcxTarget> target_;
    std::thread thread_;
};

}  // namespace

Result<void> UcxSide::try_here() {
    HANARE_TRY_ASSIGN(const std::unique_ptr<UcxContext> context, UcxContext::open({}));
    HANARE_TRY(UcxMemory::allocate(*context, 1));
    return {};
}

Result<std::unique_ptr<UcxSide>> UcxSide::open(fabric::ExposedRegions& regions) {
    HANARE_TRY_ASSIGN(std::unique_ptr<UcxContext> context, UcxContext::open({}));
    HANARE_TRY_ASSIGN(std::unique_ptr<UcxTarget> target, UcxTarget::open(*context, regions));
    return std::make_unique<UcxSideHere>(std::move(context), std::move(target));
}

#else

// The context says why.
Result<void> UcxSide::try_here() { return std::unexpected(fabric::UcxContext::open({}).error()); }

Result<std::unique_ptr<UcxSide>> UcxSide::open(fabric::ExposedRegions&) {
    return std::unexpected(fabric::UcxContext::open({}).error());
}

#endif

}  // namespace hanare::job
