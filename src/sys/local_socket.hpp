// SPDX-License-Identifier: Apache-2.0
//
// Stream sockets between processes of one user on this machine, but where others are asked for.  An
// address is the path of a socket file, or a name after '@' that needs no file.  Peers of other
// users are refused on both ends.  All descriptors are non-blocking.  Any thread.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "sys/file.hpp"

namespace hanare::sys {

// Whether nobody else may enter the directory, which is this user's.
bool is_private_directory(const std::string& path);

// Such a directory; it is made where it is missing.
Result<void> make_private_directory(const std::string& path);

// A file of that name is replaced; while there is one, somebody listens or has been killed.
Result<FileDescriptor> listen_local(const std::string& address);

// Not open when nobody of this user waits.
enum class LocalPeers { kThisUser, kAnyUser };
FileDescriptor accept_local(const FileDescriptor& listener,
                            LocalPeers peers = LocalPeers::kThisUser);

// Of `user`, who listens there.  `os_errno` is ECONNREFUSED when nobody listens any more, EAGAIN
// when too many wait.
Result<FileDescriptor> connect_local(const std::string& address, uid_t user = geteuid());

// Two that are connected.
Result<std::array<FileDescriptor, 2>> local_pair();

// Addresses without a file ("@name") whose name begins with the prefix.
std::vector<std::string> nameless_addresses(std::string_view prefix);

// Reads until the other side closes or the time is over, what comes after `bytes_max` is dropped.
// Nothing but what came before the end of the other side counts.
Result<std::string> read_answer(const FileDescriptor& socket, size_t bytes_max, int timeout_ms);

// As much as can be sent at once; without SIGPIPE.  Returns how much, or -1 when that is over.
ptrdiff_t send_some(const FileDescriptor& socket, std::string_view text) noexcept;

// The other side sees that this one has closed; what it sends still comes.
void end_sending(const FileDescriptor& socket) noexcept;

// Whether the other side has closed, whatever it has sent before.
bool is_abandoned(const FileDescriptor& socket) noexcept;

// As much as is there.  Nothing yet: -1 and EAGAIN in errno; 0: the other side has closed.
ptrdiff_t receive_some(const FileDescriptor& socket, char* text, size_t bytes) noexcept;

}  // namespace hanare::sys
