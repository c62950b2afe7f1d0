// Tests of the daemon's part in a cluster, over an engine that does what a test says.
#include "daemon/cluster/cluster_service.hpp"

#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>

#include "daemon/cluster/cluster_view.hpp"
#include "daemon/runtimes/runtime_parts_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using namespace std::chrono_literals;
using namespace daemon::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// State of a fake engine, which outlives it.
struct engine_state {
    std::deque<outcome<>> answers = {};  ///< of join(); joined once there are no more
    cluster::member_info self = {};      ///< as it was published last
    std::vector<std::shared_ptr<const cluster::member_info>> others = {};
    std::shared_ptr<const cluster::snapshot> now = std::make_shared<cluster::snapshot>();
    cluster::observer* observer = nullptr;
    event changed = {};
    int joins = 0;
    int publications = 0;
    bool has_ended = false;
    bool is_passed_on = false;
    std::string stale = {};

    void show() {
        auto made = std::make_shared<cluster::snapshot>();
        made->number = now->number + 1;
        made->members = others;
        made->members.push_back(std::make_shared<cluster::member_info>(self));
        std::ranges::sort(made->members, {}, [](const auto& each) { return each->name; });
        made->is_stale = !stale.empty();
        made->stale_reason = stale;
        now = std::move(made);
        changed.set();
    }
};

class fake_engine final : public cluster::membership {
public:
    explicit fake_engine(engine_state& state) : state_(state) {}

    task<outcome<>> join(cluster::member_info self) override {
        ++state_.joins;
        if (!state_.answers.empty()) {
            auto answer = std::move(state_.answers.front());
            state_.answers.pop_front();
            co_return answer;
        }
        state_.self = std::move(self);
        state_.show();
        co_return outcome<>();
    }
    void publish(cluster::member_info self) override {
        ++state_.publications;
        state_.self = std::move(self);
        state_.show();
    }
    std::shared_ptr<const cluster::snapshot> current() const override { return state_.now; }
    task<result<>> changed(std::uint64_t known) override {
        for (;;) {
            state_.changed.reset();
            if (state_.now->number > known) co_return result<>();
            const auto woken = co_await state_.changed.wait();
            if (!woken) co_return woken;
        }
    }
    task<void> end() override {
        state_.has_ended = true;
        co_return;
    }
    task<void> pass_on() override {
        state_.is_passed_on = true;
        co_return;
    }

private:
    engine_state& state_;
};

cluster_service::engine_factory factory(engine_state& of) {
    return [&of](cluster::observer& to) -> outcome<std::unique_ptr<cluster::membership>> {
        of.observer = &to;
        return std::make_unique<fake_engine>(of);
    };
}

cluster_options options() { return {"/srv/eddy", "127.0.0.1", "room"}; }

task<void> until(std::function<bool()> condition) {
    for (int i = 0; i < 20'000; ++i) {
        if (condition()) co_return;
        static_cast<void>(co_await loop::current().sleep_for(1ms));
    }
    ADD_FAILURE() << "a condition did not come true";
}

std::shared_ptr<const cluster::member_info> other(std::string name, std::string address) {
    auto made = std::make_shared<cluster::member_info>();
    made->id = "id-" + name;
    made->host = "127.0.0.1";
    cluster::runtime_info web;
    web.name = "web";
    web.type = "http";
    web.group = "g";
    web.state = "running";
    web.addresses = {std::move(address)};
    made->name = std::move(name);
    made->runtimes.push_back(std::move(web));
    return made;
}

/// "name uri", or the refusal.
std::vector<std::string> resolved(runtime_parts& of, std::string_view target) {
    const auto found = of.registry.published()->resolve(target);
    if (!found) return {found.error().message};
    std::vector<std::string> all;
    for (const runtime::served_address& each : *found)
        all.push_back(each.runtime + " " + each.where.to_string());
    return all;
}

