// SPDX-License-Identifier: Apache-2.0
#include "server/metrics_text.hpp"

#include <gtest/gtest.h>

namespace hanare::server {
namespace {

TEST(MetricsText, AllThatThereIs) {
    LeaseTable::Status status;
    status.total_bytes = 1 << 30;
    status.leased_bytes = 12 << 20;
    status.free_bytes = 1000 << 20;
    status.unwiped_bytes = 8 << 20;
    status.touched_bytes = 500 << 20;
    status.is_draining = true;
    status.leases_opened = 5;
    status.leases_ended = 2;
    status.leases_abandoned = 1;
    status.refusals = 7;
    status.leases = {{.number = 3, .client = "himeno", .bytes = 8 << 20},
                     {.number = 5, .client = "a \"b\" \\ {c}\nd", .bytes = 4 << 20}};
    EXPECT_EQ(
        metrics_text(status),
        R"(# HELP hanare_server_memory_bytes Memory in all, leased, free, not wiped yet, touched.
# TYPE hanare_server_memory_bytes gauge
hanare_server_memory_bytes{state="total"} 1073741824
hanare_server_memory_bytes{state="leased"} 12582912
hanare_server_memory_bytes{state="free"} 1048576000
hanare_server_memory_bytes{state="unwiped"} 8388608
hanare_server_memory_bytes{state="touched"} 524288000
# HELP hanare_server_leases Leases that there are.
# TYPE hanare_server_leases gauge
hanare_server_leases 2
# HELP hanare_server_draining Whether the server lends nothing more.
# TYPE hanare_server_draining gauge
hanare_server_draining 1
# HELP hanare_server_leases_opened_total Leases since the server has started.
# TYPE hanare_server_leases_opened_total counter
hanare_server_leases_opened_total 5
# HELP hanare_server_leases_ended_total Leases that their clients have ended.
# TYPE hanare_server_leases_ended_total counter
hanare_server_leases_ended_total 2
# HELP hanare_server_leases_abandoned_total Leases whose clients have gone.
# TYPE hanare_server_leases_abandoned_total counter
hanare_server_leases_abandoned_total 1
# HELP hanare_server_refusals_total Leases and growth that were refused.
# TYPE hanare_server_refusals_total counter
hanare_server_refusals_total 7
# HELP hanare_server_lease_bytes Memory of a lease.
# TYPE hanare_server_lease_bytes gauge
hanare_server_lease_bytes{lease="3",client="himeno"} 8388608
hanare_server_lease_bytes{lease="5",client="a \"b\" \\ {c}\nd"} 4194304
)");
}

TEST(MetricsText, Tenants) {
    LeaseTable::Status status;
    status.leases = {{.number = 3, .client = "himeno", .tenant = "a", .bytes = 8 << 20}};
    status.tenants = {{.name = "a", .quota_bytes = 16 << 20, .leased_bytes = 8 << 20},
                      {.name = "b", .quota_bytes = 4 << 20, .leased_bytes = 0}};
    EXPECT_TRUE(metrics_text(status).ends_with(
        R"(hanare_server_lease_bytes{lease="3",client="himeno",tenant="a"} 8388608
# HELP hanare_server_tenant_bytes Memory of a tenant's leases, and its limit.
# TYPE hanare_server_tenant_bytes gauge
hanare_server_tenant_bytes{tenant="a",state="leased"} 8388608
hanare_server_tenant_bytes{tenant="a",state="quota"} 16777216
hanare_server_tenant_bytes{tenant="b",state="leased"} 0
hanare_server_tenant_bytes{tenant="b",state="quota"} 4194304
)")) << metrics_text(status);
}

TEST(MetricsText, NoLeases) {
    const std::string text = metrics_text({});
    EXPECT_NE(text.find("\nhanare_server_leases 0\n"), std::string::npos);
    EXPECT_TRUE(text.ends_with("# TYPE hanare_server_lease_bytes gauge\n")) << text;
}

}  // namespace
}  // namespace hanare::server
