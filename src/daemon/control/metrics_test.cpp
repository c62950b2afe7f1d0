// Tests of the page /metrics.
#include "daemon/control/metrics.hpp"

#include "base/files/temporary_folder.hpp"
#include "daemon/control/parsed_metrics.hpp"
#include "daemon/runtimes/runtime_parts.hpp"
#include "daemon/state/state_folder.hpp"
#include "daemon/testing.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using namespace daemon::testing;

task<void> render(runtime_parts& runtimes, std::string& page) {
    EXPECT_TRUE(co_await runtimes.restore.load());
    runtime_request request;
    request.type = "fake";
    request.name = "a";
    auto a = co_await runtimes.editor.create(request);
    request.name = "idle";
    auto idle = co_await runtimes.editor.create(request);
    EXPECT_TRUE(a && idle);
    EXPECT_TRUE(co_await runtimes.lifecycle.start(*a));
    co_await runtimes.lifecycle.refresh();
    daemon_facts facts;
    facts.name = "my \"host\"";
    facts.version = "1.2.3";
    facts.io_backend = "epoll";
    facts.loops = 1;
    daemon_counters counted;
    counted.answers[2] = 5;
    counted.answer_time.record(30'000);
    page = render_metrics(runtimes.registry, facts, counted);
    co_await runtimes.lifecycle.shut_down(std::chrono::seconds(1));
}

std::string make_page() {
    const eddy::testing::temporary_folder folder;
    std::string page;
    {
        const state_folder store(folder.path());
        EXPECT_TRUE(store.prepare());
        loop_options options;
        options.kind = io_backend_kind::epoll;
        auto control = std::move(*loop::create(options));
        loop_group_options group;
        group.threads = 1;
        group.loop = options;
        auto loops = std::move(*loop_group::start(group));
        blocking_pool disk;
        const auto types = testing::fake_types();
        runtime_parts_options how;
        how.types = types;
        how.journal_folder = store.journal_folder();
        how.handover_folder = store.directory();
        runtime_parts runtimes(store, disk, *loops, how);
        control->run(render(runtimes, page));
    }
    return page;
}

TEST(metrics, shows_what_the_daemon_and_its_runtimes_count) {
    const std::string page = make_page();
    for (const char* line :
         {"eddy_build_info{version=\"1.2.3\",io_backend=\"epoll\",name=\"my \\\"host\\\"\"} 1\n",
          "eddy_runtimes{status=\"running\"} 1\n", "eddy_runtimes{status=\"created\"} 1\n",
          "eddy_runtimes{status=\"failed\"} 0\n", "eddy_control_requests_total{status=\"2xx\"} 5\n",
          "eddy_control_request_duration_seconds_bucket{le=\"1e-05\"} 0\n",
          "eddy_control_request_duration_seconds_bucket{le=\"+Inf\"} 1\n",
          "eddy_control_request_duration_seconds_count 1\n",
          "eddy_runtime_up{runtime=\"a\",type=\"fake\"} 1\n",
          "eddy_runtime_up{runtime=\"idle\",type=\"fake\"} 0\n",
          "eddy_runtime_degraded{runtime=\"a\",type=\"fake\"} 0\n",
          "eddy_runtime_connections{runtime=\"a\",type=\"fake\"} 3\n",
          "eddy_runtime_latency_seconds_bucket{runtime=\"a\",type=\"fake\",le=\"1e-06\"} 0\n",
          "eddy_runtime_latency_seconds_bucket{runtime=\"a\",type=\"fake\",le=\"2e-06\"} 1\n",
          "eddy_runtime_latency_seconds_count{runtime=\"a\",type=\"fake\"} 1\n",
          "# TYPE eddy_fake_tricks_total counter\n",
          "eddy_fake_tricks_total{runtime=\"a\",type=\"fake\"} 7\n", "process_open_fds "})
        EXPECT_NE(page.find(line), std::string::npos) << line << "\n" << page;
}

TEST(metrics, each_family_is_described_once_and_stands_together) {
    const parsed_metrics page(make_page());
    for (const auto& [name, family] : page.families) {
        EXPECT_FALSE(family.help.empty()) << name;
        EXPECT_EQ(family.kind == "counter", name.ends_with("_total")) << name;
    }
    EXPECT_EQ(page.families.at("eddy_fake_moods").kind, "gauge");
    EXPECT_EQ(page.families.at("eddy_fake_moods").help, moods_metric.help);
    EXPECT_EQ(page.families.at("eddy_fake_trick_bytes").kind, "histogram");
}

TEST(metrics, names_of_earlier_releases_stay) {
    const parsed_metrics page(make_page());
    for (const char* name : {"eddy_build_info",
                             "eddy_uptime_seconds",
                             "eddy_loops",
                             "eddy_lingering_connections",
                             "eddy_runtimes",
                             "eddy_control_connections",
                             "eddy_control_connections_refused_total",
                             "eddy_control_requests_total",
                             "eddy_control_request_duration_seconds",
                             "process_cpu_seconds_total",
                             "process_resident_memory_bytes",
                             "process_open_fds",
                             "process_max_fds",
                             "eddy_runtime_up",
                             "eddy_runtime_connections",
                             "eddy_runtime_connections_total",
                             "eddy_runtime_connections_refused_total",
                             "eddy_runtime_messages_in_total",
                             "eddy_runtime_messages_out_total",
                             "eddy_runtime_bytes_in_total",
                             "eddy_runtime_bytes_out_total",
                             "eddy_runtime_errors_total",
                             "eddy_runtime_dropped_total",
                             "eddy_runtime_latency_seconds"})
        EXPECT_TRUE(page.families.contains(name)) << name;
}

TEST(metrics, labels_keep_quotes_backslashes_and_newlines) {
    const parsed_metrics page(make_page());
    EXPECT_EQ(
        page.value(
            "eddy_fake_moods", "eddy_fake_moods",
            {{"runtime", "a"}, {"type", "fake"}, {"mood", "good"}, {"reason", "a \"b\" \\ c\nd"}}),
        1);
    EXPECT_EQ(page.value("eddy_fake_moods", "eddy_fake_moods",
                         {{"runtime", "a"}, {"type", "fake"}, {"mood", "bad"}, {"reason", ""}}),
              1);
}

TEST(metrics, buckets_are_cumulative_and_end_with_the_count) {
    const parsed_metrics page(make_page());
    int distributions = 0;
    for (const auto& [name, family] : page.families) {
        if (family.kind != "histogram") continue;
        // Per label set, in the order of the page.
        std::map<label_set, std::vector<std::pair<std::string, double>>> buckets;
        for (const page_sample& each : family.samples) {
            label_set labels = each.labels;
            if (labels.erase("le") > 0)
                buckets[labels].emplace_back(each.labels.at("le"), each.value);
        }
        for (const auto& [labels, each] : buckets) {
            ++distributions;
            double bound = -1;
            double count = 0;
            for (const auto& [le, value] : each) {
                EXPECT_GE(value, count) << name << " " << le;
                count = value;
                EXPECT_GT(std::stod(le), bound) << name;  // "+Inf" is a number, too
                bound = std::stod(le);
            }
            EXPECT_EQ(each.back().first, "+Inf") << name;
            EXPECT_EQ(page.value(name, name + "_count", labels), count);
            EXPECT_GE(page.value(name, name + "_sum", labels), 0);
        }
    }
    EXPECT_EQ(distributions, 4);

    label_set even = {{"runtime", "a"}, {"type", "fake"}, {"parity", "even"}};
    const std::string name = "eddy_fake_trick_bytes";
    EXPECT_EQ(page.value(name, name + "_sum", even), 1'000'071);
    EXPECT_EQ(page.value(name, name + "_count", even), 3);
    even["le"] = "64";
    EXPECT_EQ(page.value(name, name + "_bucket", even), 1);
    even["le"] = "256";
    EXPECT_EQ(page.value(name, name + "_bucket", even), 2);
}

TEST(escape_label, keeps_a_value_within_its_quotes) {
    EXPECT_EQ(escape_label("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
}

}  // namespace
}  // namespace eddy::daemon
