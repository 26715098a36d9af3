// SPDX-License-Identifier: Apache-2.0
//
// Tables and records of `hanare bench stencil --sweep`.
#include <algorithm>
#include <set>

#include "bench/stencil_report.hpp"
#include "bench/table.hpp"

namespace hanare::bench {
namespace {

constexpr const char* kNone = "-";

template <typename Value>
std::set<Value> all_of(const std::vector<SweepPoint>& points, Value SweepPoint::* member) {
    std::set<Value> found;
    for (const SweepPoint& point : points) found.insert(point.*member);
    return found;
}

const SweepPoint* find(const std::vector<SweepPoint>& points, const std::string& place,
                       const std::string& method, uint32_t block, uint32_t steps) {
    const auto found = std::ranges::find_if(points, [&](const SweepPoint& point) {
        return point.place == place && point.method == method && point.block == block &&
               point.steps_per_pass == steps;
    });
    return found == points.end() ? nullptr : &*found;
}

const SweepPoint* best(const std::vector<SweepPoint>& points, const std::string& place,
                       const std::string& method) {
    const SweepPoint* found = nullptr;
    for (const SweepPoint& point : points) {
        if (point.place != place || point.method != method || point.updates_per_s == 0) continue;
        if (found == nullptr || point.updates_per_s > found->updates_per_s) found = &point;
    }
    return found;
}

}  // namespace

std::string sweep_tables(const std::vector<SweepPoint>& points) {
    std::string text;
    for (const std::string& place : all_of(points, &SweepPoint::place)) {
        for (const std::string& method : all_of(points, &SweepPoint::method)) {
            text += format(
                "%s, %s: effective Gflop/s by planes of a slab (rows) and steps of a "
                "pass (columns); \"-\": does not fit\n",
                place.c_str(), method == "two_level" ? "two levels" : "one level");
            std::vector<std::string> header = {"planes"};
            for (const uint32_t steps : all_of(points, &SweepPoint::steps_per_pass)) {
                header.push_back(std::to_string(steps));
            }
            Table table(header);
            for (const uint32_t block : all_of(points, &SweepPoint::block)) {
                std::vector<std::string> row = {std::to_string(block)};
                for (const uint32_t steps : all_of(points, &SweepPoint::steps_per_pass)) {
                    const SweepPoint* const point = find(points, place, method, block, steps);
                    const bool has = point != nullptr && point->updates_per_s > 0;
                    row.push_back(has ? format("%.2f", point->updates_per_s * kSevenFlops * 1e-9)
                                      : kNone);
                }
                table.add_row(row);
            }
            text += table.text() + "\n";
        }
        const SweepPoint* const one = best(points, place, "trapezoid");
        const SweepPoint* const two = best(points, place, "two_level");
        if (one == nullptr || two == nullptr) continue;
        text += format(
            "%s: the best with two levels takes %.2f times the best with one "
            "(%u planes, %u steps: %.0f %% of updates twice; %u planes, %u steps)\n\n",
            place.c_str(), one->updates_per_s / two->updates_per_s, two->block, two->steps_per_pass,
            100 * two->redundant, one->block, one->steps_per_pass);
    }
    return text;
}

std::vector<Record> sweep_records(const std::vector<SweepPoint>& points,
                                  const nlohmann::json& params) {
    std::vector<Record> records;
    for (const SweepPoint& point : points) {
        nlohmann::json own = params;
        own["block"] = point.block;
        own["steps_per_pass"] = point.steps_per_pass;
        own["place"] = point.place;
        own["redundant"] = point.redundant;
        own["bytes_of_minimum"] = point.bytes_of_minimum;
        if (point.updates_per_s == 0) continue;
        records.push_back({"stencil", "sweep", point.method, "effective", "flop/s",
                           summarize({point.updates_per_s * kSevenFlops}), own});
    }
    return records;
}

}  // namespace hanare::bench
