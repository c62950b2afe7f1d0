// Effects of a stream runtime's options, and values that it refuses.
#include "runtime/stream/options.hpp"

#include "runtime/keepalive_probe.hpp"
#include "runtime/options/option_effects.hpp"
#include "runtime/options/row_checks.hpp"
#include "runtime/scripting/limit_probes.hpp"
#include "runtime/stream/programs/programs.hpp"
#include "runtime/stream/testing.hpp"
#include "transport/test_certificates.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace eddy::runtime::stream {
namespace {

using namespace stream::testing;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A runtime of `in` with these options, which end soon if they do not say otherwise.
json stream_of(const temporary_folder& in, json options = {}) {
    return with(std::move(options),
                {{"handoff", "unix://" + in.file("s")}, {"delay", "1ms"}, {"messages", 2}});
}

std::string refusal_of(std::string_view type, const json& options) {
    const auto parsed = settings::parse(find_type(type)->options, options);
    if (!parsed) return parsed.error().message;
    const auto read = read_config(*parsed);
    return read ? std::string() : read.error().message;
}

task<void> clients_are_taken_at_the_socket(std::string type) {
    const temporary_folder folder;
    for (const std::string& uri : {"unix://" + folder.file("a"), folder.file("b"),
                                   "unix://@eddy-stream-" + std::to_string(::getpid())}) {
        subject s(type, stream_of(folder, {{"handoff", uri}}));
        co_await s.start();
        talker client = make_client(s, "{}");
        EXPECT_THAT(co_await client.rest(), HasSubstr("[DONE]")) << uri;
        co_await s->stop(0s);
    }
    EXPECT_THAT(refusal_of(type, json::object()), HasSubstr("--handoff unix:///PATH"));
    EXPECT_THAT(refusal_of(type, {{"handoff", "tcp://127.0.0.1:80"}}), HasSubstr("tcp://"));
    EXPECT_THAT(refusal_of(type, {{"handoff", "relative"}}), HasSubstr("relative"));
}

task<void> the_socket_is_of_the_type(std::string type) {
    const temporary_folder folder;
    for (const bool is_stream : {false, true}) {
        subject s(type, stream_of(folder, {{"handoff_type", is_stream ? "stream" : "seqpacket"}}));
        co_await s.start();
        talker client = make_client(s, "{}", is_stream ? SOCK_STREAM : SOCK_SEQPACKET);
        EXPECT_THAT(co_await client.rest(), HasSubstr("[DONE]"));
        EXPECT_THROW(connect_sender(s->local(), is_stream ? SOCK_SEQPACKET : SOCK_STREAM),
                     std::runtime_error);
        co_await s->stop(0s);
    }
}

task<void> the_file_has_the_mode(std::string type) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"mode", "0600"}}));
    co_await s.start();
    struct stat info;
    EXPECT_EQ(::stat(folder.file("s").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0600U);
    co_await s->stop(0s);
    for (const std::string_view bad : {"0888", "rw", "-1", "1777", ""})
        EXPECT_THAT(refusal_of(type, stream_of(folder, {{"mode", bad}})), HasSubstr("--mode"))
            << bad;
    // A socket without a file has none.
    EXPECT_THAT(refusal_of(type, {{"handoff", "unix://@name"}, {"mode", "0600"}}),
                HasSubstr("--mode has no effect with --handoff unix://@name"));
    EXPECT_EQ(refusal_of(type, {{"handoff", "unix://@name"}}), "");
}

task<void> the_file_is_given_away(std::string type) {
    const bool is_root = ::geteuid() == 0;
    const uid_t owner = is_root ? 12'345 : ::geteuid();
    const gid_t group = is_root ? 54'321 : ::getegid();
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"socket_owner", std::to_string(owner)},
                                       {"socket_group", std::to_string(group)}}));
    co_await s.start();
    struct stat info;
    EXPECT_EQ(::stat(folder.file("s").c_str(), &info), 0);
    EXPECT_EQ(info.st_uid, owner);
    EXPECT_EQ(info.st_gid, group);
    EXPECT_EQ(info.st_mode & 0777U, 0660U);
    talker client = make_client(s, "{}");
    EXPECT_THAT(co_await client.rest(), HasSubstr("[DONE]"));
    co_await s->stop(0s);
    EXPECT_NE(::stat(folder.file("s").c_str(), &info), 0) << "its file goes with it";
    for (const std::string name : {"socket_owner", "socket_group"}) {
        EXPECT_THAT(refusal_of(type, stream_of(folder, {{name, "no-such-name"}})),
                    HasSubstr("\"no-such-name\""));
        EXPECT_THAT(refusal_of(type, {{"handoff", "unix://@name"}, {name, "0"}}),
                    HasSubstr("which has no file"));
    }
}

task<void> other_users_are_refused(std::string type) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"allow_users", std::to_string(::getuid() + 1)}}));
    co_await s.start();
    talker client = make_client(s, "{}");
    EXPECT_EQ(co_await client.rest(), "");
    co_await s->stop(0s);
    EXPECT_THAT(refusal_of(type, stream_of(folder, {{"allow_users", "root,no-such-user"}})),
                HasSubstr("no user \"no-such-user\""));
}