std::vector<std::string> events_of(event_feed& of, std::uint64_t after) {
    std::vector<std::string> all;
    for (const runtime_event* const each : of.read(after).events)
        all.push_back(std::string(to_string(each->kind)) + " " + each->name);
    return all;
}

class cluster_service_test : public runtime_parts_fixture {};

TEST_F(cluster_service_test, shows_the_others_what_runs) {
    live([](runtime_parts& runtimes) -> task<void> {
        engine_state state;
        cluster_service service(options(), "a", "1.2.3", runtimes);
        EXPECT_TRUE(service.begin(factory(state), {"id-a", 42}, nullptr));
        co_await service.await_answer(20s);
        EXPECT_TRUE(service.has_joined());
        EXPECT_EQ(state.self.name, "a");
        EXPECT_EQ(state.self.id, "id-a");
        EXPECT_EQ(state.self.started, 42);
        EXPECT_EQ(state.self.host, "127.0.0.1");
        EXPECT_EQ(state.self.label, "room");
        EXPECT_EQ(state.self.version, "1.2.3");
        EXPECT_THAT(state.self.runtimes, IsEmpty());
        auto request = wanted("web", {{"port", 8080}});
        request.group = "g";
        const runtime_ref web = co_await make(runtimes, std::move(request));
        co_await until([&] { return state.self.runtimes.size() == 1; });
        EXPECT_EQ(state.self.runtimes[0].state, "created");
        EXPECT_TRUE(co_await runtimes.lifecycle.start(web));
        co_await until([&] { return state.self.runtimes[0].state == "running"; });
        EXPECT_THAT(state.self.runtimes[0].addresses, ElementsAre("tcp://127.0.0.1:8080"));
        EXPECT_EQ(state.self.runtimes[0].group, "g");
        // A failed start changes no address.
        const runtime_ref bad = co_await make(runtimes, wanted("bad", {{"port", 666}}));
        EXPECT_FALSE(co_await runtimes.lifecycle.start(bad));
        co_await until([&] { return state.self.runtimes[0].state == "failed"; });
        EXPECT_TRUE(co_await runtimes.lifecycle.stop(web));
        co_await until([&] { return state.self.runtimes[1].state == "stopped"; });
        EXPECT_THAT(state.self.runtimes[1].addresses, IsEmpty());
        co_await service.end();
        EXPECT_TRUE(state.has_ended);
    });
}

TEST_F(cluster_service_test, gives_proxies_the_groups_of_others) {
    live([](runtime_parts& runtimes) -> task<void> {
        engine_state state;
        state.others = {other("b", "tcp://127.0.0.1:81")};
        cluster_service service(options(), "a", "1", runtimes);
        EXPECT_TRUE(service.begin(factory(state), {"id-a", 42}, nullptr));
        co_await service.await_answer(20s);
        EXPECT_THAT(resolved(runtimes, "@g"), ElementsAre("b/web tcp://127.0.0.1:81"));
        const std::uint64_t before = runtimes.registry.events()->last_number();

        state.others = {other("b", "tcp://127.0.0.1:81"), other("c", "tcp://127.0.0.1:82")};
        state.show();
        co_await until([&] { return resolved(runtimes, "@g").size() == 2; });
        EXPECT_THAT(resolved(runtimes, "@g"),
                    ElementsAre("b/web tcp://127.0.0.1:81", "c/web tcp://127.0.0.1:82"));

        auto leaving = std::make_shared<cluster::member_info>(*state.others[0]);
        leaving->is_leaving = true;
        state.others[0] = leaving;
        state.show();
        co_await until([&] { return resolved(runtimes, "@g").size() == 1; });
        state.others = {};
        state.show();
        co_await until([&] { return resolved(runtimes, "@g")[0].contains("no runtime"); });
        EXPECT_THAT(events_of(*runtimes.registry.events(), before),
                    ElementsAre("joined c", "leaving b", "left b", "left c"));
        co_await service.end();
    });
}

