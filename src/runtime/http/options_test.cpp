// Effects of a site's options.
#include "runtime/http/options.hpp"

#include "runtime/http/script/options_test.hpp"
#include "runtime/http/testing.hpp"
#include "runtime/options/option_effects.hpp"
#include "runtime/options/row_checks.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace eddy::runtime::http {
namespace {

using namespace http::testing;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr auto kernel = seen_on::kernel;

/// A site of `in` with these options.
json site_of(const temporary_folder& in, json options) {
    options["root"] = in.path();
    return with(options);
}

task<void> the_folder_is_served(std::string type) {
    const temporary_folder folder;
    write_file(folder, "a.txt", "hello");
    subject s(type, site_of(folder, {}));
    co_await s.start();
    const answer got = co_await get_from(s, "/a.txt");
    EXPECT_EQ(got.status(), "200");
    EXPECT_EQ(got.content, "hello");
    co_await s->stop(0s);
    subject none(type, with({{"root", folder.file("missing")}}));
    EXPECT_THAT(co_await none.failure_to_start(), HasSubstr("missing cannot be served"));
}

task<void> the_index_answers_for_its_folder(std::string type) {
    const temporary_folder folder;
    write_file(folder, "start.html", "the start");
    for (const char* const name : {"start.html", "/start.html"}) {
        subject s(type, site_of(folder, {{"index", name}}));
        co_await s.start();
        EXPECT_EQ((co_await get_from(s, "/")).content, "the start");
        co_await s->stop(0s);
    }
}

task<void> a_folder_is_listed(std::string type) {
    const temporary_folder folder;
    write_file(folder, "a<b.txt", "");
    for (const bool listing : {false, true}) {
        subject s(type, site_of(folder, {{"listing", listing}}));
        co_await s.start();
        const answer got = co_await get_from(s, "/");
        EXPECT_EQ(got.status(), listing ? "200" : "404");
        if (listing) EXPECT_THAT(got.content, HasSubstr("a&lt;b.txt"));
        co_await s->stop(0s);
    }
}

task<void> a_file_answers_for_paths_without_one(std::string type) {
    const temporary_folder folder;
    write_file(folder, "app.html", "the application");
    for (const std::string& name :
         {std::string("app.html"), std::string("/app.html"), folder.file("app.html")}) {
        subject s(type, site_of(folder, {{"spa", name}}));
        co_await s.start();
        for (const char* const route : {"/users/7", "/a%2Fb", "/.settings", "/100%"}) {
            const answer got = co_await get_from(s, route);
            EXPECT_EQ(got.status(), "200") << name << " " << route;
            EXPECT_EQ(got.content, "the application");
        }
        co_await s->stop(0s);
    }
}

task<void> files_are_kept_in_memory(std::string type) {
    const temporary_folder folder;
    write_file(folder, "a.txt", "hello");
    subject s(type, site_of(folder, {{"cache", "1M"}}));
    co_await s.start();
    talker client = co_await talker::to(s->local());
    for (int i = 0; i < 3; ++i) EXPECT_EQ((co_await get(client, "/a.txt")).content, "hello");
    write_file(folder, "a.txt", "changed");
    for (;;) {
        if ((co_await get(client, "/a.txt")).content == "changed") break;
        must(co_await loop::current().sleep_for(10ms));
    }
    co_await s->stop(0s);
}

task<void> browsers_may_keep_files(std::string type) {
    const temporary_folder folder;
    write_file(folder, "a.txt", "hello");
    subject s(type, site_of(folder, {{"cache_control", "max-age=60"}}));
    co_await s.start();
    EXPECT_THAT((co_await get_from(s, "/a.txt")).head, HasSubstr("\nCache-Control: max-age=60\n"));
    co_await s->stop(0s);
}

task<void> responses_are_compressed(std::string type) {
    const temporary_folder folder;
    write_file(folder, "a.txt", std::string(5000, 'a'));
    write_file(folder, "b.txt", std::string(5000, 'b'));
    write_file(folder, "b.txt.gz", "compressed before");
    json options = site_of(folder, {});
    subject s(type, options);
    co_await s.start();
    const std::string accepted = "Accept-Encoding: zstd, gzip\r\n";
    EXPECT_EQ((co_await get_from(s, "/a.txt", accepted)).content.size(), 5000U);
    options["compress"] = true;
    must_do(s->apply(s.parse(options)));
    const answer got = co_await get_from(s, "/a.txt", accepted);
    EXPECT_THAT(got.head, HasSubstr("\nContent-Encoding: zstd\n"));
    EXPECT_THAT(got.head, HasSubstr("\nETag: W/\""));
    EXPECT_LT(got.content.size(), 100U);
    EXPECT_EQ((co_await get_from(s, "/a.txt")).content.size(), 5000U);
    const answer range = co_await get_from(s, "/a.txt", accepted + "Range: bytes=0-4\r\n");
    EXPECT_EQ(range.status(), "206");
    EXPECT_EQ(range.content, "aaaaa");
    EXPECT_EQ((co_await get_from(s, "/b.txt", accepted)).content, "compressed before");
    const std::size_t at = got.head.find("\nETag: ") + 7;
    const std::string tag = got.head.substr(at, got.head.find('\n', at) - at);
    const answer known =
        co_await get_from(s, "/a.txt", accepted + "If-None-Match: " + tag + "\r\n");
    EXPECT_EQ(known.status(), "304");
    EXPECT_THAT(known.head, HasSubstr("\nETag: " + tag + "\n"));
    co_await s->stop(0s);
}

/// A change of the file while it is sent shows that its bytes are in the page cache alone.
task<void> files_are_sent_without_a_copy(std::string type) {
    static constexpr std::size_t size = 100'000;
    for (const bool sendfile : {false, true}) {
        const temporary_folder folder;
        write_file(folder, "large", std::string(size, 'x'));
        subject s(type, site_of(folder, {{"sendfile", sendfile}}));
        co_await s.start();
        talker client = co_await talker::to(s->local());
        co_await client.say("GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        co_await until([&] { return s->count().bytes_out > size; });
        std::fstream(folder.file("large"), std::ios::in | std::ios::out) << std::string(size, '-');
        EXPECT_EQ((co_await client.rest()).back(), sendfile ? '-' : 'x');
        co_await s->stop(0s);
    }
}

task<void> hidden_files_are_served(std::string type) {
    const temporary_folder folder;
    write_file(folder, ".env", "secret");
    for (const bool hidden : {false, true}) {
        subject s(type, site_of(folder, {{"hidden", hidden}}));
        co_await s.start();
        EXPECT_EQ((co_await get_from(s, "/.env")).status(), hidden ? "200" : "404");
        co_await s->stop(0s);
    }
}

task<void> threads_answer_requests(std::string type) {
    const temporary_folder folder;
    write_file(folder, "a.txt", "hello");
    subject s(type, site_of(folder, {{"threads", 2}}));
    co_await s.start();
    talker first = co_await talker::to(s->local());
    talker second = co_await talker::to(s->local());
    for (talker* each : {&first, &second})
        EXPECT_EQ((co_await get(*each, "/a.txt")).content, "hello");
    EXPECT_TRUE(s.events.has("2 threads serve its clients"));
    EXPECT_EQ(s->count().messages_in, 2U);
    co_await s->stop(0s);
}

task<void> heads_are_limited(std::string type) {
    const temporary_folder folder;
    subject s(type, site_of(folder, {{"max_header", "1k"}}));
    co_await s.start();
    const std::string long_field = "X: " + std::string(1024, 'x') + "\r\n";
    EXPECT_EQ((co_await get_from(s, "/", long_field)).status(), "431");
    EXPECT_EQ((co_await get_from(s, "/" + std::string(1024, 'x'))).status(), "414");
    co_await s->stop(0s);
}

task<void> fields_are_counted(std::string type) {
    const temporary_folder folder;
    write_file(folder, "a.txt", "hello");
    for (const std::size_t most : {3U, 200U}) {
        subject s(type, site_of(folder, {{"max_fields", most}}));
        co_await s.start();
        // Host is one.
        std::string fields;
        for (std::size_t i = 1; i < most; ++i) fields += "A: b\r\n";
        EXPECT_EQ((co_await get_from(s, "/a.txt", fields)).status(), "200");
        EXPECT_EQ((co_await get_from(s, "/a.txt", fields + "A: b\r\n")).status(), "431");
        co_await s->stop(0s);
    }
}

task<void> slow_requests_are_refused(std::string type) {
    const temporary_folder folder;
    subject s(type, site_of(folder, {{"request_timeout", "50ms"}}));
    co_await s.start();
    talker client = co_await talker::to(s->local());
    co_await client.say("GET / HT");
    EXPECT_THAT(co_await client.rest(), StartsWith("HTTP/1.1 408 "));
    co_await s->stop(0s);
}

task<void> clients_that_take_nothing_are_closed(std::string type) {
    const temporary_folder folder;
    write_file(folder, "large", std::string(4 << 20, 'x'));
    subject s(type, site_of(folder, {{"write_timeout", "50ms"}}));
    co_await s.start();
    talker client = co_await talker::to(s->local());
    co_await client.say("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    co_await until([&] { return s->count().connections_now == 1; });
    co_await until([&] { return s->count().connections_now == 0; });
    EXPECT_EQ(s->count().errors, 1U);
    EXPECT_LT((co_await client.rest()).size(), std::size_t{4} << 20);
    co_await s->stop(0s);
}

/// Content of the access log after a request.
task<std::string> logged(std::string type, json options, std::string request) {
    const temporary_folder folder;
    write_file(folder, "a.txt", "hello");
    options["access_log"] = folder.file("log");
    subject s(type, site_of(folder, options));
    co_await s.start();
    talker client = co_await talker::to(s->local());
    co_await client.say(request);
    static_cast<void>(co_await next_answer(client));
    co_await s->stop(0s);
    co_return content(folder.file("log"));
}

task<void> requests_are_logged(std::string type) {
    const std::string line =
        co_await logged(type, {}, "GET /a.txt?q=\" HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(line, ::testing::MatchesRegex("127\\.0\\.0\\.1 - - \\[[^]]+\\] \".*\n"));
    EXPECT_THAT(line, HasSubstr("] \"GET /a.txt?q=\\x22 HTTP/1.1\" 200 5\n"));
    EXPECT_THAT(co_await logged(type, {}, "GET / HTTP/2.0\r\n\r\n"), HasSubstr("] \"-\" 505 "));
}

task<void> logs_have_a_format(std::string type) {
    const std::string line =
        co_await logged(type, {{"access_format", "json"}},
                        "GET /a.txt HTTP/1.1\r\nHost: x\r\nUser-Agent: a\"b\xff\r\n\r\n");
    const json read = json::parse(line);
    EXPECT_EQ(read["method"], "GET");
    EXPECT_EQ(read["target"], "/a.txt");
    EXPECT_EQ(read["status"], 200);
    EXPECT_EQ(read["bytes"], 5);
    EXPECT_EQ(read["user_agent"], "a\"b\xEF\xBF\xBD");
    EXPECT_FALSE(read.contains("cut_off"));
    EXPECT_THAT(co_await logged(type, {{"access_format", "combined"}},
                                "GET /a.txt HTTP/1.1\r\nHost: x\r\nUser-Agent: a b\r\n\r\n"),
                EndsWith("] \"GET /a.txt HTTP/1.1\" 200 5 \"-\" \"a b\"\n"));
}

TEST(http_options, each_is_read_into_its_member_and_changed_live) {
    const json before = {{"unix", "/s"}, {"root", "/r"}};
    const json logged = {{"unix", "/s"}, {"root", "/r"}, {"access_log", "/l"}};
    const temporary_folder folder;
    write_file(folder, "a.lua", "count = 1");
    json scripted = before;
    scripted["lua"] = folder.file("a.lua");
    const option_changes own = {{"lua", {before, {{"lua", folder.file("a.lua")}}}},
                                {"lua-path", {scripted, {{"lua_path", {"/a"}}}}},
                                {"lua-unsafe", {scripted, {{"lua_unsafe", true}}}},
                                {"lua-admin", {scripted, {{"lua_admin", true}}}},
                                {"lua-memory", {scripted, {{"lua_memory", "9M"}}}},
                                {"lua-slice", {scripted, {{"lua_slice", "9ms"}}}},
                                {"lua-time", {scripted, {{"lua_time", "9s"}}}},
                                {"lua-max-timers", {scripted, {{"lua_max_timers", 9}}}},
                                {"lua-max-sockets", {scripted, {{"lua_max_sockets", 9}}}},
                                {"lua-max-queue", {scripted, {{"lua_max_queue", 9}}}},
                                {"lua-body", {scripted, {{"lua_body", "9M"}}}},
                                {"access-format", {logged, {{"access_format", "json"}}}},
                                {"allow-users", {before, {{"allow_users", "0"}}}},
                                {"tcp-keepalive", {before, {{"tcp_keepalive", "9s"}}}},
                                {"accept-proxy", {before, {{"accept_proxy", "unix"}}}}};
    check_reading(option_rows(), read_config, before, own);
    check_live(option_rows(), read_config, before, own);
}

}  // namespace
}  // namespace eddy::runtime::http