task<void> silent_clients_are_probed(std::string type) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"delay", "1h"}}));
    co_await s.start();
    const auto of_a_new_client = [&](json changed) -> task<keepalive> {
        must_do(s->apply(s.parse(stream_of(folder, with(std::move(changed), {{"delay", "1h"}})))));
        kept_client made = co_await make_kept_client(s, "{}");
        static_cast<void>(must(co_await made.client.socket.read()));
        co_return keepalive_of(made.copy.native_handle());
    };
    EXPECT_EQ(co_await of_a_new_client(json::object()), (keepalive{1, 300, 100, 3}));
    EXPECT_EQ(co_await of_a_new_client({{"tcp_keepalive", "60s"}}), (keepalive{1, 60, 20, 3}));
    EXPECT_EQ((co_await of_a_new_client({{"tcp_keepalive", 0}})).on, 0);
    co_await s->stop(0s);
}

task<void> the_mock_source_answers(std::string type) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"source", "mock"}}));
    co_await s.start();
    talker client = make_client(s, "{}");
    EXPECT_THAT(co_await client.rest(), HasSubstr("Hello from Eddy!"));
    co_await s->stop(0s);
}

task<void> messages_come_at_their_pace(std::string type) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"delay", "50ms"}, {"messages", 4}}));
    co_await s.start();
    const time_point begun = loop::current().now();
    talker client = make_client(s, "{}");
    const std::string answer = co_await client.rest();
    EXPECT_GE(loop::current().now() - begun, 149ms)
        << "three pauses, the first from its arrival on";
    EXPECT_EQ(std::ranges::count(answer, '}'), 4);
    co_await s->stop(0s);
}

task<void> further_clients_are_refused(std::string type) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"max_connections", 1}, {"delay", "1h"}}));
    co_await s.start();
    talker first = make_client(s, "{}");
    talker second = make_client(s, "{}");
    EXPECT_THAT(co_await second.rest(), HasSubstr("\r\nRetry-After: "));
    EXPECT_THAT(co_await first.line(), StartsWith("HTTP/1.1 200"));
    must_do(s->apply(s.parse(stream_of(folder, {{"max_connections", 2}, {"delay", "1h"}}))));
    talker third = make_client(s, "{}");
    EXPECT_THAT(co_await third.line(), StartsWith("HTTP/1.1 200"));
    co_await s->stop(0s);
}

task<void> streams_have_a_longest_time(std::string type) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"max_stream_time", "20ms"}, {"delay", "1h"}}));
    co_await s.start();
    talker client = make_client(s, "{}");
    EXPECT_THAT(co_await client.rest(), HasSubstr("{\"error\":\"stream_too_long\"}"));
    must_do(s->apply(s.parse(stream_of(folder, {{"delay", "1h"}}))));
    talker longer = make_client(s, "{}");
    EXPECT_THAT(co_await longer.line(), StartsWith("HTTP/1.1 200"));
    co_await s->stop(0s);
    EXPECT_THAT(co_await longer.rest(), Not(HasSubstr("error")));
    EXPECT_THAT(refusal_of(type, stream_of(folder, {{"max_stream_time", "8d"}})),
                HasSubstr("--max-stream-time"));
}

task<void> streams_of_a_user_are_limited(std::string type) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"max_streams_per_user", 1}, {"delay", "1h"}}));
    co_await s.start();
    talker first = make_client(s, R"({"user_id":7})");
    EXPECT_THAT(co_await first.line(), StartsWith("HTTP/1.1 200"));
    talker second = make_client(s, R"({"user_id":7})");
    EXPECT_THAT(co_await second.rest(), StartsWith("HTTP/1.1 429 Too Many Requests\r\n"));
    must_do(s->apply(s.parse(stream_of(folder, {{"max_streams_per_user", 2}, {"delay", "1h"}}))));
    talker third = make_client(s, R"({"user_id":7})");
    EXPECT_THAT(co_await third.line(), StartsWith("HTTP/1.1 200"));
    co_await s->stop(0s);
}

task<void> events_of_a_user_are_limited(std::string type) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"events_per_minute", 2}}));
    co_await s.start();
    // A new minute may begin between two.
    std::string answer;
    for (int i = 0; i == 0 || answer.contains(" 200 "); ++i) {
        talker client = make_client(s, R"({"user_id":7})");
        answer = co_await client.rest();
        if (i == 0) EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
    }
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 429"));
    must_do(s->apply(s.parse(stream_of(folder))));
    talker client = make_client(s, R"({"user_id":7})");
    EXPECT_THAT(co_await client.rest(), StartsWith("HTTP/1.1 200"));
    co_await s->stop(0s);
    EXPECT_THAT(
        refusal_of(
            type,
            {{"handoff", "/s"}, {"source", "exec"}, {"exec", "true"}, {"events_per_minute", 1}}),
        HasSubstr("--events-per-minute has no effect with --source exec"));
}

task<void> messages_are_limited(std::string type) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"max_message", "20"}}));
    co_await s.start();
    talker fits = make_client(s, R"({"prompt":"1234567"})");
    EXPECT_THAT(co_await fits.rest(), StartsWith("HTTP/1.1 200"));
    talker large = make_client(s, R"({"prompt":"12345678"})");
    EXPECT_THAT(co_await large.rest(), StartsWith("HTTP/1.1 413"));
    co_await s->stop(0s);
}