TEST_F(cluster_service_test, an_own_address_of_another_name_is_no_backend) {
    live([](runtime_parts& runtimes) -> task<void> {
        engine_state state;
        state.others = {other("before", "tcp://127.0.0.1:8080")};
        cluster_service service(options(), "a", "1", runtimes);
        EXPECT_TRUE(service.begin(factory(state), {"id-a", 42}, nullptr));
        co_await service.await_answer(20s);
        EXPECT_THAT(resolved(runtimes, "@g"), ElementsAre("before/web tcp://127.0.0.1:8080"));
        const runtime_ref web = co_await make(runtimes, wanted("web", {{"port", 8080}}));
        EXPECT_TRUE(co_await runtimes.lifecycle.start(web));
        co_await until([&] { return resolved(runtimes, "@g")[0].contains("no runtime"); });
        co_await service.end();
    });
}

TEST_F(cluster_service_test, a_refusal_is_for_the_first_answer) {
    live([](runtime_parts& runtimes) -> task<void> {
        engine_state state;
        state.answers.push_back(refuse(409, "b.example has the name"));
        cluster_service service(options(), "a", "1", runtimes);
        std::string refusal;
        const auto keep = [&refusal](problem why) { refusal = std::move(why.message); };
        EXPECT_TRUE(service.begin(factory(state), {"id-a", 42}, keep));
        co_await service.await_answer(20s);
        EXPECT_EQ(refusal, "b.example has the name");
        EXPECT_FALSE(service.has_joined());
        EXPECT_EQ(state.joins, 1);
        co_await service.end();
    });
}

TEST_F(cluster_service_test, an_engine_that_is_away_is_joined_later) {
    live([](runtime_parts& runtimes) -> task<void> {
        engine_state state;
        state.answers.push_back(refuse(503, "nothing answers"));
        state.answers.push_back(refuse(409, "the name is taken now"));
        cluster_service service(options(), "a", "1", runtimes);
        std::string refusal;
        const auto keep = [&refusal](problem why) { refusal = std::move(why.message); };
        EXPECT_TRUE(service.begin(factory(state), {"id-a", 42}, keep));
        co_await service.await_answer(20s);
        EXPECT_FALSE(service.has_joined());
        EXPECT_EQ(service.stale_reason(), "nothing answers");
        EXPECT_TRUE(show_cluster(service).at("stale").get<bool>());
        EXPECT_THAT(show_cluster(service).at("members"), IsEmpty());
        co_await until([&] { return service.has_joined(); });
        EXPECT_EQ(refusal, "");
        EXPECT_EQ(state.joins, 3);
        EXPECT_EQ(service.stale_reason(), "");
        co_await service.end();
    });
}

TEST_F(cluster_service_test, an_end_may_come_before_the_first_answer) {
    live([](runtime_parts& runtimes) -> task<void> {
        engine_state state;
        for (int i = 0; i < 100; ++i) state.answers.push_back(refuse(503, "nothing answers"));
        cluster_service service(options(), "a", "1", runtimes);
        EXPECT_TRUE(service.begin(factory(state), {"id-a", 42}, nullptr));
        co_await service.begin_leaving();
        co_await service.end();
        EXPECT_TRUE(state.has_ended);
    });
}

TEST_F(cluster_service_test, leaving_is_said_first_and_may_be_taken_back) {
    live([](runtime_parts& runtimes) -> task<void> {
        engine_state state;
        cluster_service service(options(), "a", "1", runtimes);
        EXPECT_TRUE(service.begin(factory(state), {"id-a", 42}, nullptr));
        co_await service.await_answer(20s);
        co_await service.begin_leaving();
        EXPECT_TRUE(state.self.is_leaving);
        service.stay();
        EXPECT_FALSE(state.self.is_leaving);
        co_await service.end();
    });
}

