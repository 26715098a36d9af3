// SPDX-License-Identifier: Apache-2.0
//
// UcxLibrary: the functions of libucp.so.0 that the engine needs, loaded when it is first wanted,
// so that nothing else depends on it.  It is kept from what it would do to the process by itself:
// handlers for SIGSEGV, SIGBUS and others, hooks in mmap and its kin, lines on standard output.
//
// Included by ucx_*.cpp only.
#pragma once

#include <ucp/api/ucp.h>

#include "base/result.hpp"

namespace hanare::fabric {

struct UcxLibrary {
    // Once in a process; never unloaded.  Changes the environment for a moment: other threads must
    // not look at it meanwhile.  NOT_SUPPORTED: there is none, or an older one.
    static Result<const UcxLibrary*> load();

    decltype(&::ucp_get_version) get_version;
    decltype(&::ucp_config_read) config_read;
    decltype(&::ucp_config_modify) config_modify;
    decltype(&::ucp_config_release) config_release;
    decltype(&::ucp_init_version) init_version;
    decltype(&::ucp_cleanup) cleanup;
    decltype(&::ucp_mem_map) mem_map;
    decltype(&::ucp_mem_query) mem_query;
    decltype(&::ucp_mem_unmap) mem_unmap;
    decltype(&::ucp_rkey_pack) rkey_pack;
    decltype(&::ucp_rkey_buffer_release) rkey_buffer_release;
    decltype(&::ucp_ep_rkey_unpack) ep_rkey_unpack;
    decltype(&::ucp_rkey_destroy) rkey_destroy;
    decltype(&::ucp_worker_create) worker_create;
    decltype(&::ucp_worker_destroy) worker_destroy;
    decltype(&::ucp_worker_get_address) worker_get_address;
    decltype(&::ucp_worker_release_address) worker_release_address;
    decltype(&::ucp_worker_progress) worker_progress;
    decltype(&::ucp_ep_create) ep_create;
    decltype(&::ucp_ep_close_nbx) ep_close;
    decltype(&::ucp_ep_flush_nbx) ep_flush;
    decltype(&::ucp_ep_print_info) ep_print_info;
    decltype(&::ucp_put_nbx) put;
    decltype(&::ucp_get_nbx) get;
    decltype(&::ucp_atomic_op_nbx) atomic_op;
    decltype(&::ucp_request_check_status) request_check_status;
    decltype(&::ucp_request_free) request_free;
    decltype(&::ucs_status_string) status_text;
};

}  // namespace hanare::fabric