/// Number of messages that a client that never reads was sent before its stream ended.
task<double> messages_to_one_that_never_reads(std::string type, std::string queue) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"max_queue", queue}, {"messages", 10'000}}));
    co_await s.start();
    client_ends ends = socket_pair();
    const int small = 1;
    ::setsockopt(ends.ours.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
    hand_over(s->local(), std::move(ends.ours), "{}");
    co_await until([&] { return count_of(s, "stream_errors_total", "client_too_slow") == 1; });
    const double sent = sample_of(*s, "chunks_sent_total").value();
    co_await s->stop(0s);
    co_return sent;
}

task<void> what_waits_is_limited(std::string type) {
    const double few = co_await messages_to_one_that_never_reads(type, "100");
    const double more = co_await messages_to_one_that_never_reads(type, "10000");
    EXPECT_GT(more, few + 100) << "some fifty bytes each";
}

/// Answer of a model to a client, by a runtime with these options; `asked` gets the request.
task<std::string> answer_of_model(std::string type, json options, std::string* asked,
                                  bool closes = true) {
    const temporary_folder folder;
    chat_api model({chunk("Good"), closes ? "data: [DONE]\n\n" : ""}, "200 OK", closes);
    options["source"] = "openai";
    options["source_url"] = model.url();
    subject s(type, with(std::move(options), {{"handoff", "unix://" + folder.file("s")}}));
    co_await s.start();
    talker client = make_client(s, "{}");
    std::string answer = co_await client.rest();
    *asked = model.requests.at(0);
    co_await s->stop(0s);
    co_await model.close();
    co_return answer;
}

task<void> a_source_has_a_url(std::string type) {
    std::string asked;
    EXPECT_THAT(co_await answer_of_model(type, {}, &asked), HasSubstr("Good"));
    EXPECT_THAT(asked, StartsWith("POST /v1/chat/completions "));
    const json bad = {{"handoff", "/s"}, {"source", "proxy"}, {"source_url", "ftp://a/"}};
    EXPECT_THAT(refusal_of(type, bad), HasSubstr("--source-url cannot be \"ftp://a/\""));
    const json spaced = {{"handoff", "/s"}, {"source", "proxy"}, {"source_url", "http://a b/"}};
    EXPECT_THAT(refusal_of(type, spaced), HasSubstr("--source-url cannot be \"http://a b/\""));
    EXPECT_THAT(refusal_of(type, {{"handoff", "/s"}, {"source_url", "http://a/"}}),
                HasSubstr("no effect with --source mock"));
}

task<void> a_source_may_be_at_a_socket(std::string type) {
    const temporary_folder folder;
    subject s(type, {{"handoff", "unix://" + folder.file("s")},
                     {"source", "proxy"},
                     {"source_url", "http://model/"},
                     {"source_socket", folder.file("api")}});
    co_await s.start();
    listener listening =
        must(loop::current().listen(must(endpoint::unix_path(folder.file("api")))));
    talker client = make_client(s, "{}");
    talker server(must(co_await listening.accept()));
    EXPECT_EQ(co_await line_of(server), "POST / HTTP/1.1");
    co_await s->stop(0s);
}

task<void> a_key_is_sent(std::string type) {
    const temporary_folder folder;
    std::ofstream(folder.file("key")) << "sk-1\n";
    std::ofstream(folder.file("bad")) << "two\nlines\n";
    std::string asked;
    co_await answer_of_model(type, {{"key_file", folder.file("key")}}, &asked);
    EXPECT_THAT(asked, HasSubstr("\r\nAuthorization: Bearer sk-1\r\n"));
    for (const std::string_view name : {"bad", "none"})
        EXPECT_THAT(refusal_of(type, {{"handoff", "/s"},
                                      {"source", "openai"},
                                      {"key_file", folder.file(std::string(name))}}),
                    StartsWith("--key-file: "));
}

task<void> keys_have_a_field_of_their_own(std::string type) {
    const temporary_folder folder;
    std::ofstream(folder.file("key")) << "sk-1\n";
    std::string asked;
    co_await answer_of_model(type, {{"key_file", folder.file("key")}, {"key_field", "api-key"}},
                             &asked);
    EXPECT_THAT(asked, HasSubstr("\r\napi-key: sk-1\r\n"));
    EXPECT_THAT(asked, Not(HasSubstr("Authorization")));
    for (const std::string_view bad : {"a b", "Connection", "content-length", "Host"})
        EXPECT_THAT(refusal_of(type, {{"handoff", "/s"}, {"source", "openai"}, {"key_field", bad}}),
                    StartsWith("--key-field: "))
            << bad;
}

task<void> keys_come_with_the_handoff(std::string type) {
    for (const bool may : {true, false}) {
        const temporary_folder folder;
        chat_api model({chunk("Good"), "data: [DONE]\n\n"});
        subject s(type, {{"handoff", "unix://" + folder.file("s")},
                         {"source", "openai"},
                         {"source_url", model.url()},
                         {"handoff_key", may}});
        co_await s.start();
        talker client = make_client(s, R"({"api_key":"sk-users"})");
        EXPECT_THAT(co_await client.rest(), HasSubstr("Good"));
        const bool is_sent = model.requests.at(0).contains("Authorization: Bearer sk-users\r\n");
        EXPECT_EQ(is_sent, may);
        co_await s->stop(0s);
        co_await model.close();
    }
}

task<void> other_backends_are_named(std::string type) {
    const temporary_folder folder;
    chat_api model({chunk("Good"), "data: [DONE]\n\n"});
    subject s(type, {{"handoff", "unix://" + folder.file("s")},
                     {"source", "openai"},
                     {"source_url", "http://127.0.0.1:1/"},
                     {"source_backend", {"b=" + model.url()}}});
    co_await s.start();
    for (const std::string message : {"{}", R"({"backend":"b"})"}) {
        talker client = make_client(s, message);
        EXPECT_THAT(co_await client.rest(), HasSubstr("Good")) << message;
    }
    EXPECT_EQ(count_of(s, "backend_fallbacks_total", "default"), 1);
    co_await s->stop(0s);
    co_await model.close();
    const auto refused = [&](const json& backends) {
        return refusal_of(type,
                          {{"handoff", "/s"}, {"source", "openai"}, {"source_backend", backends}});
    };
    EXPECT_THAT(refused({"a=http://a/", "a=http://b/"}), HasSubstr("two of the name a"));
    json many = json::array();
    for (std::size_t i = 0; i < max_named_backends; ++i)
        many.push_back("b" + std::to_string(i) + "=http://b/");
    EXPECT_EQ(refused(many), "");
    many.push_back("c=http://c/");
    EXPECT_THAT(refused(many), HasSubstr("at most 16 times"));
    EXPECT_THAT(refusal_of(type, {{"handoff", "/s"}, {"source_backend", {"a=http://a/"}}}),
                HasSubstr("no effect with --source mock"));
}

task<void> requests_have_fields_of_the_operator(std::string type) {
    std::string asked;
    co_await answer_of_model(type, {{"source_header", {"X-Title:  a: b"}}}, &asked);
    EXPECT_THAT(asked, HasSubstr("\r\nX-Title: a: b\r\n"));
    const auto refused = [&](const json& fields) {
        return refusal_of(type,
                          {{"handoff", "/s"}, {"source", "openai"}, {"source_header", fields}});
    };
    for (const std::string_view bad : {"a", "a:", "a b: c", ": c"})
        EXPECT_THAT(refused(json::array({bad})), HasSubstr("write NAME: VALUE")) << bad;
    for (const std::string_view own : {"Host: a", "content-length: 1", "Connection: close"})
        EXPECT_THAT(refused(json::array({own})), HasSubstr("decides about")) << own;
    json many = json::array();
    for (std::size_t i = 0; i < max_source_fields; ++i) many.push_back("a: b");
    EXPECT_EQ(refused(many), "");
    many.push_back("a: b");
    EXPECT_THAT(refused(many), HasSubstr("at most 32 times"));
}

/// The first bytes of a client; none where its handshake fails.
task<void> first_bytes_of_a_client(listener& at, std::string& bytes) {
    auto accepted = co_await at.accept();
    if (!accepted) co_return;
    const auto piece = co_await accepted->read();
    if (piece) bytes = piece->text();
}

task<void> authorities_of_a_source_are_trusted(std::string type) {
    const temporary_folder folder;
    transport::write_test_certificates(folder);
    auto secure = transport::listen("tls://127.0.0.1:0?cert=" + folder.file("both.pem"));
    if (!secure) co_return;  // built without TLS
    for (const bool is_trusted : {true, false}) {
        json options = {
            {"handoff", "unix://" + folder.file("s")},
            {"source", "openai"},
            {"source_url", "https://localhost:" + std::to_string(secure->local().port()) + "/v1"}};
        if (is_trusted) options["source_ca"] = folder.file("ca.pem");
        subject s(type, options);
        co_await s.start();
        talker client = make_client(s, "{}");
        scope accepting;
        std::string bytes;
        accepting.spawn(first_bytes_of_a_client(*secure, bytes));
        if (is_trusted) co_await until([&] { return !bytes.empty(); });
        if (is_trusted) EXPECT_THAT(bytes, StartsWith("POST /v1/chat/completions HTTP/1.1\r\n"));
        if (!is_trusted) EXPECT_THAT(co_await client.rest(), HasSubstr("backend_certificate"));
        accepting.cancel();
        co_await accepting.join();
        co_await s->stop(0s);
    }
    EXPECT_THAT(refusal_of(type, {{"handoff", "/s"}, {"source", "openai"}, {"source_ca", "ca"}}),
                HasSubstr("write the whole path"));
    EXPECT_THAT(refusal_of(type, {{"handoff", "/s"},
                                  {"source", "openai"},
                                  {"source_ca", folder.file("none.pem")}}),
                HasSubstr("--source-ca " + folder.file("none.pem") + " cannot be read"));
}

task<void> a_model_is_named(std::string type) {
    std::string asked;
    co_await answer_of_model(type, {{"model", "small"}}, &asked);
    EXPECT_THAT(asked, HasSubstr("\"model\":\"small\""));
}

task<void> events_of_a_completion_are_chosen(std::string type) {
    std::string asked;
    EXPECT_THAT(co_await answer_of_model(type, {{"events", "chunks"}}, &asked),
                HasSubstr("\r\n\r\n" + chunk("Good")));
    EXPECT_THAT(co_await answer_of_model(type, {}, &asked),
                HasSubstr("\r\n\r\ndata: {\"content\":\"Good\"}"));
    EXPECT_THAT(co_await answer_of_model(type, {{"events", "content"}}, &asked),
                HasSubstr("\r\n\r\ndata: {\"content\":\"Good\"}"));
    EXPECT_THAT(refusal_of(type, {{"handoff", "/s"}, {"events", "chunks"}}),
                HasSubstr("--events has no effect with --source mock"));
}

task<void> silent_sources_are_given_up(std::string type) {
    std::string asked;
    EXPECT_THAT(co_await answer_of_model(type, {{"source_timeout", "20ms"}}, &asked, false),
                HasSubstr("backend_stalled"));
}

task<void> clients_get_signs_of_life(std::string type) {
    std::string asked;
    EXPECT_THAT(co_await answer_of_model(type, {{"source_timeout", "100ms"}, {"heartbeat", "10ms"}},
                                         &asked, false),
                HasSubstr("\n\n: heartbeat\n\n"));
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"delay", "1h"}, {"heartbeat", "10ms"}}));
    co_await s.start();
    talker client = make_client(s, "{}");
    while (co_await client.line() != ": heartbeat") {
    }
    co_await s->stop(0s);
}