namespace eddy::runtime::testing {

effect_table http_effects() {
    using namespace http;
    effect_table all = {
        {{"http", "root"}, {the_folder_is_served}},
        {{"http", "index"}, {the_index_answers_for_its_folder}},
        {{"http", "listing"}, {a_folder_is_listed}},
        {{"http", "cache"}, {files_are_kept_in_memory}},
        {{"http", "cache-control"}, {browsers_may_keep_files}},
        {{"http", "sendfile"}, {files_are_sent_without_a_copy, kernel}},
        {{"http", "compress"}, {responses_are_compressed}},
        {{"http", "hidden"}, {hidden_files_are_served}},
        {{"http", "spa"}, {a_file_answers_for_paths_without_one}},
        {{"http", "threads"}, {threads_answer_requests, kernel}},
        {{"http", "max-header"}, {heads_are_limited}},
        {{"http", "max-fields"}, {fields_are_counted}},
        {{"http", "request-timeout"}, {slow_requests_are_refused}},
        {{"http", "write-timeout"}, {clients_that_take_nothing_are_closed}},
        {{"http", "access-log"}, {requests_are_logged}},
        {{"http", "access-format"}, {logs_have_a_format}},
    };
    add_script_effects(all);
    return all;
}

}  // namespace eddy::runtime::testing
