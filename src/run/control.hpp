// SPDX-License-Identifier: Apache-2.0
//
// The control socket (src/control) of a program under `hanare run`: made when memory is adopted,
// and served by the attendant.  A program that needs no far memory has none.
#pragma once

namespace hanare::run {

// The program is to have one.  Before it begins; does nothing but remember.
void want_control() noexcept;

// Makes the socket, if one is wanted: the descriptor that is readable when there is something to
// serve, or -1.  Once, by the attendant, as what follows.
int offer_control() noexcept;
void serve_control() noexcept;

// In the child of a fork, which has no attendant.  Async-signal-safe.
void abandon_control_in_child() noexcept;

}  // namespace hanare::run
