/* SPDX-License-Identifier: Apache-2.0
 *
 * Visibility of the public symbols; everything else in libhanare is hidden.
 */
#ifndef HANARE_EXPORT_H
#define HANARE_EXPORT_H

#if defined(__GNUC__)
#define HANARE_API __attribute__((visibility("default")))
#else
#define HANARE_API
#endif

#endif
