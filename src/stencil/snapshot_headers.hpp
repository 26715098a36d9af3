// SPDX-License-Identifier: Apache-2.0
//
// What files of snapshots begin with: everything but the values, which follow without gaps.  Both
// formats are written without a library: of HDF5 only contiguous data sets are needed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hanare::stencil {

// NumPy's format 1.0 (numpy.lib.format): an array in C order.
std::string npy_header(uint32_t element_bytes, const std::vector<uint64_t>& shape);

// HDF5, superblock version 0 ("HDF5 File Format Specification", II.A): the root group has
// "snapshots", of that shape, whose values begin behind the header, and "steps", with these values.
std::string hdf5_header(uint32_t element_bytes, const std::vector<uint64_t>& shape,
                        const std::vector<uint64_t>& steps);

}  // namespace hanare::stencil
