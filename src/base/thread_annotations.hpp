// SPDX-License-Identifier: Apache-2.0
//
// Clang thread-safety attributes; nothing under other compilers.
#pragma once

#if defined(__clang__)
#define HANARE_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define HANARE_THREAD_ATTRIBUTE(x)
#endif

#define HANARE_CAPABILITY(name) HANARE_THREAD_ATTRIBUTE(capability(name))
#define HANARE_SCOPED_CAPABILITY HANARE_THREAD_ATTRIBUTE(scoped_lockable)
#define HANARE_GUARDED_BY(lock) HANARE_THREAD_ATTRIBUTE(guarded_by(lock))
#define HANARE_REQUIRES(...) HANARE_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define HANARE_EXCLUDES(...) HANARE_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define HANARE_ACQUIRE(...) HANARE_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define HANARE_TRY_ACQUIRE(...) HANARE_THREAD_ATTRIBUTE(try_acquire_capability(__VA_ARGS__))
#define HANARE_RELEASE(...) HANARE_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define HANARE_NO_THREAD_SAFETY_ANALYSIS HANARE_THREAD_ATTRIBUTE(no_thread_safety_analysis)
