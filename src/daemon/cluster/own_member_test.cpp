// Tests of the own entry in a cluster, and of what counts of the others'.
#include "daemon/cluster/own_member.hpp"

#include <eddy/io/endpoint.hpp>
#include <eddy/transport/transport.hpp>

#include "daemon/cluster/engines.hpp"
#include "daemon/runtimes/registry_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using transport::scheme;

std::string uri(scheme kind, std::string_view bound, std::string_view host,
                std::uint16_t port = 80) {
    return uri_for_others({kind, *endpoint::ip(bound, port)}, host);
}

TEST(own_member, addresses_for_others_are_those_that_they_can_connect_to) {
    EXPECT_EQ(uri(scheme::tcp, "0.0.0.0", "10.0.0.1"), "tcp://10.0.0.1:80");
    EXPECT_EQ(uri(scheme::tls, "::", "db.example"), "tls://db.example:80");
    EXPECT_EQ(uri(scheme::udp, "10.1.2.3", "10.0.0.1"), "udp://10.1.2.3:80");
    EXPECT_EQ(uri(scheme::tcp, "::", "2001:db8::1"), "tcp://[2001:db8::1]:80");
    EXPECT_EQ(uri(scheme::tcp, "127.0.0.1", "10.0.0.1"), "");
    EXPECT_EQ(uri(scheme::tcp, "::1", "10.0.0.1"), "");
    EXPECT_EQ(uri(scheme::tcp, "::ffff:127.0.0.1", "10.0.0.1"), "");
    EXPECT_EQ(uri(scheme::shm, "0.0.0.0", "10.0.0.1"), "");
    EXPECT_EQ(uri(scheme::tcp, "0.0.0.0", "10.0.0.1", 0), "") << "it is not open";
    EXPECT_EQ(uri_for_others({scheme::unix_socket, *endpoint::unix_path("/run/x")}, "10.0.0.1"),
              "");
    // All members are on this machine.
    EXPECT_EQ(uri(scheme::tcp, "127.0.0.1", "127.0.0.1"), "tcp://127.0.0.1:80");
    EXPECT_EQ(uri(scheme::tcp, "127.0.0.2", "localhost"), "tcp://127.0.0.2:80");
    EXPECT_EQ(uri(scheme::tcp, "0.0.0.0", "127.0.0.1"), "tcp://127.0.0.1:80");
}

TEST(own_member, options_are_checked_with_a_sentence) {
    const auto fault = [](cluster_options of, std::string_view name = "a") {
        const auto checked = check_cluster_options(of, name);
        return checked ? std::string() : checked.error().message;
    };
    EXPECT_EQ(fault({"/srv/eddy"}), "");
    EXPECT_EQ(fault({"/srv/eddy", "10.0.0.1", "room-1"}), "");
    EXPECT_EQ(fault({"/srv/eddy", "db.example.org"}), "");
    EXPECT_EQ(fault({"/srv/eddy", "2001:db8::1"}), "");
    EXPECT_THAT(fault({""}), HasSubstr("--cluster"));
    EXPECT_THAT(fault({"http://x"}), HasSubstr("--cluster"));
    for (const char* const host : {"*", "::", "0.0.0.0", "10.0.0.1:80", "a b", "http://x"})
        EXPECT_THAT(fault({"/srv/eddy", host}), HasSubstr("--advertise")) << host;
    EXPECT_THAT(fault({"/srv/eddy", "", "a/b"}), HasSubstr("--label"));
    for (const char* const name : {"", "a/b", ".hidden", "@a", "a b"})
        EXPECT_THAT(fault({"/srv/eddy"}, name), HasSubstr("--name")) << name;
}

TEST(own_member, a_password_is_not_shown) {
    EXPECT_EQ(shown_engine("/srv/a@b://c"), "/srv/a@b://c");
    EXPECT_EQ(shown_engine("etcd://10.0.0.1:2379,10.0.0.2:2379"),
              "etcd://10.0.0.1:2379,10.0.0.2:2379");
    EXPECT_EQ(shown_engine("etcd://u:p@ss@10.0.0.1:2379/x@y"), "etcd://***@10.0.0.1:2379/x@y");
}

cluster::runtime_info shown(std::string name, std::string group, std::string state,
                            std::vector<std::string> addresses) {
    cluster::runtime_info made;
    made.name = std::move(name);
    made.group = std::move(group);
    made.state = std::move(state);
    made.addresses = std::move(addresses);
    return made;
}

