// SPDX-License-Identifier: Apache-2.0
//
// UCP's one-sided operations: this process is the source, a child of it the target, whose part is
// to call the library often.  Which transports are used says the environment (UCX_TLS).
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "bench/compared/compared_system.hpp"
#include "bench/compared/networks.hpp"
#include "sys/event.hpp"
#include "sys/process_end.hpp"

namespace hanare::bench {
namespace {

constexpr int kEndMs = 5'000;

Result<void> check(ucs_status_t status, const char* what) {
    if (status == UCS_OK) return {};
    return fail(HANARE_STATUS_SYSTEM, "%s: %s", what, ucs_status_string(status));
}

// A context and the one worker in it.
class Worker {
public:
    Worker() = default;
    ~Worker() {
        if (worker_ != nullptr) ucp_worker_destroy(worker_);
        if (context_ != nullptr) ucp_cleanup(context_);
    }
    Worker(const Worker&) = delete;

    Result<void> open() {
        ucp_config_t* config = nullptr;
        HANARE_TRY(check(ucp_config_read(nullptr, nullptr, &config), "ucp_config_read"));
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_RMA | UCP_FEATURE_AMO64;
        const ucs_status_t status = ucp_init(&params, config, &context_);
        ucp_config_release(config);
        HANARE_TRY(check(status, "ucp_init"));
        ucp_worker_params_t single = {};
        single.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
        single.thread_mode = UCS_THREAD_MODE_SINGLE;
        return check(ucp_worker_create(context_, &single, &worker_), "ucp_worker_create");
    }
    ucp_worker_h get() const { return worker_; }
    ucp_context_h context() const { return context_; }

private:
    ucp_context_h context_ = nullptr;
    ucp_worker_h worker_ = nullptr;
};

Result<void> send_bytes(Control& control, const void* data, size_t bytes) {
    HANARE_TRY(control.send_value(bytes));
    return control.send({static_cast<const std::byte*>(data), bytes});
}

Result<std::vector<std::byte>> receive_bytes(Control& control) {
    HANARE_TRY_ASSIGN(const size_t bytes, control.receive_value<size_t>());
    std::vector<std::byte> data(bytes);
    HANARE_TRY(control.receive(data));
    return data;
}

class UcxTarget : public ComparedSystem {
public:
    ~UcxTarget() override {
        if (mapped_ != nullptr) ucp_mem_unmap(worker_.context(), mapped_);
    }
    // Exposes memory, and tells the source where.
    Result<void> open(Control& control) {
        HANARE_TRY(worker_.open());
        fill_fabric_region(memory_);
        ucp_mem_map_params_t params = {};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = memory_.data();
        params.length = memory_.size();
        HANARE_TRY(check(ucp_mem_map(worker_.context(), &params, &mapped_), "ucp_mem_map"));
        return introduce(control);
    }
    void progress() override { ucp_worker_progress(worker_.get()); }
    Result<void> get_alone(uint64_t, std::span<std::byte>) override { return not_here(); }

private:
    Result<void> introduce(Control& control) {
        ucp_address_t* address = nullptr;
        size_t bytes = 0;
        HANARE_TRY(check(ucp_worker_get_address(worker_.get(), &address, &bytes),
                         "ucp_worker_get_address"));
        const Result<void> told = send_bytes(control, address, bytes);
        ucp_worker_release_address(worker_.get(), address);
        HANARE_TRY(told);
        void* key = nullptr;
        HANARE_TRY(check(ucp_rkey_pack(worker_.context(), mapped_, &key, &bytes), "ucp_rkey_pack"));
        const Result<void> sent = send_bytes(control, key, bytes);
        ucp_rkey_buffer_release(key);
        HANARE_TRY(sent);
        return control.send_value(reinterpret_cast<uint64_t>(memory_.data()));
    }
    static std::unexpected<Error> not_here() {
        return fail(HANARE_STATUS_INTERNAL, "the target begins no operations");
    }
    Result<void> begin(const FabricCase&, size_t, FabricFlight&) override { return not_here(); }
    Result<void> end(const FabricCase&, size_t, FabricFlight&) override { return not_here(); }

