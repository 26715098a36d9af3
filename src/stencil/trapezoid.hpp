// SPDX-License-Identifier: Apache-2.0
//
// The paper's scheme, for comparison (sections 2.2, 3.2 and 4).
#pragma once
