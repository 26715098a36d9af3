// SPDX-License-Identifier: Apache-2.0
//
// HttpPages: pages that one may GET, for Prometheus and for people, by libmicrohttpd.  A thread of
// its own answers; strangers can neither make it take more than a little memory and few
// descriptors, nor hold its attention for long.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/result.hpp"

namespace hanare::cli {

class HttpPages {
public:
    struct Page {
        std::string type;  // "application/json"
        // Any thread.
        std::function<std::string()> text;
    };
    // By path, "/status".
    using Pages = std::map<std::string, Page, std::less<>>;

    // At a numeric address; port 0: one that is free.
    static Result<std::unique_ptr<HttpPages>> serve(const std::string& host, uint16_t port,
                                                    Pages pages);
    ~HttpPages();
    HttpPages(const HttpPages&) = delete;
    HttpPages& operator=(const HttpPages&) = delete;

    uint16_t port() const noexcept { return port_; }

private:
    struct Daemon;

    explicit HttpPages(Pages pages);

    const Pages pages_;
    uint16_t port_ = 0;
    std::unique_ptr<Daemon> daemon_;
};

}  // namespace hanare::cli
