// SPDX-License-Identifier: Apache-2.0
//
// PmixLibrary: the few functions of libpmix.so.2 that a job needs, loaded when a launcher that
// serves PMIx has started this task, so that nothing else depends on it.  The layouts are those of
// the PMIx standard, versions 3 to 5.  Its own thread calls back; calls here wait for that.
//
// By one thread at a time; once in a process, and never unloaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "job/deadline.hpp"

namespace hanare::job {

class PmixLibrary {
public:
    // NOT_SUPPORTED when there is no such library.
    static Result<PmixLibrary> load();

    // This task's process, as the launcher calls it.
    struct Process {
        char space[256];
        uint32_t rank;
    };
    Result<Process> init();
    void finalize();

    Result<void> put(const std::string& key, std::span<const std::byte> bytes);
    // What was put, to all others, together with them.
    Result<void> exchange(const Process& own, const Deadline& deadline);
    // What the process has put; of what the launcher says of the whole job see job_number().
    Result<std::vector<std::byte>> get(const Process& process, const std::string& key,
                                       const Deadline& deadline);
    Result<uint32_t> job_number(const Process& own, const char* key, const Deadline& deadline);

    static constexpr const char* kJobSize = "pmix.job.size";
    static constexpr const char* kLocalSize = "pmix.local.size";

private:
    struct ByteObject {
        char* bytes;
        size_t size;
    };
    struct Value {
        uint16_t type;
        union {
            bool flag;
            uint32_t number;
            ByteObject object;
            void* longest[3];
        } data;
    };
    static_assert(sizeof(Value) == 32);
    struct Information {
        char key[512];
        uint32_t flags;
        Value value;
    };
    static_assert(sizeof(Information) == 552);
    struct Answer;
    using Done = void (*)(int status, void* context);
    using Found = void (*)(int status, Value* value, void* context);
    struct Functions {
        int (*init)(Process*, Information*, size_t);
        int (*finalize)(const Information*, size_t);
        int (*put)(uint8_t scope, const char* key, Value*);
        int (*commit)();
        int (*fence)(const Process*, size_t, const Information*, size_t, Done, void*);
        int (*get)(const Process*, const char* key, const Information*, size_t, Found, void*);
        const char* (*error_text)(int status);
    };

    explicit PmixLibrary(const Functions& functions) : functions_(functions) {}
    static void on_done(int status, void* context);
    static void on_found(int status, Value* value, void* context);
    std::unexpected<Error> failed(const char* what, int status,
                                  hanare_status as = HANARE_STATUS_SYSTEM) const;
    Result<Answer> find(const Process& process, const std::string& key, const Deadline& deadline);

    Functions functions_;
};

}  // namespace hanare::job
