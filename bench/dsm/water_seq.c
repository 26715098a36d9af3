// SPDX-License-Identifier: Apache-2.0
//
// Water, sequential.
#include "water.h"

void water_allocate(struct water_part *part) {
    const size_t count = (size_t)part->water->molecules;
    part->positions = dsm_allocate(count, sizeof(molecule));
    part->forces = dsm_allocate(count, sizeof(molecule));
}

void water_share_positions(struct water_part *part) { (void)part; }

void water_share_forces(struct water_part *part) {
    memcpy(part->forces, part->pair_forces, (size_t)part->water->molecules * sizeof(molecule));
}

void water_collect(struct water_part *part) { (void)part; }
