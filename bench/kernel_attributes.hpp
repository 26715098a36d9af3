// SPDX-License-Identifier: Apache-2.0
//
// HANARE_KERNEL: a function compiled for several vector widths, chosen when the program starts.
// Kernels take plain pointers, so that every system is measured with identical machine code.
// Sanitizers instrument what the loader runs before they are ready, so there is one version then.
#pragma once

#include "base/sanitizers.hpp"

#if defined(HANARE_ASAN) || defined(HANARE_TSAN)
#define HANARE_KERNEL [[gnu::noinline]]
#else
#define HANARE_KERNEL [[gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
#endif
