// SPDX-License-Identifier: Apache-2.0
//
// hanare._native: pools of the C API, and regions of them as objects with Python's buffer protocol,
// which NumPy makes arrays of.  A region is freed when nothing refers to it any more, a pool when
// neither it nor a region of it is there.  What may take long is done without the interpreter's
// lock.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "grid.hpp"
#include "hanare/hanare.hpp"

namespace nb = nanobind;

namespace {

const void* pointer(uintptr_t address) { return reinterpret_cast<const void*>(address); }

nb::dict as_dict(const hanare_counters& counters) {
    nb::dict values;
#define HANARE_ADD(name, text) values[#name] = counters.name;
    HANARE_COUNTER_MAP(HANARE_ADD)
    HANARE_GAUGE_MAP(HANARE_ADD)
#undef HANARE_ADD
    return values;
}

// The end of an object, which may have much to free.
template <typename Object>
void give_back(std::optional<Object>& object) {
    const nb::gil_scoped_release release;
    object.reset();
}

class Memory {
public:
    explicit Memory(hanare::Region region) : region_(std::move(region)) {}
    Memory(Memory&& other) noexcept : region_(std::exchange(other.region_, std::nullopt)) {}
    Memory& operator=(Memory&&) = delete;
    ~Memory() {
        if (region_) give_back(region_);
    }

    void* data() const { return region_->data(); }
    size_t bytes() const { return region_->bytes(); }

private:
    std::optional<hanare::Region> region_;
};

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
    const auto* const memory = nb::inst_ptr<Memory>(self);
    return PyBuffer_FillInfo(view, self, memory->data(), static_cast<Py_ssize_t>(memory->bytes()),
                             0, flags);
}

PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

class Pool {
public:
    explicit Pool(const hanare::PoolOptions& options) : pool_(open(options)) {}

    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;
    ~Pool() { give_back(pool_); }

    Memory allocate(size_t bytes, uint64_t block_bytes) const {
        std::optional<hanare::Region> region;
        {
            const nb::gil_scoped_release release;
            region = pool_->allocate(bytes, block_bytes);
        }
        return Memory(std::move(*region));
    }
    void advise(uintptr_t address, size_t bytes, int advice) const {
        const nb::gil_scoped_release release;
        hanare::check(hanare_advise(pool_->handle(), pointer(address), bytes,
                                    static_cast<hanare_advice>(advice)));
    }
    void flush(uintptr_t address, size_t bytes) const {
        const nb::gil_scoped_release release;
        hanare::check(hanare_flush(pool_->handle(), pointer(address), bytes));
    }
    void pin(uintptr_t address, size_t bytes, bool writes) const {
        const nb::gil_scoped_release release;
        hanare::check(hanare_pin(pool_->handle(), pointer(address), bytes,
                                 writes ? HANARE_ACCESS_WRITE : HANARE_ACCESS_READ));
    }
    void unpin(uintptr_t address, size_t bytes) const {
        hanare::check(hanare_unpin(pool_->handle(), pointer(address), bytes));
    }
    nb::dict stats(uintptr_t address) const {
        return as_dict(hanare::detail::stats_of(pool_->handle(), pointer(address)));
    }

private:
    static hanare::Pool open(const hanare::PoolOptions& options) {
        const nb::gil_scoped_release release;
        return hanare::Pool(options);
    }

    std::optional<hanare::Pool> pool_;
};

// hanare.Error and those derived of it are Python's (_errors.py).
void translate(const std::exception_ptr& thrown, void*) {
    try {
        std::rethrow_exception(thrown);
    } catch (const hanare::Error& error) {
        try {
            const nb::object made = nb::module_::import_("hanare._errors")
                                        .attr("from_status")(hanare_status_name(error.status()),
                                                             std::string(error.what()));
            PyErr_SetObject(made.type().ptr(), made.ptr());
        } catch (nb::python_error& failure) {
            failure.restore();
        }
    }
}

}  // namespace

NB_MODULE(_native, module) {
    nb::register_exception_translator(translate);

    nb::class_<Memory>(module, "Memory", nb::type_slots(memory_slots))
        .def("__len__", &Memory::bytes);

    nb::class_<Pool>(module, "Pool")
        .def(
            "__init__",
            [](Pool* self, uint64_t local_bytes, std::string store, uint64_t block_bytes,
               std::string engine, uint32_t read_ahead_blocks, std::string replacement,
               std::string background, bool allow_tmpfs, bool syscalls) {
                new (self) Pool({.local_bytes = local_bytes,
                                 .store = std::move(store),
                                 .block_bytes = block_bytes,
                                 .engine = std::move(engine),
                                 .read_ahead_blocks = read_ahead_blocks,
                                 .allow_tmpfs = allow_tmpfs,
                                 .replacement = std::move(replacement),
                                 .background = std::move(background),
                                 .syscalls = syscalls});
            },
            nb::arg("local_bytes"), nb::arg("store"), nb::arg("block_bytes"), nb::arg("engine"),
            nb::arg("read_ahead_blocks"), nb::arg("replacement"), nb::arg("background"),
            nb::arg("allow_tmpfs"), nb::arg("syscalls"))
        .def("allocate", &Pool::allocate, nb::arg("bytes"), nb::arg("block_bytes"))
        .def("advise", &Pool::advise, nb::arg("address"), nb::arg("bytes"), nb::arg("advice"))
        .def("flush", &Pool::flush, nb::arg("address"), nb::arg("bytes"))
        .def("pin", &Pool::pin, nb::arg("address"), nb::arg("bytes"), nb::arg("writes"))
        .def("unpin", &Pool::unpin, nb::arg("address"), nb::arg("bytes"))
        .def("stats", &Pool::stats, nb::arg("address"));

    define_grids(module);

    module.attr("READ_AHEAD_OFF") = HANARE_READ_AHEAD_OFF;
    nb::dict advices;
    advices["normal"] = static_cast<int>(HANARE_ADVICE_NORMAL);
    advices["sequential"] = static_cast<int>(HANARE_ADVICE_SEQUENTIAL);
    advices["random"] = static_cast<int>(HANARE_ADVICE_RANDOM);
    advices["willneed"] = static_cast<int>(HANARE_ADVICE_WILLNEED);
    advices["dontneed"] = static_cast<int>(HANARE_ADVICE_DONTNEED);
    advices["discard"] = static_cast<int>(HANARE_ADVICE_DISCARD);
    module.attr("ADVICES") = advices;

    module.def("version", &hanare_version);
    module.def("catch_system_calls", [] { hanare::check(hanare_catch_system_calls()); });
}
