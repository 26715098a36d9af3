// SPDX-License-Identifier: Apache-2.0
//
// System calls and far memory: a system call that is given absent memory fails with EFAULT, so the
// buffer is pinned while the call runs.
//
//     copy_file FROM TO      reads the whole file into far memory, then writes it out again
#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <hanare/hanare.hpp>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

constexpr size_t kChunkBytes = 1u << 20;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open(const char* path, const char* mode) {
    File file(std::fopen(path, mode), std::fclose);
    if (!file) throw std::runtime_error(std::string("cannot open ") + path);
    // Without a buffer of its own, stdio hands the address to read(2) and write(2).
    std::setvbuf(file.get(), nullptr, _IONBF, 0);
    return file;
}

void copy(const char* from, const char* to) {
    const size_t bytes = std::filesystem::file_size(from);
    const hanare::Pool pool({.local_bytes = 8u << 20});
    auto content = pool.array<char>(bytes);

    const File in = open(from, "rb");
    for (size_t i = 0; i < bytes; i += kChunkBytes) {
        const size_t count = std::min(kChunkBytes, bytes - i);
        const hanare::Pin pin = content.pin(i, count, hanare::Access::kWrite);
        if (std::fread(&content[i], 1, count, in.get()) != count) {
            throw std::runtime_error(std::string("cannot read ") + from);
        }
    }
    const File out = open(to, "wb");
    for (size_t i = 0; i < bytes; i += kChunkBytes) {
        const size_t count = std::min(kChunkBytes, bytes - i);
        const hanare::Pin pin = content.pin(i, count, hanare::Access::kRead);
        if (std::fwrite(&content[i], 1, count, out.get()) != count) {
            throw std::runtime_error(std::string("cannot write ") + to);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: copy_file FROM TO\n");
        return 2;
    }
    try {
        copy(argv[1], argv[2]);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "copy_file: %s\n", error.what());
        return 1;
    }
    return 0;
}
