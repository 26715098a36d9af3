// SPDX-License-Identifier: Apache-2.0
#include "sys/other_memory.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "sys/memory.hpp"

namespace hanare::sys {
namespace {

TEST(OtherMemoryTest, AChildsMemoryIsItsOwn) {
    std::array<char, 8192> text;
    text.fill('a');
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        text.fill('b');
        if (write(ends[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    char byte = 0;
    ASSERT_EQ(read(ends[0], &byte, 1), 1);
    std::array<char, 8192> copy{};
    const auto address = reinterpret_cast<uint64_t>(text.data());
    const int error = read_other_memory(child, address, std::as_writable_bytes(std::span(copy)));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(ends[0]);
    close(ends[1]);
    if (error == EPERM || error == ENOSYS) GTEST_SKIP() << "process_vm_readv is not allowed here";
    ASSERT_EQ(error, 0);
    EXPECT_EQ(copy[0], 'b');
    EXPECT_EQ(copy.back(), 'b');
    EXPECT_EQ(read_other_memory(child, address, std::as_writable_bytes(std::span(copy))), ESRCH);
}

TEST(OtherMemoryTest, WhatIsNotThereCannotBeRead) {
    const Mapping memory = Mapping::reserve(8192, 4096).value();
    ASSERT_EQ(mprotect(memory.address() + 4096, 4096, PROT_NONE), 0);
    std::array<std::byte, 8192> copy;
    const auto address = reinterpret_cast<uint64_t>(memory.address());
    const int error = read_other_memory(getpid(), address, copy);
    if (error == EPERM || error == ENOSYS) GTEST_SKIP() << "process_vm_readv is not allowed here";
    EXPECT_EQ(error, EFAULT);
    EXPECT_EQ(read_other_memory(getpid(), address, std::span(copy).first(4096)), 0);
}

}  // namespace
}  // namespace hanare::sys