task<void> a_message_of_any_allowed_size_reaches_a_program(std::string type) {
    const temporary_folder folder;
    subject s(type, {{"handoff", "unix://" + folder.file("s")},
                     {"source", "exec"},
                     {"exec", "printf %s ${#HANDOFF_DATA}"},
                     {"max_message", "1MiB"}});
    co_await s.start();
    const std::string most = R"({"a":")" + std::string(programs::max_message - 8, 'x') + R"("})";
    talker fits = make_client(s, most);
    EXPECT_EQ(co_await fits.rest(), std::to_string(most.size()));
    talker large = make_client(s, most + " ");
    EXPECT_THAT(co_await large.rest(), StartsWith("HTTP/1.1 413"));
    co_await s->stop(0s);
}

task<void> a_program_answers(std::string type) {
    const temporary_folder folder;
    subject s(type, {{"handoff", "unix://" + folder.file("s")},
                     {"source", "exec"},
                     {"exec", "printf '%s|' \"$HANDOFF_DATA\"; head -c 3"}});
    co_await s.start();
    talker client = make_client(s, R"({"prompt":"hi"})");
    EXPECT_EQ(co_await client.bytes(16), R"({"prompt":"hi"}|)");
    EXPECT_EQ(s->count().connections_now, 1U);
    co_await client.say("abc");
    EXPECT_EQ(co_await client.rest(), "abc");
    co_await until([&] { return sample_of(*s, "streams_total") == 1; });
    // A web server's own flags and options do not reach the program.
    client_ends ends = socket_pair();
    EXPECT_EQ(::fcntl(ends.ours.get(), F_SETFL, O_RDWR | O_NONBLOCK), 0);
    const unique_fd kept(::fcntl(ends.ours.get(), F_DUPFD_CLOEXEC, 0));
    hand_over(s->local(), std::move(ends.ours), "{}");
    talker other(must(loop::current().adopt(std::move(ends.theirs))));
    EXPECT_EQ(co_await other.bytes(3), "{}|");
    EXPECT_EQ(::fcntl(kept.get(), F_GETFL) & O_NONBLOCK, 0);
    co_await other.say("abc");
    co_await until([&] { return sample_of(*s, "streams_total") == 2; });
    talker cut = make_client(s, "{}");
    EXPECT_EQ(co_await cut.bytes(3), "{}|");
    co_await s->stop(0s);
    EXPECT_EQ(co_await cut.rest(), "");
    EXPECT_TRUE(s.events.has("1 streams were cut off"));
    // The end of the bytes of a client is a hang-up, which a program may ignore.
    subject stays(type, {{"handoff", "unix://" + folder.file("s")},
                         {"source", "exec"},
                         {"exec", "trap '' HUP; echo on; cat"}});
    co_await stays.start();
    talker half_closed = make_client(stays, "{}");
    EXPECT_EQ(co_await half_closed.line(), "on");
    co_await half_closed.say("echo");
    must(half_closed.socket.shutdown_write());
    EXPECT_EQ(co_await half_closed.rest(), "echo");
    co_await stays->stop(0s);
    co_await a_message_of_any_allowed_size_reaches_a_program(type);
    EXPECT_THAT(refusal_of(type, {{"handoff", "/s"}, {"source", "exec"}}),
                HasSubstr("--exec COMMAND"));
    EXPECT_THAT(refusal_of(type, {{"handoff", "/s"}, {"exec", "true"}}),
                HasSubstr("no effect without --source exec"));
}