TEST_F(cluster_service_test, another_process_goes_on_as_the_same_member) {
    live([](runtime_parts& runtimes) -> task<void> {
        engine_state state;
        cluster_service service(options(), "a", "1", runtimes);
        EXPECT_TRUE(service.begin(factory(state), {"id-a", 42}, nullptr));
        co_await service.await_answer(20s);
        service.hold_published(true);
        const int before = state.publications;
        const runtime_ref web = co_await make(runtimes, wanted("web"));
        static_cast<void>(co_await loop::current().sleep_for(2 * publish_pause));
        EXPECT_EQ(state.publications, before);
        EXPECT_EQ(service.start().id, "id-a");
        co_await service.pass_on();
        EXPECT_TRUE(state.is_passed_on);
        co_await service.end();
        EXPECT_FALSE(state.has_ended);
    });
}

TEST_F(cluster_service_test, a_new_process_uses_what_the_one_before_has_known) {
    live([](runtime_parts& runtimes) -> task<void> {
        cluster::snapshot known;
        known.members = {other("a", "tcp://127.0.0.1:80"), other("b", "tcp://127.0.0.1:81")};
        engine_state state;
        cluster_service service(options(), "a", "1", runtimes);
        service.inherit(decode_members(encode_members(known) + "no member\n"));
        EXPECT_THAT(resolved(runtimes, "@g"), ElementsAre("b/web tcp://127.0.0.1:81"));
        EXPECT_EQ(show_cluster(service).at("members").size(), 2U);
        EXPECT_TRUE(show_cluster(service).at("stale").get<bool>());
        EXPECT_TRUE(service.begin(factory(state), {"id-a", 42}, nullptr));
        co_await service.await_answer(20s);
        // The engine has not found it yet.
        EXPECT_THAT(resolved(runtimes, "@g"), ElementsAre("b/web tcp://127.0.0.1:81"));
        co_await until([&] { return resolved(runtimes, "@g")[0].contains("no runtime"); });
        co_await service.end();
    });
}

TEST_F(cluster_service_test, what_the_engine_reports_is_shown) {
    live([](runtime_parts& runtimes) -> task<void> {
        engine_state state;
        state.others = {other("b", "tcp://127.0.0.1:81")};
        cluster_service service(options(), "a", "1", runtimes);
        EXPECT_TRUE(service.begin(factory(state), {"id-a", 42}, nullptr));
        co_await service.await_answer(20s);
        const std::uint64_t before = service.changes()->last_number();
        state.stale = "the folder is gone";
        state.show();
        co_await until([&] { return !service.stale_reason().empty(); });
        const json members = show_cluster(service);
        EXPECT_EQ(members.at("stale_reason"), "the folder is gone");
        EXPECT_EQ(members.at("self"), "a");
        EXPECT_EQ(members.at("members").size(), 2U);
        EXPECT_EQ(members.at("members")[1].at("name"), "b");
        EXPECT_EQ(members.at("members")[1].at("running"), 1);
        EXPECT_THAT(events_of(*service.changes(), before), ElementsAre("degraded cluster"));
        const json runtimes_there = show_cluster_runtimes(service, "b/w*");
        EXPECT_EQ(runtimes_there.at("runtimes").size(), 1U);
        EXPECT_EQ(show_cluster_runtimes(service, "@g").at("runtimes").size(), 1U);
        EXPECT_THAT(show_cluster_runtimes(service, "a/*").at("runtimes"), IsEmpty());
        EXPECT_EQ(show_cluster_groups(service, "*").at("groups")[0].at("name"), "g");
        EXPECT_EQ(show_member(service, "b")->at("runtimes")[0].at("addresses")[0],
                  "tcp://127.0.0.1:81");
        const auto unknown = show_member(service, "bb");
        EXPECT_EQ(unknown.error().status, 404);
        EXPECT_THAT(unknown.error().message, HasSubstr("did you mean \"b\""));
        EXPECT_THAT(resolved(runtimes, "@g"), ElementsAre("b/web tcp://127.0.0.1:81"))
            << "what is known last is used";
        co_await service.end();
    });
}

}  // namespace
}  // namespace eddy::daemon
