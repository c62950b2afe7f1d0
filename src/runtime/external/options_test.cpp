// Effects of an external process's options, its end, and what /proc says.
#include "runtime/external/options.hpp"

#include <eddy/io/process.hpp>

#include "runtime/external/process_facts.hpp"
#include "runtime/options/option_effects.hpp"
#include "runtime/options/row_checks.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace eddy::runtime::external {
namespace {

using namespace runtime::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A process that has a listening socket of this one, and the socket.
struct server {
    server() {
        process_options how;
        how.input = how.output = how.error = stdio::null;
        how.descriptors = {socket.native_handle()};
        its = must(process::start({"/bin/sleep", "1000"}, how));
    }
    json options() const { return {{"port", socket.local().port()}, {"pid", its->pid()}}; }

    listener socket = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
    std::optional<process> its;
};

std::string refusal_of(const json& options) {
    const auto parsed = settings::parse(find_type("external")->options, options);
    if (!parsed) return parsed.error().message;
    const auto read = read_config(*parsed);
    return read ? std::string() : read.error().message;
}

task<void> the_kind_is_shown(std::string type) {
    const server own;
    subject s(type, with({{"kind", "postgres"}}, own.options()));
    co_await s.start();
    EXPECT_EQ(s->detail(), "postgres, process " + std::to_string(own.its->pid()));
    co_await s->stop(0s);
    EXPECT_THAT(refusal_of({{"port", 1}, {"kind", "no word"}}), HasSubstr("--kind"));
}

task<void> the_port_must_be_served(std::string type) {
    server own;
    const std::uint16_t port = own.socket.local().port();
    subject s(type, {{"port", port}});
    co_await s.start();
    EXPECT_EQ(s->local().port(), port);
    co_await s->stop(0s);
    own.its.reset();
    own.socket.close();
    subject none(type, {{"port", port}});
    EXPECT_THAT(co_await none.failure_to_start(), HasSubstr("nothing listens on TCP port"));
    EXPECT_THAT(refusal_of(json::object()), HasSubstr("eddy attach TYPE NAME PORT"));
}

task<void> the_end_of_the_process_is_seen(std::string type) {
    server own;
    const auto host = std::make_shared<test_host>(neighbours(), "subject");
    subject s(type, own.options(), "subject", host);
    co_await s.start();
    must(own.its->kill(SIGKILL));
    co_await until([&] { return host->stop_requests == 1; });
    EXPECT_THAT(s->fault(), HasSubstr("has ended"));
    co_await s->stop(0s);
    EXPECT_THAT(refusal_of({{"port", 1}, {"pid", 1}}), HasSubstr("first process"));
    EXPECT_THAT(refusal_of({{"port", 1}, {"pid", ::getpid()}}), HasSubstr("daemon's own"));
    const server other;
    json mixed = other.options();
    mixed["port"] = own.socket.local().port();
    subject wrong(type, mixed);
    EXPECT_THAT(co_await wrong.failure_to_start(), HasSubstr("does not listen on TCP port"));
    subject gone(type, {{"port", other.socket.local().port()}, {"pid", 2147483647}});
    EXPECT_THAT(co_await gone.failure_to_start(), HasSubstr("there is no process"));
}

task<void> a_stop_ends_no_process(std::string type) {
    server own;
    subject s(type, own.options());
    co_await s.start();
    co_await s->stop(0s);
    EXPECT_TRUE(s.events.has("the process goes on"));
    EXPECT_EQ(::kill(own.its->pid(), 0), 0);
}

task<void> a_number_that_was_used_again_is_noticed(std::string type) {
    const server own;
    const auto began = static_cast<std::int64_t>(must(start_time_of(own.its->pid())));
    subject same(type, with({{"pid_start", began}}, own.options()));
    co_await same.start();
    co_await same->stop(0s);
    subject other(type, with({{"pid_start", began + 1}}, own.options()));
    EXPECT_THAT(co_await other.failure_to_start(), HasSubstr("was used again"));
    co_await a_stop_ends_no_process(type);
}

task<void> the_port_is_looked_at(std::string type) {
    server own;
    const std::uint16_t port = own.socket.local().port();
    subject s(type, {{"port", port}, {"interval", "1ms"}});
    co_await s.start();
    own.its.reset();
    own.socket.close();
    co_await until([&] { return s->fault().find("any more") != std::string::npos; });
    const listener again = must(loop::current().listen(must(endpoint::ip("127.0.0.1", port))));
    co_await until([&] { return s->fault().empty(); });
    co_await s->stop(0s);
}

TEST(external_options, each_row_reaches_its_member) {
    const json needed = {{"port", 1}};
    const json named = {{"port", 1}, {"pid", 2}};
    const option_changes own = {{"port", {needed, {{"port", 2}}}},
                                {"pid", {named, {{"pid", 3}}}},
                                {"pid-start", {named, {{"pid_start", 3}}}}};
    check_reading(option_rows(), read_config, needed, own);
    check_live(option_rows(), read_config, needed, own);
}

TEST(process_facts, of_the_kernels_texts) {
    EXPECT_EQ(must(start_time_in("7 (a) b) (c) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 9 9")),
              4711U);
    EXPECT_FALSE(start_time_in("7 (a"));
    EXPECT_FALSE(start_time_in("7 (a) S 1"));
    std::vector<std::uint64_t> found;
    add_listening(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
        "timeout "
        "inode\n"
        "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 31 1 x\n"
        "   1: 0100007F:1F90 0100007F:9999 01 00000000:00000000 00:00000000 00000000  0  0 32 1 x\n"
        "   2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 33 1 x\n"
        "  garbage\n",
        8080, found);
    EXPECT_THAT(found, ElementsAre(31));
}

}  // namespace
}  // namespace eddy::runtime::external

namespace eddy::runtime::testing {

effect_table external_effects() {
    using namespace external;
    return {
        {{"external", "kind"}, {the_kind_is_shown, seen_on::kernel}},
        {{"external", "port"}, {the_port_must_be_served, seen_on::kernel}},
        {{"external", "pid"}, {the_end_of_the_process_is_seen, seen_on::kernel}},
        {{"external", "pid-start"}, {a_number_that_was_used_again_is_noticed, seen_on::kernel}},
        {{"external", "interval"}, {the_port_is_looked_at, seen_on::kernel}},
    };
}

}  // namespace eddy::runtime::testing
