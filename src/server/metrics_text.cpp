// SPDX-License-Identifier: Apache-2.0
#include "server/metrics_text.hpp"

#include <string_view>

namespace hanare::server {
namespace {

// The value of a label, whatever a client calls itself.
std::string escaped(std::string_view text) {
    std::string label;
    for (const char c : text) {
        if (c == '\\' || c == '"') label += '\\';
        label += c == '\n' ? "\\n" : std::string(1, c);
    }
    return label;
}

class Page {
public:
    void begin(std::string_view name, std::string_view kind, std::string_view help) {
        name_ = name;
        text_ += "# HELP " + name_ + " " + std::string(help) + "\n";
        text_ += "# TYPE " + name_ + " " + std::string(kind) + "\n";
    }
    void add(uint64_t value, const std::string& labels = "") {
        text_ +=
            name_ + (labels.empty() ? "" : "{" + labels + "}") + " " + std::to_string(value) + "\n";
    }
    void add_alone(std::string_view name, std::string_view kind, std::string_view help,
                   uint64_t value) {
        begin(name, kind, help);
        add(value);
    }
    const std::string& text() const { return text_; }

private:
    std::string name_;
    std::string text_;
};

void add_memory(Page& page, const LeaseTable::Status& status) {
    page.begin("hanare_server_memory_bytes", "gauge",
               "Memory in all, leased, free, not wiped yet, touched.");
    page.add(status.total_bytes, "state=\"total\"");
    page.add(status.leased_bytes, "state=\"leased\"");
    page.add(status.free_bytes, "state=\"free\"");
    page.add(status.unwiped_bytes, "state=\"unwiped\"");
    page.add(status.touched_bytes, "state=\"touched\"");
}

void add_leases(Page& page, const LeaseTable::Status& status) {
    page.begin("hanare_server_lease_bytes", "gauge", "Memory of a lease.");
    for (const LeaseTable::Row& row : status.leases) {
        const std::string tenant =
            row.tenant.empty() ? "" : ",tenant=\"" + escaped(row.tenant) + "\"";
        page.add(row.bytes, "lease=\"" + std::to_string(row.number) + "\",client=\"" +
                                escaped(row.client) + "\"" + tenant);
    }
}

void add_tenants(Page& page, const LeaseTable::Status& status) {
    if (status.tenants.empty()) return;
    page.begin("hanare_server_tenant_bytes", "gauge",
               "Memory of a tenant's leases, and its limit.");
    for (const auto& row : status.tenants) {
        const std::string tenant = "tenant=\"" + escaped(row.name) + "\",state=";
        page.add(row.leased_bytes, tenant + "\"leased\"");
        page.add(row.quota_bytes, tenant + "\"quota\"");
    }
}

}  // namespace

std::string metrics_text(const LeaseTable::Status& status) {
    Page page;
    add_memory(page, status);
    page.add_alone("hanare_server_leases", "gauge", "Leases that there are.", status.leases.size());
    page.add_alone("hanare_server_draining", "gauge", "Whether the server lends nothing more.",
                   status.is_draining ? 1 : 0);
    page.add_alone("hanare_server_leases_opened_total", "counter",
                   "Leases since the server has started.", status.leases_opened);
    page.add_alone("hanare_server_leases_ended_total", "counter",
                   "Leases that their clients have ended.", status.leases_ended);
    page.add_alone("hanare_server_leases_abandoned_total", "counter",
                   "Leases whose clients have gone.", status.leases_abandoned);
    page.add_alone("hanare_server_refusals_total", "counter",
                   "Leases and growth that were refused.", status.refusals);
    add_leases(page, status);
    add_tenants(page, status);
    return page.text();
}

}  // namespace hanare::server