TEST(stream_options, say_how_many_streams_open_files_are_room_for) {
    config chosen;
    EXPECT_GT(streams_within(chosen, 1024), 700U);
    EXPECT_LT(streams_within(chosen, 1024), 768U) << "a quarter is a reserve";
    EXPECT_GT(streams_within(chosen, 20'000), 19'000U);
    chosen.source = source_type::lua;
    EXPECT_GT(streams_within(chosen, 20'000), 19'000U) << "a script opens no files";
    chosen.source = source_type::openai;
    EXPECT_LT(streams_within(chosen, 20'000), 10'000U) << "each has a connection to the source";
    chosen.source = source_type::exec;
    EXPECT_LT(streams_within(chosen, 20'000), 6'667U) << "each has two handles of its program";
    for (const std::uint64_t few : {0U, 3U, 30U}) EXPECT_GE(streams_within(chosen, few), 1U);
}

/// Answer to a client that is handed over for the second time.
task<std::string> answer_when_it_comes_again(std::string type, json options, bool expires = false) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, std::move(options)));
    co_await s.start();
    talker client = make_client(s, R"({"user_id":1,"request_id":"r"})");
    co_await client.rest();
    co_await until([&] { return sample_of(*s, "streams_total") == 1; });
    if (expires) co_await until([&] { return sample_of(*s, "replay_bytes") == 0; });
    talker again = make_client(s, R"({"user_id":1,"request_id":"r","last_event_id":"1"})");
    std::string answer = co_await again.rest();
    co_await s->stop(0s);
    co_return answer;
}

task<void> missed_events_are_replayed(std::string type) {
    EXPECT_THAT(co_await answer_when_it_comes_again(type, {{"replay_memory", "1MiB"}}),
                HasSubstr("\r\n\r\nid: 2\ndata: "));
    EXPECT_THAT(co_await answer_when_it_comes_again(type, {}), HasSubstr("\r\n\r\ndata: "));
    for (const std::string_view source : {"proxy", "exec"})
        EXPECT_THAT(refusal_of(type, {{"handoff", "/s"},
                                      {"source", source},
                                      {source == "exec" ? "exec" : "source_url", "http://a/"},
                                      {"replay_memory", 1}}),
                    HasSubstr("no effect with --source"));
}

task<void> streams_are_logged(std::string type) {
    const temporary_folder folder;
    subject s(type, stream_of(folder, {{"access_log", folder.file("log")}}));
    co_await s.start();
    talker client = make_client(s, R"({"user_id":7})");
    EXPECT_THAT(co_await client.rest(), HasSubstr("[DONE]"));
    co_await s->stop(0s);
    std::ifstream file(folder.file("log"));
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(json::parse(line).at("user"), "7");
    EXPECT_THAT(refusal_of(type, stream_of(folder, {{"access_log", "log"}})),
                HasSubstr("write the whole path"));
}

task<void> events_are_kept_for_a_time(std::string type) {
    EXPECT_THAT(co_await answer_when_it_comes_again(
                    type, {{"replay_memory", "1MiB"}, {"replay_time", "1ms"}}, true),
                HasSubstr("\r\n\r\nevent: reset\n"));
    EXPECT_THAT(refusal_of(type, {{"handoff", "/s"}, {"replay_time", "1s"}}),
                HasSubstr("without --replay-memory"));
}

task<void> a_script_answers(std::string type) {
    const temporary_folder folder;
    std::ofstream(folder.file("a.lua")) << "function handle(r) send('for ' .. r.prompt) end";
    subject s(type, {{"handoff", "unix://" + folder.file("s")},
                     {"source", "lua"},
                     {"lua", folder.file("a.lua")}});
    EXPECT_THAT(refusal_of(type, {{"handoff", "/s"}, {"source", "lua"}}), HasSubstr("--lua FILE"));
    EXPECT_THAT(refusal_of(type, {{"handoff", "/s"}, {"lua", folder.file("a.lua")}}),
                HasSubstr("no effect without --source lua"));
    EXPECT_THAT(
        refusal_of(type, {{"handoff", "/s"}, {"source", "lua"}, {"lua", folder.file("none.lua")}}),
        HasSubstr("cannot be read"));
    std::ofstream(folder.file("large.lua")) << std::string((4 << 20) + 1, ' ');
    EXPECT_THAT(
        refusal_of(type, {{"handoff", "/s"}, {"source", "lua"}, {"lua", folder.file("large.lua")}}),
        HasSubstr("larger than 4 MiB"));
    if (const auto started = co_await s->start(); !started) {
        EXPECT_THAT(started.error().message, HasSubstr("without scripts"));
        co_return;
    }
    talker client = make_client(s, R"({"prompt":"hi"})");
    EXPECT_THAT(co_await client.rest(), HasSubstr("data: {\"content\":\"for hi\"}"));
    co_await s->stop(0s);
}

/// Answer of a script with these options; empty where this is built without scripts.
task<std::string> answer_of(std::string type, std::string_view script, json more) {
    const temporary_folder folder;
    std::ofstream(folder.file("a.lua")) << script;
    subject s(type,
              with(std::move(more), {{"handoff", "unix://" + folder.file("s")},
                                     {"source", "lua"},
                                     {"lua", folder.file("a.lua")}}),
              "subject", neighbours());
    if (const auto started = co_await s->start(); !started) {
        EXPECT_THAT(started.error().message, HasSubstr("without scripts"));
        co_return "";
    }
    std::string answer = co_await make_client(s, "{}").rest();
    co_await s->stop(0s);
    co_return answer;
}

task<void> modules_are_found_in_a_folder(std::string type) {
    const temporary_folder modules;
    std::ofstream(modules.file("loud.lua")) << "return string.upper";
    for (const bool is_named : {true, false}) {
        const std::string answer = co_await answer_of(
            type,
            "local is_there, loud = pcall(require, 'loud')\n"
            "function handle() send(is_there and loud('hello') or 'none') end",
            {{"lua_path", json::array({is_named ? modules.path() : "/nowhere"})}});
        if (answer.empty()) co_return;
        EXPECT_THAT(answer, HasSubstr(is_named ? "HELLO" : "none"));
    }
}

task<void> memory_of_a_script_is_limited(std::string type) {
    for (const bool is_small : {true, false}) {
        const std::string answer = co_await answer_of(
            type,
            "function handle() send(tostring(pcall(function() return #(('x'):rep(4e6)) end))) end",
            {{"lua_memory", is_small ? "2M" : "32M"}});
        if (answer.empty()) co_return;
        EXPECT_THAT(answer, HasSubstr(is_small ? "false" : "true"));
    }
}

/// A timer has its turn while a stream computes, or not before its end.
task<void> slices_let_others_have_their_turn(std::string type) {
    for (const bool is_brief : {true, false}) {
        const temporary_folder folder;
        std::ofstream(folder.file("a.lua"))
            << "function handle()\n  for i = 1, 4e6 do end send('x')\nend";
        subject s(type, {{"handoff", "unix://" + folder.file("s")},
                         {"source", "lua"},
                         {"lua", folder.file("a.lua")},
                         {"lua_slice", is_brief ? "50us" : "1s"},
                         {"lua_time", "1h"}});
        if (!co_await s->start()) co_return;
        talker client = make_client(s, "{}");
        bool was_under_way = false;
        co_await until([&] {
            was_under_way |= sample_of(*s, "script_calls") == 1;
            return sample_of(*s, "script_calls_total") == 1;
        });
        EXPECT_EQ(was_under_way, is_brief);
        EXPECT_THAT(co_await client.rest(), HasSubstr("x"));
        co_await s->stop(0s);
    }
}

task<void> time_of_a_stream_is_limited(std::string type) {
    for (const bool is_brief : {true, false}) {
        const std::string answer =
            co_await answer_of(type, "function handle()\n  for i = 1, 4e6 do end send('x')\nend",
                               {{"lua_time", is_brief ? "1ms" : "1h"}});
        if (answer.empty()) co_return;
        EXPECT_THAT(answer, HasSubstr(is_brief ? "script_too_long" : "\"x\""));
    }
}

task<void> functions_that_block_need_the_flag(std::string type) {
    for (const bool is_unsafe : {true, false}) {
        const std::string answer = co_await answer_of(
            type,
            "function handle()\n"
            "  local _, why = pcall(eddy.blocking, function() return os.getenv('HOME') end)\n"
            "  send(tostring(why):find('--lua-unsafe', 1, true) and 'no' or 'yes')\nend",
            {{"lua_unsafe", is_unsafe}});
        if (answer.empty()) co_return;
        EXPECT_THAT(answer, HasSubstr(is_unsafe ? "yes" : "no"));
    }
}

/// Without a daemon: the flag decides which refusal it is.
task<void> runtimes_are_changed_with_the_flag_alone(std::string type) {
    for (const bool may : {true, false}) {
        const std::string answer =
            co_await answer_of(type, "function handle() send(select(2, pcall(eddy.stop, 'x'))) end",
                               {{"lua_admin", may}});
        if (answer.empty()) co_return;
        EXPECT_THAT(answer, HasSubstr(may ? "there is no daemon here" : "--lua-admin"));
    }
}

/// Done three times, in one call.
template <const limit_probe& Probe>
task<void> count_is_limited(std::string type) {
    for (const int most : probed_limits) {
        std::string script(limit_probes);
        script.append("function handle() send('made ' .. ").append(Probe.call).append(") end");
        const std::string answer =
            co_await answer_of(type, script, {{std::string(Probe.option), most}});
        if (answer.empty()) co_return;
        EXPECT_THAT(answer, HasSubstr("made " + std::to_string(most)));
    }
}

TEST(stream_options, each_is_read_into_its_member_and_changed_live) {
    const json before = {{"handoff", "unix:///s"}};
    const auto with_more = [&](json more) { return with(std::move(more), before); };
    const json openai = with_more({{"source", "openai"}});
    const json proxied = with_more({{"source", "proxy"}, {"source_url", "http://a"}});
    const json replayed = with_more({{"replay_memory", "1M"}});
    const json program = with_more({{"source", "exec"}, {"exec", "a"}});
    const temporary_folder folder;
    for (const char* const name : {"a", "b"}) std::ofstream(folder.file(name)) << "x = 1";
    const json scripted = with_more({{"source", "lua"}, {"lua", folder.file("a")}});
    const option_changes own = {{"handoff", {before, {{"handoff", "unix:///t"}}}},
                                {"mode", {before, {{"mode", "0600"}}}},
                                {"socket-owner", {before, {{"socket_owner", "7"}}}},
                                {"socket-group", {before, {{"socket_group", "7"}}}},
                                {"allow-users", {before, {{"allow_users", "0"}}}},
                                {"source", {proxied, {{"source", "openai"}}}},
                                {"exec", {program, {{"exec", "b"}}}},
                                {"source-url", {openai, {{"source_url", "http://b"}}}},
                                {"source-socket", {openai, {{"source_socket", "/b"}}}},
                                {"source-backend", {openai, {{"source_backend", {"b=http://b"}}}}},
                                {"source-header", {openai, {{"source_header", {"a: b"}}}}},
                                {"source-ca", {openai, {{"source_ca", folder.file("b")}}}},
                                {"key-field", {openai, {{"key_field", "api-key"}}}},
                                {"handoff-key", {openai, {{"handoff_key", true}}}},
                                {"events", {openai, {{"events", "chunks"}}}},
                                {"lua", {scripted, {{"lua", folder.file("b")}}}},
                                {"lua-path", {scripted, {{"lua_path", {"/a"}}}}},
                                {"lua-unsafe", {scripted, {{"lua_unsafe", true}}}},
                                {"lua-admin", {scripted, {{"lua_admin", true}}}},
                                {"lua-memory", {scripted, {{"lua_memory", "9M"}}}},
                                {"lua-slice", {scripted, {{"lua_slice", "9ms"}}}},
                                {"lua-time", {scripted, {{"lua_time", "9s"}}}},
                                {"lua-max-timers", {scripted, {{"lua_max_timers", 9}}}},
                                {"lua-max-sockets", {scripted, {{"lua_max_sockets", 9}}}},
                                {"lua-max-queue", {scripted, {{"lua_max_queue", 9}}}},
                                {"replay-time", {replayed, {{"replay_time", "9s"}}}},
                                {"tcp-keepalive", {before, {{"tcp_keepalive", "9s"}}}}};
    check_reading(option_rows(), read_config, before, own);
    check_live(option_rows(), read_config, before, own);
}

}  // namespace
}  // namespace eddy::runtime::stream

