// SPDX-License-Identifier: Apache-2.0
//
// HANARE_KERNEL: a function compiled for several vector widths, chosen when the program starts.
// Kernels take plain pointers, so that every system is measured with identical machine code.
// Sanitizers instrument what the loader runs before they are ready, so there is one version then.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HANARE_KERNEL [[gnu::noinline]]
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HANARE_KERNEL [[gnu::noinline]]
#endif
#endif

#ifndef HANARE_KERNEL
#define HANARE_KERNEL [[gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
#endif
