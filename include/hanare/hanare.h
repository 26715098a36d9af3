/* SPDX-License-Identifier: Apache-2.0
 *
 * Everything of the public C API.
 */
#ifndef HANARE_HANARE_H
#define HANARE_HANARE_H

#include "hanare/comm.h"
#include "hanare/dsm.h"
#include "hanare/pool.h"
#include "hanare/space.h"
#include "hanare/stats.h"
#include "hanare/status.h"
#include "hanare/stencil.h"

#endif
