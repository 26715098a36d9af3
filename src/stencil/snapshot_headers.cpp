// SPDX-License-Identifier: Apache-2.0
#include "stencil/snapshot_headers.hpp"

namespace hanare::stencil {

namespace {

constexpr size_t kAlignment = 64;
constexpr uint64_t kUndefined = ~uint64_t{0};

// Little-endian, as both formats have it here.
class Bytes {
public:
    Bytes& number(uint64_t value, size_t bytes) {
        for (size_t i = 0; i < bytes; ++i) text_.push_back(static_cast<char>(value >> (8 * i)));
        return *this;
    }
    Bytes& byte(uint64_t value) { return number(value, 1); }
    Bytes& word(uint64_t value) { return number(value, 8); }
    Bytes& text(const std::string& value) {
        text_ += value;
        return *this;
    }
    Bytes& zeros(size_t bytes) {
        text_.append(bytes, '\0');
        return *this;
    }
    Bytes& pad_to(size_t offset) { return zeros(offset - text_.size()); }
    size_t size() const { return text_.size(); }
    const std::string& all() const { return text_; }

private:
    std::string text_;
};

std::string message(uint64_t type, const std::string& body) {
    Bytes bytes;
    const size_t padded = (body.size() + 7) / 8 * 8;
    bytes.number(type, 2).number(padded, 2).byte(0).zeros(3).text(body).zeros(padded - body.size());
    return bytes.all();
}

std::string dataspace(const std::vector<uint64_t>& shape) {
    Bytes bytes;
    bytes.byte(1).byte(shape.size()).byte(0).zeros(5);
    for (const uint64_t cells : shape) bytes.word(cells);
    return bytes.all();
}

std::string float_type(uint32_t element_bytes) {
    const bool is_double = element_bytes == 8;
    Bytes bytes;
    bytes.byte(0x11).byte(0x20).byte(is_double ? 63 : 31).byte(0).number(element_bytes, 4);
    bytes.number(0, 2).number(8u * element_bytes, 2);
    bytes.byte(is_double ? 52 : 23).byte(is_double ? 11 : 8);  // exponent: where, how long
    bytes.byte(0).byte(is_double ? 52 : 23);                   // mantissa
    bytes.number(is_double ? 1023 : 127, 4);
    return bytes.all();
}

std::string integer_type() {
    Bytes bytes;
    bytes.byte(0x10).zeros(3).number(8, 4).number(0, 2).number(64, 2);
    return bytes.all();
}

std::string contiguous_layout(uint64_t address, uint64_t length) {
    Bytes bytes;
    bytes.byte(3).byte(1).word(address).word(length);
    return bytes.all();
}

// Space is allocated when the set is made, and never filled.
std::string fill_value() {
    Bytes bytes;
    bytes.byte(2).byte(1).byte(1).byte(0);
    return bytes.all();
}

std::string object(const std::vector<std::string>& messages) {
    std::string all;
    for (const std::string& each : messages) all += each;
    Bytes bytes;
    bytes.byte(1).byte(0).number(messages.size(), 2).number(1, 4).number(all.size(), 4).zeros(4);
    return bytes.text(all).all();
}

std::string data_set(const std::string& type, const std::vector<uint64_t>& shape, uint64_t address,
                     uint64_t length) {
    return object({message(1, dataspace(shape)), message(3, type), message(5, fill_value()),
                   message(8, contiguous_layout(address, length))});
}

uint64_t product(const std::vector<uint64_t>& shape) {
    uint64_t all = 1;
    for (const uint64_t each : shape) all *= each;
    return all;
}

// Names of the root group's objects: offsets in its heap.
constexpr uint64_t kSnapshotsName = 8;
constexpr uint64_t kStepsName = 24;
constexpr uint64_t kHeapBytes = 40;
constexpr uint64_t kRootAddress = 96;
constexpr uint64_t kTreeAddress = 160;
constexpr uint64_t kTreeBytes = 24 + 33 * 8 + 32 * 8;  // for the default K of 16
constexpr uint64_t kHeapAddress = kTreeAddress + kTreeBytes;
constexpr uint64_t kNodeAddress = kHeapAddress + 32 + kHeapBytes;
constexpr uint64_t kNodeBytes = 8 + 8 * 40;  // for the default K of 4
constexpr uint64_t kSetsAddress = kNodeAddress + kNodeBytes;

std::string superblock(uint64_t file_bytes) {
    Bytes bytes;
    bytes.text(std::string("\x89HDF\r\n\x1a\n", 8)).zeros(5).byte(8).byte(8).byte(0);
    bytes.number(4, 2).number(16, 2).number(0, 4);
    bytes.word(0).word(kUndefined).word(file_bytes).word(kUndefined);
    bytes.word(0).word(kRootAddress).number(1, 4).zeros(4).word(kTreeAddress).word(kHeapAddress);
    return bytes.all();
}

std::string group(uint64_t snapshots_address, uint64_t steps_address) {
    Bytes bytes;
    Bytes table;
    table.word(kTreeAddress).word(kHeapAddress);
    bytes.text(object({message(0x11, table.all())})).pad_to(kTreeAddress - kRootAddress);
    bytes.text("TREE").byte(0).byte(0).number(1, 2).word(kUndefined).word(kUndefined);
    bytes.word(0).word(kNodeAddress).word(kStepsName).pad_to(kHeapAddress - kRootAddress);
    bytes.text("HEAP").zeros(4).word(kHeapBytes).word(1).word(kHeapAddress + 32);
    bytes.zeros(kSnapshotsName).text("snapshots").pad_to(bytes.size() + 7);
    bytes.text("steps").pad_to(kNodeAddress - kRootAddress);
    bytes.text("SNOD").byte(1).byte(0).number(2, 2);
    bytes.word(kSnapshotsName).word(snapshots_address).number(0, 4).zeros(4).zeros(16);
    bytes.word(kStepsName).word(steps_address).number(0, 4).zeros(4).zeros(16);
    bytes.pad_to(kSetsAddress - kRootAddress);
    return bytes.all();
}

}  // namespace

std::string npy_header(uint32_t element_bytes, const std::vector<uint64_t>& shape) {
    std::string text =
        "{'descr': '<f" + std::to_string(element_bytes) + "', 'fortran_order': False, 'shape': (";
    for (const uint64_t cells : shape) text += std::to_string(cells) + ", ";
    text += "), }";
    Bytes bytes;
    const size_t before = 10;
    const size_t all = (before + text.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
    text.append(all - before - text.size() - 1, ' ');
    bytes.text("\x93NUMPY").byte(1).byte(0).number(text.size() + 1, 2).text(text).text("\n");
    return bytes.all();
}

std::string hdf5_header(uint32_t element_bytes, const std::vector<uint64_t>& shape,
                        const std::vector<uint64_t>& steps) {
    const uint64_t data_bytes = product(shape) * element_bytes;
    const std::string type = float_type(element_bytes);
    // Sizes do not depend on the addresses.
    const uint64_t set_bytes = data_set(type, shape, 0, 0).size();
    const uint64_t steps_set = kSetsAddress + set_bytes;
    const uint64_t steps_bytes = steps.size() * 8;
    const uint64_t steps_address =
        steps_set + data_set(integer_type(), {steps.size()}, 0, 0).size();
    const uint64_t data_address =
        (steps_address + steps_bytes + kAlignment - 1) / kAlignment * kAlignment;
    Bytes bytes;
    bytes.text(superblock(data_address + data_bytes)).text(group(kSetsAddress, steps_set));
    bytes.text(data_set(type, shape, data_address, data_bytes));
    bytes.text(data_set(integer_type(), {steps.size()}, steps_address, steps_bytes));
    for (const uint64_t step : steps) bytes.word(step);
    bytes.pad_to(data_address);
    return bytes.all();
}

}  // namespace hanare::stencil
