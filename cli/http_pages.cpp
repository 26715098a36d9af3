// SPDX-License-Identifier: Apache-2.0
#include "cli/http_pages.hpp"

#include <cstring>
#include <optional>
#include <string_view>

#include <microhttpd.h>

#include "sys/signal.hpp"
#include "sys/tcp_socket.hpp"

namespace hanare::cli {
namespace {

// What strangers get: beyond these the kernel keeps them waiting, or they are turned away.
constexpr unsigned int kConnectionsMax = 32;
constexpr unsigned int kConnectionsPerAddressMax = 8;
constexpr unsigned int kIdleMax_s = 5;
constexpr size_t kConnectionBytes = 16 * 1024;  // a request's head and what it is answered with

MHD_Result answer(MHD_Connection* connection, unsigned int status, std::string text,
                  const std::string& type) {
    MHD_Response* const response =
        MHD_create_response_from_buffer(text.size(), text.data(), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", type.c_str());
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, "Allow", "GET, HEAD");
    }
    const MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
}

MHD_Result refuse(MHD_Connection* connection, unsigned int status, const char* text) {
    return answer(connection, status, text, "text/plain; charset=utf-8");
}

MHD_Result answer_page(const HttpPages::Pages& pages, MHD_Connection* connection, const char* path,
                       std::string_view method) {
    if (method != "GET" && method != "HEAD") {
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "pages are to be read only\n");
    }
    const auto page = pages.find(std::string_view(path));
    if (page == pages.end()) {
        std::string known;
        for (const auto& [name, ignored] : pages) known += name + "\n";
        return refuse(connection, MHD_HTTP_NOT_FOUND,
                      ("there is no such page, but\n" + known).c_str());
    }
    return answer(connection, MHD_HTTP_OK, page->second.text(), page->second.type);
}

// Called for each request once its head has come, and again with what follows it.  No exception
// crosses the library: the connection ends.
MHD_Result on_request(void* pages, MHD_Connection* connection, const char* path, const char* method,
                      const char* /*version*/, const char* /*upload*/, size_t* upload_bytes,
                      void** state) {
    static char seen;
    if (*state == nullptr) {
        *state = &seen;
        return MHD_YES;
    }
    if (*upload_bytes != 0) return MHD_NO;  // nobody wants that
    try {
        return answer_page(*static_cast<const HttpPages::Pages*>(pages), connection, path, method);
    } catch (...) {
        return MHD_NO;
    }
}

}  // namespace

struct HttpPages::Daemon {
    explicit Daemon(MHD_Daemon* started) : daemon(started) {}
    ~Daemon() {
        if (daemon != nullptr) MHD_stop_daemon(daemon);
    }
    Daemon(const Daemon&) = delete;
    Daemon& operator=(const Daemon&) = delete;

    MHD_Daemon* const daemon;
};

HttpPages::HttpPages(Pages pages) : pages_(std::move(pages)) {}

HttpPages::~HttpPages() = default;

Result<std::unique_ptr<HttpPages>> HttpPages::serve(const std::string& host, uint16_t port,
                                                    Pages pages) {
    HANARE_TRY_ASSIGN(sys::FileDescriptor listener, sys::listen_tcp(host, port));
    std::unique_ptr<HttpPages> made(new HttpPages(std::move(pages)));
    HANARE_TRY_ASSIGN(made->port_, sys::port_of(listener));
    // The thread has the mask of whoever starts it.
    const sys::SignalBlock no_signals;
    // Strictness has no part in it: what is no HTTP is refused in any case.
    made->daemon_ = std::make_unique<Daemon>(MHD_start_daemon(
        MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC, 0, nullptr, nullptr, on_request,
        const_cast<Pages*>(&made->pages_), MHD_OPTION_LISTEN_SOCKET, listener.number(),
        MHD_OPTION_CONNECTION_LIMIT, kConnectionsMax, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
        kConnectionsPerAddressMax, MHD_OPTION_CONNECTION_TIMEOUT, kIdleMax_s,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_END));
    if (made->daemon_->daemon == nullptr) {
        return fail(HANARE_STATUS_SYSTEM, "cannot serve pages at %.100s port %u", host.c_str(),
                    made->port_);
    }
    listener.release();  // the daemon closes it
    return made;
}

}  // namespace hanare::cli
