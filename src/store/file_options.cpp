// SPDX-License-Identifier: Apache-2.0
#include "store/file_options.hpp"

namespace hanare::store {

FileStoreOptions file_options(const config::StoreSpec& spec, const config::Options& options) {
    FileStoreOptions result;
    result.directory = spec.directory;
    result.size_bytes = spec.size_bytes;
    result.allow_tmpfs = options.allow_tmpfs;
    result.use_direct = options.use_direct;
    result.use_uring = options.io != config::Io::kSync;
    result.need_uring = options.io == config::Io::kUring;
    return result;
}

}  // namespace hanare::store
