// Access log: its formats as strict parsers read them, escapes, time zones and labels of clients.
#include "runtime/logs/access_log.hpp"

#include "runtime/http/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime {
namespace {

using namespace runtime::http::testing;
using eddy::http::client_label;
using eddy::http::exchange_record;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

/// The time zone of this process as long as it lives.
class time_zone {
public:
    explicit time_zone(const char* zone) {
        if (const char* const before = std::getenv("TZ")) before_ = before;
        ::setenv("TZ", zone, 1);
        ::tzset();
    }
    ~time_zone() {
        if (before_)
            ::setenv("TZ", before_->c_str(), 1);
        else
            ::unsetenv("TZ");
        ::tzset();
    }
    time_zone(const time_zone&) = delete;
    time_zone& operator=(const time_zone&) = delete;

private:
    std::optional<std::string> before_;
};

std::chrono::system_clock::time_point at_second(std::int64_t second) {
    return std::chrono::system_clock::from_time_t(second);
}

http1::request_head request_of(std::string method, std::string target) {
    http1::request_head made;
    made.method = std::move(method);
    made.target = std::move(target);
    return made;
}

void add_field(http1::request_head& to, std::string_view name, std::string_view value) {
    EXPECT_TRUE(to.headers.add(name, value));
}

exchange_record answered(const http1::request_head* request, int status = 200) {
    exchange_record made;
    made.request = request;
    made.status = status;
    made.is_whole = true;
    made.content_bytes = 5;
    return made;
}

constexpr std::int64_t known_second = 971'211'336;  // 10 October 2000, 20:55:36 UTC

client_label label_of(access_format format, std::string_view host, std::string user = "") {
    return log_label(format, must(endpoint::ip(host, 4711)), std::move(user));
}

std::string line_of(access_format format, const exchange_record& what, std::string user = "") {
    access_log_writer writer(format);
    return writer.line(label_of(format, "192.0.2.7", std::move(user)), what,
                       at_second(known_second));
}

TEST(access_log, the_lines_of_the_formats) {
    const time_zone pacific("PDT7");
    http1::request_head request = request_of("GET", "/a?b=c");
    add_field(request, "Referer", "http://x/");
    add_field(request, "User-Agent", "Mozilla/5.0 (X11)");
    const std::string common =
        "192.0.2.7 - alice [10/Oct/2000:13:55:36 -0700] \"GET /a?b=c HTTP/1.1\" 200 5";
    EXPECT_EQ(line_of(access_format::common, answered(&request), "alice"), common + "\n");
    EXPECT_EQ(line_of(access_format::combined, answered(&request), "alice"),
              common + " \"http://x/\" \"Mozilla/5.0 (X11)\"\n");
    const json read = json::parse(line_of(access_format::json, answered(&request), "alice"));
    EXPECT_EQ(read["time"], "2000-10-10T20:55:36.000Z");
    EXPECT_EQ(read["client"], "192.0.2.7:4711");
    EXPECT_EQ(read["user"], "alice");
}

TEST(access_log, says_what_a_proxy_has_announced) {
    const time_zone utc("UTC0");
    proxy_protocol::client_values said;
    said.alpn = "h2";
    said.authority = "a.example\" }\n\xff";
    said.unique_id = std::string("\1\0\xfe", 3);
    said.has_tls = said.is_verified = true;
    said.tls_version = "TLSv1.3";
    said.tls_cipher = "X";
    said.tls_name = "a b";
    const auto line = [&](access_format format, std::string user = "") {
        access_log_writer writer(format);
        return writer.line(
            log_label(format, must(endpoint::ip("192.0.2.7", 1)), std::move(user), &said),
            answered(nullptr), at_second(known_second));
    };
    EXPECT_THAT(line(access_format::common), StartsWith("192.0.2.7 - CN=a\\x20b ["));
    EXPECT_THAT(line(access_format::common, "own"), StartsWith("192.0.2.7 - own ["));
    const std::string text = line(access_format::json);
    EXPECT_EQ(text.find('\n'), text.size() - 1);
    const json read = json::parse(text);
    EXPECT_EQ(read["user"], "CN=a b");
    EXPECT_EQ(
        read["announced"],
        (json{{"alpn", "h2"},
              {"authority", "a.example\" }\n\xef\xbf\xbd"},
              {"unique_id", "0100fe"},
              {"tls",
               {{"version", "TLSv1.3"}, {"cipher", "X"}, {"name", "a b"}, {"verified", true}}}}));
    said = {};
    said.unique_id = "C0A8-17:4711";
    EXPECT_EQ(json::parse(line(access_format::json))["announced"],
              (json{{"unique_id", "C0A8-17:4711"}}));
    said = {};
    EXPECT_FALSE(json::parse(line(access_format::json)).contains("announced"));
}

TEST(access_log, what_is_not_there_is_a_dash) {
    const time_zone utc("UTC0");
    http1::request_head request = request_of("GET", "/");
    EXPECT_THAT(
        line_of(access_format::combined, answered(&request)),
        MatchesRegex("192.0.2.7 - - \\[.*\\+0000\\] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\"\n"));
    add_field(request, "Referer", "");
    EXPECT_THAT(line_of(access_format::combined, answered(&request)), EndsWith(" \"-\" \"-\"\n"));
    EXPECT_THAT(line_of(access_format::combined, answered(nullptr, 400)),
                EndsWith(" \"-\" 400 5 \"-\" \"-\"\n"));
    EXPECT_FALSE(json::parse(line_of(access_format::json, answered(nullptr))).contains("user"));
}

// No byte of a client's ends a line or a field. Readers need not know escapes of quotes.
TEST(access_log, clients_cannot_forge_lines_or_fields) {
    const std::regex strict(
        R"re([0-9.]+ - [!-~]+ \[[^\]]+\] "[A-Z]+ [!-~]+ HTTP/1\.1" 200 5 "[ !#-~]+" "[ !#-~]+"\n)re");
    std::string every;
    for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
    std::vector<std::string> all = {every, "\" 200 5 \"-\" \"-\"\n192.0.2.8 - - [", "a\\\" b",
                                    "\r\n"};
    for (const char byte : every) all.push_back("a" + std::string(1, byte) + "b");
    for (const std::string& text : all) {
        http1::request_head request = request_of("GET", "/x");
        // More than a parser of heads accepts in a target; fields cannot have control bytes.
        std::string value = "v";
        for (const char c : text) {
            if (c != ' ') request.target += c;
            if (http1::is_field_value("v" + std::string(1, c) + "v")) value += c;
        }
        value += "v";
        add_field(request, "Referer", value);
        add_field(request, "User-Agent", value);
        const std::string line = line_of(access_format::combined, answered(&request), text);
        EXPECT_TRUE(std::regex_match(line, strict)) << line;
        const std::string object = line_of(access_format::json, answered(&request), text);
        EXPECT_EQ(object.find('\n'), object.size() - 1);
        EXPECT_TRUE(json::accept(object)) << object;
    }
    http1::request_head request = request_of("GET", "/\"\\\x7f\xe4");
    EXPECT_THAT(line_of(access_format::common, answered(&request)),
                HasSubstr(R"("GET /\x22\x5C\x7F\xE4 HTTP/1.1")"));
    EXPECT_THAT(line_of(access_format::common, answered(&request), "CN=A B,O=\"C\""),
                HasSubstr(R"( - CN=A\x20B,O=\x22C\x22 [)"));
}

TEST(access_log, texts_of_clients_have_a_limit) {
    http1::request_head request = request_of("GET", "/" + std::string(5000, 'x'));
    add_field(request, "User-Agent", std::string(5000, 'y'));
    const std::string line = line_of(access_format::combined, answered(&request));
    EXPECT_THAT(line, HasSubstr(" /" + std::string(4095, 'x') + " HTTP/1.1\""));
    EXPECT_THAT(line, EndsWith("\"" + std::string(4096, 'y') + "\"\n"));
}

TEST(access_log, times_have_the_offset_of_their_day) {
    http1::request_head request = request_of("GET", "/");
    const auto time_at = [&](access_log_writer& writer, std::int64_t second) {
        const std::string line = writer.line(label_of(access_format::common, "192.0.2.7"),
                                             answered(&request), at_second(second));
        const std::size_t begin = line.find('[') + 1;
        return line.substr(begin, line.find(']') - begin);
    };
    const time_zone berlin("CET-1CEST,M3.5.0,M10.5.0/3");
    access_log_writer writer(access_format::common);
    constexpr std::int64_t forward = 1'774'746'000;  // 29 March 2026, 01:00 UTC
    EXPECT_EQ(time_at(writer, forward - 1), "29/Mar/2026:01:59:59 +0100");
    EXPECT_EQ(time_at(writer, forward), "29/Mar/2026:03:00:00 +0200");
    constexpr std::int64_t back = 1'792'890'000;  // 25 October 2026, 01:00 UTC
    EXPECT_EQ(time_at(writer, back - 1), "25/Oct/2026:02:59:59 +0200");
    EXPECT_EQ(time_at(writer, back), "25/Oct/2026:02:00:00 +0100");
    EXPECT_EQ(time_at(writer, back - 1), "25/Oct/2026:02:59:59 +0200");
    {
        const time_zone newfoundland("NST3:30");
        access_log_writer other(access_format::common);
        EXPECT_EQ(time_at(other, 0), "31/Dec/1969:20:30:00 -0330");
    }
    const time_zone kathmandu("<+0545>-5:45");
    access_log_writer other(access_format::common);
    EXPECT_EQ(time_at(other, 0), "01/Jan/1970:05:45:00 +0545");
}

TEST(access_log, the_address_of_a_client_is_one_that_readers_take) {
    const auto named = [](access_format format, std::string_view host) {
        return label_of(format, host).address;
    };
    for (const access_format format : {access_format::common, access_format::combined}) {
        EXPECT_EQ(named(format, "192.0.2.7"), "192.0.2.7");
        EXPECT_EQ(named(format, "2001:db8::1"), "2001:db8::1");
        EXPECT_EQ(named(format, "::ffff:192.0.2.7"), "192.0.2.7");
        EXPECT_EQ(named(format, "fe80::1%lo"), "fe80::1");
        EXPECT_EQ(log_label(format, endpoint(), "").address, "-");
        // The name that the client has chosen is not there.
        EXPECT_EQ(log_label(format, must(endpoint::unix_path("/a b\n")), "").address, "unix:");
    }
    EXPECT_EQ(named(access_format::json, "192.0.2.7"), "192.0.2.7:4711");
    EXPECT_EQ(named(access_format::json, "::ffff:192.0.2.7"), "192.0.2.7:4711");
    EXPECT_EQ(named(access_format::json, "2001:db8::1"), "[2001:db8::1]:4711");
    EXPECT_EQ(log_label(access_format::json, must(endpoint::unix_path("/a b\n")), "").address,
              "unix:/a b\n");
    EXPECT_EQ(log_label(access_format::json, endpoint(), "").address, "-");
}

class access_log_clients : public on_io_backend {
protected:
    access_log_clients() { write_file(folder_, "a.txt", "hello"); }

    subject make(json options) {
        options["root"] = folder_.path();
        options["access_log"] = logs_.file("log");
        return subject("http", with(options));
    }

    std::vector<std::string> lines() const {
        std::vector<std::string> all;
        std::ifstream file(logs_.file("log"));
        for (std::string line; std::getline(file, line);) all.push_back(line);
        return all;
    }
    task<void> wait_for_lines(std::size_t count) {
        co_await until([this, count] { return lines().size() >= count; });
    }

    temporary_folder folder_;
    temporary_folder logs_;
};

// The log's thread is none of the simulator's.
INSTANTIATE_TEST_SUITE_P(runtime, access_log_clients,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(access_log_clients, that_reset_at_once_are_named) {
    constexpr int clients = 10;
    for (const int threads : {1, 2}) {
        run([&]() -> task<void> {
            subject s = make({{"threads", threads}});
            co_await s.start();
            for (int i = 0; i < clients; ++i) {
                talker client = co_await talker::to(s->local());
                EXPECT_TRUE(
                    client.socket.try_write(as_bytes("GET /a.txt HTTP/1.1\r\nHost: x\r\n\r\n")));
                client.socket.abort();
            }
            co_await wait_for_lines(clients);
            co_await s->stop(0s);
        });
        const std::vector<std::string> all = lines();
        EXPECT_EQ(all.size(), std::size_t{clients});
        EXPECT_THAT(all,
                    Each(MatchesRegex("127\\.0\\.0\\.1 - - \\[.*\\] \"GET /a.txt HTTP/1.1\" .*")));
        std::filesystem::remove(logs_.file("log"));
    }
}

TEST_P(access_log_clients, that_close_in_the_middle_of_a_head_are_named) {
    run([this]() -> task<void> {
        subject s = make({{"bind", "::1"}, {"access_format", "combined"}});
        co_await s.start();
        for (int i = 0; i < 10; ++i) {
            talker client = co_await talker::to(s->local());
            EXPECT_TRUE(client.socket.try_write(as_bytes("GET /a.txt HTTP/1.1\r\nHo")));
            client.socket.close();
        }
        co_await wait_for_lines(10);
        co_await s->stop(0s);
    });
    EXPECT_THAT(lines(), Each(MatchesRegex("::1 - - \\[.*\\] \"-\" 400 [0-9]+ \"-\" \"-\"")));
}

// This side resets the connection, after which the kernel has forgotten the address.
TEST_P(access_log_clients, that_take_no_bytes_are_named) {
    write_file(folder_, "large", std::string(16 << 20, 'x'));
    run([this]() -> task<void> {
        subject s = make({{"write_timeout", "50ms"}});
        co_await s.start();
        talker client = co_await talker::to(s->local());
        co_await client.say("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
        co_await wait_for_lines(1);
        co_await s->stop(0s);
    });
    EXPECT_THAT(lines(),
                Each(MatchesRegex("127\\.0\\.0\\.1 - - .* \"GET /large HTTP/1.1\" 200 [0-9]+")));
}

TEST_P(access_log_clients, get_the_bytes_of_content_that_are_counted) {
    run([this]() -> task<void> {
        subject s = make({});
        co_await s.start();
        talker client = co_await talker::to(s->local());
        co_await client.say("HEAD /a.txt HTTP/1.1\r\nHost: x\r\n\r\n");
        EXPECT_EQ((co_await next_answer(client, false)).status(), "200");
        EXPECT_EQ((co_await get(client, "/a.txt", "Range: bytes=1-2\r\n")).content, "el");
        const answer found = co_await get(client, "/a.txt", "If-None-Match: *\r\n");
        EXPECT_EQ(found.status(), "304");
        co_await s->stop(0s);
    });
    EXPECT_THAT(lines(), ::testing::ElementsAre(EndsWith("\"HEAD /a.txt HTTP/1.1\" 200 0"),
                                                EndsWith("\"GET /a.txt HTTP/1.1\" 206 2"),
                                                EndsWith("\"GET /a.txt HTTP/1.1\" 304 0")));
}

TEST_P(access_log_clients, of_both_families_of_a_socket_have_addresses_of_their_own) {
    run([this]() -> task<void> {
        subject s = make({{"bind", "*"}});
        co_await s.start();
        for (const char* const host : {"127.0.0.1", "::1"}) {
            talker client = co_await talker::to(must(endpoint::ip(host, s->local().port())));
            EXPECT_EQ((co_await get(client, "/a.txt")).content, "hello");
        }
        co_await s->stop(0s);
    });
    const std::vector<std::string> all = lines();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_THAT(all[0], ::testing::StartsWith("127.0.0.1 - - ["));
    EXPECT_THAT(all[1], ::testing::StartsWith("::1 - - ["));
}

TEST_P(access_log_clients, of_a_unix_socket_have_one_word) {
    run([this]() -> task<void> {
        subject s("http", json{{"unix", logs_.file("socket")},
                               {"root", folder_.path()},
                               {"access_log", logs_.file("log")}});
        co_await s.start();
        EXPECT_EQ((co_await get_from(s, "/a.txt")).content, "hello");
        co_await s->stop(0s);
    });
    EXPECT_THAT(lines(), Each(MatchesRegex("unix: - - \\[.*\\] \"GET /a.txt HTTP/1.1\" 200 5")));
    EXPECT_EQ(lines().size(), 1U);
}

}  // namespace
}  // namespace eddy::runtime
