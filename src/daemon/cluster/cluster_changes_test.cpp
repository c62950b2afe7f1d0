// Tests of the events that become of two snapshots.
#include "daemon/cluster/cluster_changes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

cluster::runtime_info runtime(std::string name, std::string state, std::string group = "g") {
    cluster::runtime_info made;
    made.name = std::move(name);
    made.type = "http";
    made.state = std::move(state);
    made.group = std::move(group);
    if (made.state == "running") made.addresses = {"tcp://10.0.0.1:80"};
    return made;
}

std::shared_ptr<cluster::member_info> member(std::string name,
                                             std::vector<cluster::runtime_info> runtimes = {}) {
    auto made = std::make_shared<cluster::member_info>();
    made->id = "id-" + name;
    made->host = name + ".example";
    made->name = std::move(name);
    made->runtimes = std::move(runtimes);
    return made;
}

cluster::snapshot snapshot(std::vector<std::shared_ptr<const cluster::member_info>> members) {
    cluster::snapshot made;
    made.members = std::move(members);
    return made;
}

/// "joined a member: on a.example, with 0 runtimes"
std::vector<std::string> texts(const cluster::snapshot& before, const cluster::snapshot& after) {
    std::vector<std::string> all;
    for (const runtime_event& each : changes_between(before, after)) {
        all.push_back(std::string(to_string(each.kind)) + " " + each.name + " " + each.type);
        if (!each.detail.empty()) all.back() += ": " + each.detail;
    }
    return all;
}

TEST(cluster_changes, members_join_and_leave_with_their_runtimes) {
    const auto a = member("a");
    const auto b = member("b", {runtime("web", "running")});
    EXPECT_THAT(texts(snapshot({a}), snapshot({a, b})),
                ElementsAre("joined b member: on b.example, with 1 runtime"));
    EXPECT_THAT(texts(snapshot({a, b}), snapshot({b})),
                ElementsAre("left a member: on a.example, with 0 runtimes"));
    EXPECT_THAT(texts(snapshot({a, b}), snapshot({a, b})), IsEmpty());
}

TEST(cluster_changes, another_start_of_a_member_is_another_member) {
    const auto before = member("a", {runtime("web", "running")});
    const auto after = std::make_shared<cluster::member_info>(*before);
    after->id = "another";
    EXPECT_THAT(texts(snapshot({before}), snapshot({after})),
                ElementsAre("left a member: on a.example, with 1 runtime",
                            "joined a member: on a.example, with 1 runtime"));
}

TEST(cluster_changes, a_member_that_leaves_is_drained_first) {
    const auto before = member("a");
    const auto after = std::make_shared<cluster::member_info>(*before);
    after->is_leaving = true;
    EXPECT_THAT(texts(snapshot({before}), snapshot({after})),
                ElementsAre("leaving a member: on a.example, with 0 runtimes"));
}

TEST(cluster_changes, runtimes_come_and_go_start_and_stop) {
    const auto before = member("a", {runtime("crashed", "running"), runtime("gone", "running"),
                                     runtime("moved", "running"), runtime("off", "running"),
                                     runtime("on", "starting"), runtime("same", "running")});
    auto moved = runtime("moved", "running", "h");
    moved.addresses = {"tcp://10.0.0.1:81"};
    auto same = runtime("same", "running");
    same.connections = 1000;
    const auto after = member("a", {runtime("crashed", "failed"), moved, runtime("new", "created"),
                                    runtime("newer", "running"), runtime("off", "stopped"),
                                    runtime("on", "running"), same});
    EXPECT_THAT(texts(snapshot({before}), snapshot({after})),
                ElementsAre("failed a/crashed http", "removed a/gone http",
                            "edited a/moved http: group: \"g\" -> \"h\"",
                            "edited a/moved http: on tcp://10.0.0.1:81", "created a/new http",
                            "created a/newer http", "started a/newer http: on tcp://10.0.0.1:80",
                            "stopped a/off http", "started a/on http: on tcp://10.0.0.1:80"));
}

TEST(cluster_changes, an_engine_that_is_away_is_said_once) {
    const auto a = member("a");
    const cluster::snapshot good = snapshot({a});
    cluster::snapshot stale = good;
    stale.is_stale = true;
    stale.stale_reason = "the folder is gone";
    EXPECT_THAT(texts(good, stale), ElementsAre("degraded cluster cluster: the folder is gone"));
    EXPECT_THAT(texts(stale, stale), IsEmpty());
    EXPECT_THAT(texts(stale, good), ElementsAre("recovered cluster cluster"));
}

}  // namespace
}  // namespace eddy::daemon
