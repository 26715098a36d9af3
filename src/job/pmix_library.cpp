// SPDX-License-Identifier: Apache-2.0
#include "job/pmix_library.hpp"

#include <dlfcn.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>

#include "sys/signal.hpp"

namespace hanare::job {
namespace {

constexpr const char* kName = "libpmix.so.2";

// Of the PMIx standard.
constexpr int kSuccess = 0;
constexpr int kSucceededAtOnce = -157;  // there will be no call back
constexpr uint8_t kToAll = 3;
constexpr uint32_t kWholeJob = UINT32_MAX - 1;
constexpr uint16_t kBool = 1;
constexpr uint16_t kUint32 = 14;
constexpr uint16_t kByteObject = 27;
constexpr const char* kCollect = "pmix.collect";

template <typename Function>
bool find_function(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    return function != nullptr;
}

}  // namespace

// What the library's thread brings, perhaps when nobody waits for it any more.
struct PmixLibrary::Answer {
    bool is_there = false;
    int status = kSuccess;
    uint16_t type = 0;
    uint32_t number = 0;
    std::vector<std::byte> bytes = {};
};

namespace {

template <typename Answer>
struct Waiting {
    std::mutex lock;
    std::condition_variable changed;
    Answer answer;  // under the lock

    // One reference for who waits, one for who calls back.
    static std::shared_ptr<Waiting>* reference(const std::shared_ptr<Waiting>& waiting) {
        return new std::shared_ptr<Waiting>(waiting);
    }
    static void bring(void* context, Answer answer) {
        const std::unique_ptr<std::shared_ptr<Waiting>> reference(
            static_cast<std::shared_ptr<Waiting>*>(context));
        Waiting& waiting = **reference;
        const std::lock_guard<std::mutex> guard(waiting.lock);
        answer.is_there = true;
        waiting.answer = std::move(answer);
        waiting.changed.notify_all();
    }
    bool wait(const Deadline& deadline) {
        std::unique_lock<std::mutex> guard(lock);
        const auto is_there = [this] { return answer.is_there; };
        const int left_ms = deadline.left_ms();
        if (left_ms < 0) {
            changed.wait(guard, is_there);
            return true;
        }
        return changed.wait_for(guard, std::chrono::milliseconds(left_ms), is_there);
    }
};

}  // namespace

Result<PmixLibrary> PmixLibrary::load() {
    void* const library = dlopen(kName, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return fail(HANARE_STATUS_NOT_SUPPORTED,
                    "PMIX_RANK is set, and %s cannot be loaded (%.120s); Debian has it in libpmix2",
                    kName, dlerror());
    }
    Functions functions = {};
    const bool has_all = find_function(library, "PMIx_Init", functions.init) &&
                         find_function(library, "PMIx_Finalize", functions.finalize) &&
                         find_function(library, "PMIx_Put", functions.put) &&
                         find_function(library, "PMIx_Commit", functions.commit) &&
                         find_function(library, "PMIx_Fence_nb", functions.fence) &&
                         find_function(library, "PMIx_Get_nb", functions.get) &&
                         find_function(library, "PMIx_Error_string", functions.error_text);
    if (has_all) return PmixLibrary(functions);
    return fail(HANARE_STATUS_NOT_SUPPORTED, "%s lacks functions of PMIx", kName);
}

std::unexpected<Error> PmixLibrary::failed(const char* what, int status, hanare_status as) const {
    return fail(as, "PMIx: %s: %.100s (%d)", what, functions_.error_text(status), status);
}

Result<PmixLibrary::Process> PmixLibrary::init() {
    Process own = {};
    // Its threads take none of the program's signals.
    const sys::SignalBlock blocked;
    const int status = functions_.init(&own, nullptr, 0);
    if (status == kSuccess) return own;
    return failed("the launcher is not to be reached", status);
}

void PmixLibrary::finalize() { (void)functions_.finalize(nullptr, 0); }

Result<void> PmixLibrary::put(const std::string& key, std::span<const std::byte> bytes) {
    // Putting does not write.
    Value value = {.type = kByteObject, .data = {}};
    value.data.object = {reinterpret_cast<char*>(const_cast<std::byte*>(bytes.data())),
                         bytes.size()};
    if (const int status = functions_.put(kToAll, key.c_str(), &value); status != kSuccess) {
        return failed("a value is not taken", status);
    }
    return {};
}

void PmixLibrary::on_done(int status, void* context) {
    Waiting<Answer>::bring(context, {.status = status});
}

void PmixLibrary::on_found(int status, Value* value, void* context) {
    Answer answer = {.status = status};
    if (status == kSuccess && value != nullptr) {
        answer.type = value->type;
        if (value->type == kUint32) answer.number = value->data.number;
        if (value->type == kByteObject) {
            const auto* const begin = reinterpret_cast<const std::byte*>(value->data.object.bytes);
            answer.bytes.assign(begin, begin + value->data.object.size);
        }
    }
    Waiting<Answer>::bring(context, std::move(answer));
}

Result<void> PmixLibrary::exchange(const Process& own, const Deadline& deadline) {
    if (const int status = functions_.commit(); status != kSuccess) {
        return failed("values are not taken", status);
    }
    Process all = own;
    all.rank = kWholeJob;
    Information collect = {};
    std::strcpy(collect.key, kCollect);
    collect.value.type = kBool;
    collect.value.data.flag = true;
    const auto waiting = std::make_shared<Waiting<Answer>>();
    auto* const reference = Waiting<Answer>::reference(waiting);
    const int status = functions_.fence(&all, 1, &collect, 1, on_done, reference);
    if (status != kSuccess) delete reference;
    if (status == kSucceededAtOnce) return {};
    if (status != kSuccess)
        return failed("the tasks do not come together", status, HANARE_STATUS_PEER_LOST);
    if (!waiting->wait(deadline)) {
        return fail(HANARE_STATUS_TIMEOUT, "PMIx: the tasks do not come together in time");
    }
    if (waiting->answer.status == kSuccess) return {};
    return failed("the tasks do not come together", waiting->answer.status,
                  HANARE_STATUS_PEER_LOST);
}

Result<PmixLibrary::Answer> PmixLibrary::find(const Process& process, const std::string& key,
                                              const Deadline& deadline) {
    const auto waiting = std::make_shared<Waiting<Answer>>();
    auto* const reference = Waiting<Answer>::reference(waiting);
    const int status = functions_.get(&process, key.c_str(), nullptr, 0, on_found, reference);
    if (status != kSuccess) {
        delete reference;
        return failed("a value is not to be had", status);
    }
    if (!waiting->wait(deadline)) {
        return fail(HANARE_STATUS_TIMEOUT, "PMIx: %.60s of task %u does not come in time",
                    key.c_str(), process.rank);
    }
    if (waiting->answer.status == kSuccess) return std::move(waiting->answer);
    return failed("a value is not to be had", waiting->answer.status);
}

Result<std::vector<std::byte>> PmixLibrary::get(const Process& process, const std::string& key,
                                                const Deadline& deadline) {
    HANARE_TRY_ASSIGN(Answer answer, find(process, key, deadline));
    if (answer.type == kByteObject) return std::move(answer.bytes);
    return fail(HANARE_STATUS_CORRUPT, "PMIx: %.60s of task %u is not what it was", key.c_str(),
                process.rank);
}

Result<uint32_t> PmixLibrary::job_number(const Process& own, const char* key,
                                         const Deadline& deadline) {
    Process job = own;
    job.rank = kWholeJob;
    HANARE_TRY_ASSIGN(const Answer answer, find(job, key, deadline));
    if (answer.type == kUint32) return answer.number;
    return fail(HANARE_STATUS_CORRUPT, "PMIx: %s is not a number", key);
}

}  // namespace hanare::job
