// The page of metrics.
#include "daemon/metrics.hpp"

#include "base/temporary_folder.hpp"
#include "daemon/testing.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <string>

namespace eddy::daemon {
namespace {

task<void> render(manager& runtimes, std::string& page) {
    EXPECT_TRUE(co_await runtimes.load());
    runtime_request request;
    request.type = "fake";
    request.name = "a";
    auto a = co_await runtimes.create(request);
    request.name = "idle";
    auto idle = co_await runtimes.create(request);
    EXPECT_TRUE(a && idle);
    EXPECT_TRUE(co_await runtimes.start(*a));
    co_await runtimes.refresh();
    daemon_facts facts;
    facts.name = "my \"host\"";
    facts.version = "1.2.3";
    facts.backend = "epoll";
    facts.loops = 1;
    daemon_counters counted;
    counted.answers[2] = 5;
    counted.answer_time.record(30'000);
    page = render_metrics(runtimes, facts, counted);
    co_await runtimes.shut_down(std::chrono::seconds(1));
}

std::string make_page() {
    const eddy::testing::temporary_folder folder;
    std::string page;
    {
        const state_store store(folder.path());
        EXPECT_TRUE(store.prepare());
        loop_options options;
        options.kind = backend_kind::epoll;
        auto control = std::move(*loop::create(options));
        loop_group_options group;
        group.threads = 1;
        group.loop = options;
        auto loops = std::move(*loop_group::start(group));
        blocking_pool disk;
        const auto types = testing::fake_types();
        manager_options managing;
        managing.types = types;
        manager runtimes(store, disk, *loops, managing);
        control->run(render(runtimes, page));
    }
    return page;
}

TEST(metrics, shows_what_the_daemon_and_its_runtimes_count) {
    const std::string page = make_page();
    for (const char* line :
         {"eddy_build_info{version=\"1.2.3\",backend=\"epoll\",name=\"my \\\"host\\\"\"} 1\n",
          "eddy_runtimes{status=\"running\"} 1\n", "eddy_runtimes{status=\"created\"} 1\n",
          "eddy_runtimes{status=\"failed\"} 0\n", "eddy_control_requests_total{status=\"2xx\"} 5\n",
          "eddy_control_request_duration_seconds_bucket{le=\"1e-05\"} 0\n",
          "eddy_control_request_duration_seconds_bucket{le=\"+Inf\"} 1\n",
          "eddy_control_request_duration_seconds_count 1\n",
          "eddy_runtime_up{runtime=\"a\",type=\"fake\"} 1\n",
          "eddy_runtime_up{runtime=\"idle\",type=\"fake\"} 0\n",
          "eddy_runtime_connections{runtime=\"a\",type=\"fake\"} 3\n",
          "eddy_runtime_latency_seconds_bucket{runtime=\"a\",type=\"fake\",le=\"1e-06\"} 0\n",
          "eddy_runtime_latency_seconds_bucket{runtime=\"a\",type=\"fake\",le=\"2e-06\"} 1\n",
          "eddy_runtime_latency_seconds_count{runtime=\"a\",type=\"fake\"} 1\n",
          "# TYPE eddy_fake_tricks_total counter\n",
          "eddy_fake_tricks_total{runtime=\"a\",type=\"fake\"} 7\n", "process_open_fds "})
        EXPECT_NE(page.find(line), std::string::npos) << line << "\n" << page;
}

TEST(metrics, each_family_is_described_once_and_stands_together) {
    std::istringstream page(make_page());
    std::set<std::string> described;
    std::string family;
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("# HELP ")) {
            family = line.substr(7, line.find(' ', 7) - 7);
            EXPECT_TRUE(described.insert(family).second) << family;
            continue;
        }
        if (line.starts_with("# TYPE ")) {
            EXPECT_EQ(line.substr(7, line.find(' ', 7) - 7), family);
            continue;
        }
        EXPECT_TRUE(line.starts_with(family)) << line << " under " << family;
        EXPECT_NE(line.find(' '), std::string::npos) << line;
    }
}

TEST(escape_label, keeps_a_value_within_its_quotes) {
    EXPECT_EQ(escape_label("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
}

}  // namespace
}  // namespace eddy::daemon