/// "NAME GROUP HOST:PORT..."
std::vector<std::string> texts(const std::vector<runtime::remote_runtime>& all) {
    std::vector<std::string> made;
    for (const auto& each : all) {
        made.push_back(each.name + " " + each.group);
        for (const auto& at : each.places)
            made.back() += " " + std::string(transport::to_string(at.kind)) + " " + at.host + ":" +
                           std::to_string(at.port);
    }
    return made;
}

TEST(own_member, of_others_those_count_that_can_be_connected_to) {
    cluster::member_info b;
    b.name = "b";
    b.runtimes = {
        shown("all", "g", "running", {"tcp://10.0.0.2:80", "tls://b.example:443?ca=/etc/shadow"}),
        shown("alone", "", "running", {"tcp://10.0.0.2:81"}),
        shown("bad", "g", "running",
              {"", "x", "tcp://", "tcp://:80", "tcp://*:80", "tcp://10.0.0.2:0", "tcp://0.0.0.0:1",
               "tcp://[::]:1", "unix:///run/x", "shm://@x", "handoff:///run/x",
               "tcp://127.0.0.1:80", "tcp://localhost:80", "tcp://[::1]:80"}),
        shown("own", "g", "running", {"tcp://10.0.0.1:80"}),
        shown("stopped", "g", "stopped", {"tcp://10.0.0.2:82"}),
    };
    cluster::member_info a;
    a.name = "a";
    a.host = "10.0.0.1";
    a.runtimes = {shown("web", "g", "running", {"tcp://10.0.0.1:80"})};
    EXPECT_THAT(texts(usable_runtimes(b, own_places::of(a))),
                ElementsAre("b/all g tcp 10.0.0.2:80 tls b.example:443"));
    a.host = "127.0.0.1";
    EXPECT_THAT(texts(usable_runtimes(b, own_places::of(a))),
                ElementsAre("b/all g tcp 10.0.0.2:80 tls b.example:443",
                            "b/bad g tcp 127.0.0.1:80 tcp localhost:80 tcp ::1:80"));
    b.is_leaving = true;
    EXPECT_THAT(texts(usable_runtimes(b, own_places::of(a))), IsEmpty());
}

TEST(own_member, small_changes_of_load_are_no_changes) {
    cluster::member_info before;
    before.runtimes = {shown("a", "", "running", {}), shown("c", "", "running", {})};
    before.runtimes[1].connections = 1000;
    cluster::member_info now = before;
    now.runtimes[0].connections = 4;
    now.runtimes[1].connections = 901;
    keep_similar_loads(now, before);
    EXPECT_EQ(now, before);
    now.runtimes[0].connections = 5;
    now.runtimes[1].connections = 1100;
    now.runtimes.insert(now.runtimes.begin() + 1, shown("b", "", "running", {}));
    now.runtimes[1].connections = 3;
    const cluster::member_info fresh = now;
    keep_similar_loads(now, before);
    EXPECT_EQ(now, fresh);
}

class own_entry : public testing::registry_fixture {};

TEST_F(own_entry, shows_runtimes_and_where_they_are) {
    add(record("web", "", "front"));
    add(record("db"));
    const auto note = [&](const char* runtime, const char* address, std::uint16_t port) {
        return registry_.published()->note(runtime, *transport::parse("tcp://*:0"),
                                           *endpoint::ip(address, port));
    };
    const runtime::address_note all = note("web", "::", 80);
    const runtime::address_note also = note("web", "0.0.0.0", 80);
    const runtime::address_note local = note("db", "127.0.0.1", 81);
    cluster::member_info identity;
    identity.name = "a";
    identity.host = "10.0.0.1";
    const cluster::member_info made = describe_own_member(identity, registry_);
    EXPECT_EQ(made.name, "a");
    ASSERT_EQ(made.runtimes.size(), 2U);
    EXPECT_EQ(made.runtimes[0].name, "db");
    EXPECT_THAT(made.runtimes[0].addresses, IsEmpty());
    EXPECT_EQ(made.runtimes[1].name, "web");
    EXPECT_EQ(made.runtimes[1].id, "id-web");
    EXPECT_EQ(made.runtimes[1].type, "fake");
    EXPECT_EQ(made.runtimes[1].group, "front");
    EXPECT_EQ(made.runtimes[1].state, "created");
    EXPECT_THAT(made.runtimes[1].addresses, ElementsAre("tcp://10.0.0.1:80"));
}

}  // namespace
}  // namespace eddy::daemon
