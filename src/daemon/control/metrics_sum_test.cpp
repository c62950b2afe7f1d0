// Sums of metrics pages: what is added up, and what a process that has ended leaves.
#include "daemon/control/metrics_sum.hpp"

#include <eddy/base/histogram.hpp>

#include "daemon/control/metrics.hpp"
#include "daemon/control/parsed_metrics.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace eddy::daemon {
namespace {

constexpr runtime::metric seconds{"wait_seconds", runtime::metric_kind::histogram, "Waits."};
constexpr runtime::metric failures{
    "failures_total", runtime::metric_kind::counter, "Failures.", {"reason"}};

std::string page_of(std::uint64_t connections, std::uint64_t wait,
                    std::initializer_list<std::string> reasons) {
    runtime::metrics counted;
    counted.connections_now = connections;
    counted.connections_total = 10 * connections;
    auto waits = std::make_shared<histogram>();
    waits->record(wait);
    counted.add_sample(seconds, waits);
    runtime::labelled<serving::tally> failed(failures);
    for (const std::string& each : reasons) ++failed.at({each});
    counted.add_samples(failed);
    return render_stream_metrics(counted);
}

TEST(metrics_sum, adds_counters_gauges_and_buckets) {
    metrics_sum sum;
    sum.add(page_of(3, 1'500'000, {"a"}));
    sum.add(page_of(4, 40'000'000, {"a", "b \"}\n"}));
    const testing::parsed_metrics page(sum.render());
    const auto value = [&](const char* family, const char* name, const testing::label_set& labels) {
        return page.value(family, name, labels);
    };
    EXPECT_EQ(value("daemon_active_connections", "daemon_active_connections", {}), 7);
    EXPECT_EQ(value("daemon_connections_total", "daemon_connections_total", {}), 70);
    const char* const waits = "daemon_wait_seconds";
    EXPECT_EQ(value(waits, "daemon_wait_seconds_bucket", {{"le", "0.001"}}), 0);
    EXPECT_EQ(value(waits, "daemon_wait_seconds_bucket", {{"le", "0.002"}}), 1);
    EXPECT_EQ(value(waits, "daemon_wait_seconds_bucket", {{"le", "0.05"}}), 2);
    EXPECT_EQ(value(waits, "daemon_wait_seconds_bucket", {{"le", "+Inf"}}), 2);
    EXPECT_EQ(value(waits, "daemon_wait_seconds_count", {}), 2);
    EXPECT_DOUBLE_EQ(value(waits, "daemon_wait_seconds_sum", {}), 0.0415);
    const char* const failed = "daemon_failures_total";
    EXPECT_EQ(value(failed, failed, {{"reason", "a"}}), 2);
    EXPECT_EQ(value(failed, failed, {{"reason", "b \"}\n"}}), 1);
}

TEST(metrics_sum, keeps_counters_alone_of_what_has_ended) {
    metrics_sum sum;
    sum.add_what_stays(page_of(3, 1, {}));
    sum.add(page_of(4, 1, {}));
    const testing::parsed_metrics page(sum.render());
    EXPECT_EQ(page.value("daemon_active_connections", "daemon_active_connections", {}), 4);
    EXPECT_EQ(page.value("daemon_connections_total", "daemon_connections_total", {}), 70);
    EXPECT_EQ(page.value("daemon_wait_seconds", "daemon_wait_seconds_count", {}), 2);
}

TEST(metrics_sum, takes_samples_of_its_own) {
    metrics_sum sum;
    sum.add(page_of(3, 1, {"a"}));
    sum.add_sample("daemon_failures_total{reason=\"new\"}", "counter", "", 5);
    sum.set_sample("daemon_active_connections", "gauge", "", 9);
    sum.set_sample("daemon_workers", "gauge", "Workers.", 2);
    const testing::parsed_metrics page(sum.render());
    EXPECT_EQ(page.value("daemon_failures_total", "daemon_failures_total", {{"reason", "new"}}), 5);
    EXPECT_EQ(page.value("daemon_active_connections", "daemon_active_connections", {}), 9);
    EXPECT_EQ(page.families.at("daemon_failures_total").help, "Failures.");
    EXPECT_EQ(page.families.at("daemon_workers").help, "Workers.");
}

TEST(metrics_sum, leaves_out_what_is_no_line_of_the_format) {
    metrics_sum sum;
    sum.add(
        "stray 1\n# HELP a_total A.\n# TYPE a_total counter\na_total 1\na_total x\nb 2\n\n#\n# \n");
    EXPECT_EQ(sum.render(), "# HELP a_total A.\n# TYPE a_total counter\na_total 1\n");
}

}  // namespace
}  // namespace eddy::daemon
