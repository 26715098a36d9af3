// SPDX-License-Identifier: Apache-2.0
//
// Names and texts of statuses: public functions, here because every layer's messages use them.
#include "hanare/status.h"

extern "C" {

const char* hanare_status_name(hanare_status status) {
    switch (status) {
#define HANARE_CASE(name, value, text) \
    case HANARE_STATUS_##name: return #name;
        HANARE_STATUS_MAP(HANARE_CASE)
#undef HANARE_CASE
    }
    return "UNKNOWN";
}

const char* hanare_status_text(hanare_status status) {
    switch (status) {
#define HANARE_CASE(name, value, text) \
    case HANARE_STATUS_##name: return text;
        HANARE_STATUS_MAP(HANARE_CASE)
#undef HANARE_CASE
    }
    return "not a status of this library";
}

}  // extern "C"