    Worker worker_;
    std::vector<std::byte> memory_ = std::vector<std::byte>(kFabricRegionBytes);
    ucp_mem_h mapped_ = nullptr;
};

class UcxSource : public ComparedSystem {
public:
    ~UcxSource() override {
        if (key_ != nullptr) ucp_rkey_destroy(key_);
        if (endpoint_ == nullptr) return;
        ucp_request_param_t params = {};
        params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        params.flags = UCP_EP_CLOSE_FLAG_FORCE;  // the target does nothing any more
        (void)wait(ucp_ep_close_nbx(endpoint_, &params), "ucp_ep_close");
    }
    Result<void> open(Control& control) {
        HANARE_TRY(worker_.open());
        HANARE_TRY_ASSIGN(const std::vector<std::byte> address, receive_bytes(control));
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        params.address = reinterpret_cast<const ucp_address_t*>(address.data());
        HANARE_TRY(check(ucp_ep_create(worker_.get(), &params, &endpoint_), "ucp_ep_create"));
        HANARE_TRY_ASSIGN(const std::vector<std::byte> key, receive_bytes(control));
        HANARE_TRY(check(ucp_ep_rkey_unpack(endpoint_, key.data(), &key_), "ucp_ep_rkey_unpack"));
        HANARE_TRY_ASSIGN(base_, control.receive_value<uint64_t>());
        return {};
    }
    Result<double> run(const FabricCase& which, uint64_t seed) override {
        requests_.assign(which.depth, nullptr);
        return FlightSource::run(which, seed);
    }
    void progress() override { ucp_worker_progress(worker_.get()); }
    Result<void> get_alone(uint64_t offset, std::span<std::byte> data) override {
        const ucp_request_param_t params = {};
        return wait(ucp_get_nbx(endpoint_, data.data(), data.size(), base_ + offset, key_, &params),
                    "ucp_get");
    }

private:
    Result<void> begin(const FabricCase& which, size_t slot, FabricFlight& flight) override {
        ucp_request_param_t params = {};
        const uint64_t place = base_ + flight.offset;
        void* const data = flight.data.data();
        switch (which.action) {
            case FabricAction::kGet:
                requests_[slot] = ucp_get_nbx(endpoint_, data, which.bytes, place, key_, &params);
                break;
            case FabricAction::kPut:
                requests_[slot] = ucp_put_nbx(endpoint_, data, which.bytes, place, key_, &params);
                break;
            case FabricAction::kFetchAdd:
                params.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
                params.datatype = ucp_dt_make_contig(sizeof kOne);
                params.reply_buffer = &flight.value;
                requests_[slot] =
                    ucp_atomic_op_nbx(endpoint_, UCP_ATOMIC_OP_ADD, &kOne, 1, place, key_, &params);
                break;
        }
        return {};
    }
    // Of a put the library says only that its data may be changed; a flush, that it is there.
    Result<void> end(const FabricCase& which, size_t slot, FabricFlight&) override {
        HANARE_TRY(wait(requests_[slot], which.name));
        if (which.action != FabricAction::kPut) return {};
        const ucp_request_param_t params = {};
        return wait(ucp_ep_flush_nbx(endpoint_, &params), "ucp_ep_flush");
    }
    Result<void> wait(ucs_status_ptr_t request, const char* what) {
        if (!UCS_PTR_IS_PTR(request)) return check(UCS_PTR_STATUS(request), what);
        while (ucp_request_check_status(request) == UCS_INPROGRESS) progress();
        const ucs_status_t status = ucp_request_check_status(request);
        ucp_request_free(request);
        return check(status, what);
    }

    static constexpr uint64_t kOne = 1;
    Worker worker_;
    ucp_ep_h endpoint_ = nullptr;
    ucp_rkey_h key_ = nullptr;
    uint64_t base_ = 0;
    std::vector<ucs_status_ptr_t> requests_;
};

Result<void> serve(const std::string& name) {
    HANARE_TRY_ASSIGN(Control control, Control::connect(name));
    HANARE_TRY(enter_target_network());
    UcxTarget target;
    HANARE_TRY(target.open(control));
    return be_target(target, control);
}

Result<void> measure(const sys::FileDescriptor& listener) {
    HANARE_TRY_ASSIGN(Control control, Control::accept(listener));
    UcxSource source;
    HANARE_TRY(source.open(control));
    return be_source(source, control);
}

// Before the library has threads.
Result<void> take_part() {
    const std::string name = "@hanare-bench-ucx-" + std::to_string(getpid());
    HANARE_TRY_ASSIGN(sys::FileDescriptor listener, Control::listen(name));
    std::signal(SIGCHLD, SIG_IGN);  // nobody asks how it ended
    const pid_t child = fork();
    if (child < 0) return fail(HANARE_STATUS_NO_MEMORY, "cannot start another process");
    if (child == 0) {
        listener.close();
        return serve(name);
    }
    const Result<void> result = measure(listener);
    // It has noticed that we have closed the control socket.
    sys::FileDescriptor end;
    if (sys::open_process(child, end) == 0) sys::wait_until_readable(end.number(), -1, kEndMs);
    return result;
}

}  // namespace
}  // namespace hanare::bench

int main() { return hanare::bench::exit_status_of(hanare::bench::take_part()); }