namespace eddy::runtime::testing {

effect_table stream_effects() {
    using namespace stream;
    effect_table all = {
        {{"stream", "handoff"}, {clients_are_taken_at_the_socket}},
        {{"stream", "handoff-type"}, {the_socket_is_of_the_type}},
        {{"stream", "mode"}, {the_file_has_the_mode}},
        {{"stream", "socket-owner"}, {the_file_is_given_away}},
        {{"stream", "socket-group"}, {the_file_is_given_away}},
        {{"stream", "allow-users"}, {other_users_are_refused}},
        {{"stream", "tcp-keepalive"}, {silent_clients_are_probed}},
        {{"stream", "source"}, {the_mock_source_answers}},
        {{"stream", "exec"}, {a_program_answers}},
        {{"stream", "lua"}, {a_script_answers}},
        {{"stream", "lua-path"}, {modules_are_found_in_a_folder}},
        {{"stream", "lua-memory"}, {memory_of_a_script_is_limited}},
        {{"stream", "lua-slice"}, {slices_let_others_have_their_turn}},
        {{"stream", "lua-time"}, {time_of_a_stream_is_limited}},
        {{"stream", "lua-unsafe"}, {functions_that_block_need_the_flag}},
        {{"stream", "lua-admin"}, {runtimes_are_changed_with_the_flag_alone}},
        {{"stream", "lua-max-timers"}, {count_is_limited<timers_probe>}},
        {{"stream", "lua-max-sockets"}, {count_is_limited<sockets_probe>}},
        {{"stream", "lua-max-queue"}, {count_is_limited<queue_probe>}},
        {{"stream", "replay-memory"}, {missed_events_are_replayed}},
        {{"stream", "access-log"}, {streams_are_logged}},
        {{"stream", "replay-time"}, {events_are_kept_for_a_time}},
        {{"stream", "source-url"}, {a_source_has_a_url}},
        {{"stream", "source-socket"}, {a_source_may_be_at_a_socket}},
        {{"stream", "source-backend"}, {other_backends_are_named}},
        {{"stream", "source-header"}, {requests_have_fields_of_the_operator}},
        {{"stream", "source-ca"}, {authorities_of_a_source_are_trusted}},
        {{"stream", "key-file"}, {a_key_is_sent}},
        {{"stream", "key-field"}, {keys_have_a_field_of_their_own}},
        {{"stream", "handoff-key"}, {keys_come_with_the_handoff}},
        {{"stream", "model"}, {a_model_is_named}},
        {{"stream", "events"}, {events_of_a_completion_are_chosen}},
        {{"stream", "source-timeout"}, {silent_sources_are_given_up}},
        {{"stream", "heartbeat"}, {clients_get_signs_of_life}},
        {{"stream", "delay"}, {messages_come_at_their_pace}},
        {{"stream", "messages"}, {messages_come_at_their_pace}},
        {{"stream", "max-connections"}, {further_clients_are_refused}},
        {{"stream", "max-stream-time"}, {streams_have_a_longest_time}},
        {{"stream", "max-streams-per-user"}, {streams_of_a_user_are_limited}},
        {{"stream", "events-per-minute"}, {events_of_a_user_are_limited}},
        {{"stream", "max-message"}, {messages_are_limited}},
        {{"stream", "max-queue"}, {what_waits_is_limited}},
    };
    // The sockets that are handed over are the kernel's.
    for (auto& [option, its] : all) its.on = seen_on::kernel;
    return all;
}

}  // namespace eddy::runtime::testing
