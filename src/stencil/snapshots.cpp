// SPDX-License-Identifier: Apache-2.0
#include "stencil/snapshots.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

#include "base/units.hpp"
#include "stencil/snapshot_headers.hpp"
#include "sys/signal.hpp"

namespace hanare::stencil {

Result<std::unique_ptr<SnapshotWriter>> SnapshotWriter::open(const SnapshotOptions& options,
                                                             const Geometry& geometry,
                                                             const SnapshotSteps& steps) {
    std::unique_ptr<SnapshotWriter> writer(new SnapshotWriter(options, geometry, steps));
    if (!options.path.empty()) HANARE_TRY(writer->create_file());
    const sys::SignalBlockButFaults block;  // the thread inherits it
    writer->thread_ = std::thread([self = writer.get()] { self->work(); });
    return writer;
}

SnapshotWriter::SnapshotWriter(const SnapshotOptions& options, const Geometry& geometry,
                               const SnapshotSteps& steps)
    : options_(options), geometry_(geometry), steps_(steps) {}

SnapshotWriter::~SnapshotWriter() {
    if (thread_.joinable()) {
        {
            const std::lock_guard guard(lock_);
            is_over_ = true;
        }
        changed_.notify_all();
        thread_.join();
    }
    if (file_.is_open() && !is_kept_) unlink(options_.path.c_str());
}

Result<void> SnapshotWriter::create_file() {
    const std::string& path = options_.path;
    std::vector<uint64_t> shape = {steps_.count};
    for (uint32_t axis = 0; axis < geometry_.shape().dimensions; ++axis) {
        shape.push_back(geometry_.shape().cells[axis]);
    }
    std::string header;
    if (path.ends_with(".npy")) {
        header = npy_header(geometry_.shape().element_bytes, shape);
    } else if (path.ends_with(".h5") || path.ends_with(".hdf5")) {
        std::vector<uint64_t> numbers;
        for (uint64_t i = 0; i < steps_.count; ++i) numbers.push_back(steps_.step(i));
        header = hdf5_header(geometry_.shape().element_bytes, shape, numbers);
    } else {
        return fail(HANARE_STATUS_INVALID_ARGUMENT,
                    "snapshots: %.150s ends with none of .npy, .h5 and .hdf5", path.c_str());
    }
    data_offset_ = header.size();
    const uint64_t bytes =
        data_offset_ + steps_.count * geometry_.cell_count() * geometry_.shape().element_bytes;
    HANARE_TRY(sys::check_file_bytes("a file of snapshots", bytes));
    const int number =
        sys::above_standard(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (number < 0) {
        const bool is_there = errno == EEXIST;
        return fail_errno(is_there ? HANARE_STATUS_BUSY : HANARE_STATUS_STORE_UNAVAILABLE, errno,
                          "snapshots: %.150s", path.c_str());
    }
    file_ = sys::FileDescriptor(number);
    int error = sys::preallocate(number, 0, bytes);
    if (error == EOPNOTSUPP) error = sys::set_length(number, bytes);
    if (error == 0) {
        error = sys::write_at(number, 0, reinterpret_cast<const std::byte*>(header.data()),
                              header.size());
    }
    if (error == 0) return {};
    return fail_errno(error == ENOSPC ? HANARE_STATUS_STORE_FULL : HANARE_STATUS_STORE_UNAVAILABLE,
                      error, "snapshots: %s for %.150s", format_size(bytes).c_str(), path.c_str());
}

void SnapshotWriter::put(const Plane& plane) {
    is_kept_ = true;
    {
        const std::lock_guard guard(lock_);
        planes_.push_back(plane);
    }
    changed_.notify_all();
}

Result<void> SnapshotWriter::wait() {
    std::unique_lock guard(lock_);
    changed_.wait(guard, [&] { return planes_.empty() && !is_writing_; });
    return result_;
}

Result<void> SnapshotWriter::write(const Plane& plane) {
    const size_t bytes = geometry_.packed_plane_bytes();
    if (file_.is_open()) {
        const uint64_t number =
            steps_.number(plane.step) * static_cast<uint64_t>(geometry_.planes()) +
            static_cast<uint64_t>(plane.plane);
        const int error =
            sys::write_at(file_.number(), data_offset_ + number * bytes, plane.cells, bytes);
        if (error != 0) {
            return fail_errno(error == ENOSPC || error == EFBIG ? HANARE_STATUS_STORE_FULL
                                                                : HANARE_STATUS_STORE_IO,
                              error, "snapshots: %.150s", options_.path.c_str());
        }
        bytes_ += bytes;
    }
    if (options_.function != nullptr &&
        options_.function(plane.step, static_cast<uint64_t>(plane.plane), plane.cells,
                          options_.user) != 0) {
        return fail(HANARE_STATUS_STORE_IO, "the function for snapshots has refused plane %lld",
                    static_cast<long long>(plane.plane));
    }
    return {};
}

void SnapshotWriter::work() {
    std::unique_lock guard(lock_);
    for (;;) {
        changed_.wait(guard, [&] { return is_over_ || !planes_.empty(); });
        if (planes_.empty()) return;
        const Plane plane = planes_.front();
        planes_.pop_front();
        if (!result_) continue;  // what follows an error is dropped
        is_writing_ = true;
        guard.unlock();
        const Result<void> written = write(plane);
        guard.lock();
        is_writing_ = false;
        if (!written) result_ = written;
        if (planes_.empty()) changed_.notify_all();
    }
}

}  // namespace hanare::stencil
