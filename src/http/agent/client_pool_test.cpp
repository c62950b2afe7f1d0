// Pools of clients against sessions: connections and their limits, redirects, proxies, decoding,
// cookies, times.
#include <eddy/http/client_pool.hpp>

#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/net/unix.hpp>

#include "http/codings/testing.hpp"
#include "http/testing.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using testing::error_of;
using testing::must;
using testing::sample_text;

class http_client_pool : public testing::with_server {
protected:
    http_client_pool() {
        limits_ = session_limits();
        options_.proxies = {};
        handler_.answer = [this](request& incoming) { return answer(incoming); };
    }

    /// By the path: what the server saw, a redirect, or a wait.
    task<response> answer(request& incoming) {
        const auto body = co_await incoming.collect();
        if (!body) co_return response();
        if (incoming.path() == "/to") {
            const std::string status(incoming.query("status").value_or("302"));
            co_return redirect(*incoming.query("url"), std::stoi(status));
        }
        if (incoming.path() == "/slow") must(co_await go_on_.wait());
        if (incoming.path() == "/large") co_return text(std::string(1 << 20, 'x'));
        if (incoming.path() == "/cookie") {
            response set = text("set");
            set.add("Set-Cookie", "a=1; Path=/").add("Set-Cookie", "b=2; Path=/other");
            co_return set;
        }
        if (incoming.path() == "/packed" || incoming.path() == "/damaged") {
            std::string content = testing::encoded(content_coding::br, sample_text(200'000));
            if (incoming.path() == "/damaged") content.resize(content.size() / 2);
            response packed(200, "text/plain", std::move(content));
            packed.add("Content-Encoding", "br");
            co_return packed;
        }
        if (incoming.path() == "/stacked") {
            // So many codings in turn.
            std::string content =
                incoming.query("zeros") ? std::string(8'000'000, '\0') : sample_text(200'000);
            std::string names;
            const int count = std::stoi(std::string(incoming.query("count").value_or("2")));
            for (int i = 0; i < count; ++i) {
                const content_coding next = i == 1 ? content_coding::br : content_coding::gzip;
                content = testing::encoded(next, content);
                names += std::string(names.empty() ? "" : ", ") + std::string(to_string(next));
            }
            response packed(200, "text/plain", std::move(content));
            packed.add("Content-Encoding", names);
            co_return packed;
        }
        co_return text(seen(incoming) + "|" + incoming.content());
    }

    static std::string seen(const request& incoming) {
        std::string text = std::string(incoming.method()) + " " + std::string(incoming.target());
        for (const http1::header field : incoming.headers())
            text += "|" + std::string(field.name) + "=" + std::string(field.value);
        return text;
    }

    using steps = std::function<task<void>(client_pool& web)>;

    /// Runs `body` with a pool and two servers, `here_` and `there_`.
    void with_pool(steps body) {
        run([&]() -> task<void> {
            listener first = must(here().listen(loopback()));
            listener second = must(here().listen(loopback()));
            here_ = "http://127.0.0.1:" + std::to_string(first.local().port());
            there_ = "http://127.0.0.1:" + std::to_string(second.local().port());
            client_pool web(options_);
            co_await with_scope([&](scope& serving) {
                serving.spawn(accept_all(first, serving));
                serving.spawn(accept_all(second, serving));
                return body(web);
            });
        });
    }

    task<void> accept_all(listener& from, scope& serving) {
        for (;;) {
            auto accepted = co_await from.accept();
            if (!accepted) co_return;
            ++connections_;
            serving.spawn(serve(std::move(*accepted), handler_, limits_));
        }
    }

    /// The body of the response, or "error: ..." where there is none.
    static task<std::string> fetch(client_pool& web, pool_request request) {
        auto answered = co_await web.send(std::move(request));
        if (!answered) co_return "error: " + answered.error().message();
        auto text = co_await answered->body().whole(1 << 21);
        if (!text) co_return "error: " + text.error().message();
        co_return *text;
    }
    static task<std::string> fetch(client_pool& web, std::string url) {
        pool_request request;
        request.url = std::move(url);
        return fetch(web, std::move(request));
    }
    static task<void> fetch_into(client_pool& web, std::string url, std::string& into) {
        into = co_await fetch(web, std::move(url));
    }

    static std::string redirect_to(const std::string& url, int status = 302) {
        return "/to?status=" + std::to_string(status) + "&url=" + http1::percent_encode(url);
    }

    static std::string failure(std::error_code of) { return "error: " + of.message(); }

    client_pool_options options_;
    std::string here_;
    std::string there_;
    int connections_ = 0;
    event go_on_;
};

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

TEST_P(http_client_pool, keeps_connections) {
    with_pool([&](client_pool& web) -> task<void> {
        for (int i = 0; i < 3; ++i) {
            const std::string got = co_await fetch(web, here_ + "/a?b#c");
            EXPECT_TRUE(got.starts_with("GET /a?b|Host=" + here_.substr(7) + "|Accept-Encoding="));
        }
        EXPECT_EQ(connections_, 1);
        EXPECT_EQ(web.idle_connections(), 1U);
        co_await fetch(web, there_);
        EXPECT_EQ(connections_, 2);
        EXPECT_EQ(web.connections(), 2U);
        EXPECT_EQ(co_await fetch(web, "nonsense"), failure(errc::bad_address));
        EXPECT_EQ(web.connections(), 2U);
    });
}

TEST_P(http_client_pool, a_hundred_requests_at_once_share_it) {
    options_.host_connections = 4;
    with_pool([&](client_pool& web) -> task<void> {
        std::vector<std::string> got(100);
        co_await join_scope([&](scope& all) -> task<void> {
            for (std::size_t i = 0; i < got.size(); ++i)
                all.spawn(fetch_into(web, here_ + "/" + std::to_string(i), got[i]));
            co_return;
        });
        for (std::size_t i = 0; i < got.size(); ++i)
            EXPECT_TRUE(got[i].starts_with("GET /" + std::to_string(i) + "|")) << got[i];
        EXPECT_EQ(connections_, 4);
        EXPECT_EQ(web.waiting(), 0U);
    });
}

TEST_P(http_client_pool, requests_that_wait_have_limits) {
    options_.host_connections = 1;
    options_.waiting = 1;
    options_.waiting_time = 30ms;
    with_pool([&](client_pool& web) -> task<void> {
        std::string first;
        std::string second;
        co_await join_scope([&](scope& all) -> task<void> {
            all.spawn(fetch_into(web, here_ + "/slow", first));
            co_await loop::current().yield();
            all.spawn(fetch_into(web, here_ + "/b", second));
            co_await loop::current().yield();
            EXPECT_EQ(web.waiting(), 1U);
            EXPECT_EQ(co_await fetch(web, here_ + "/c"), failure(errc::limit_reached));
            EXPECT_TRUE(has(co_await fetch(web, there_ + "/d"), "GET /d")) << "another host";
            must(co_await loop::current().sleep_for(50ms));
            EXPECT_EQ(second, failure(errc::timed_out));
            EXPECT_EQ(web.waiting(), 0U);
            go_on_.set();
        });
        EXPECT_TRUE(first.starts_with("GET /slow"));
    });
}

TEST_P(http_client_pool, an_idle_connection_gives_way_to_another_host) {
    options_.connections = 1;
    with_pool([&](client_pool& web) -> task<void> {
        co_await fetch(web, here_);
        EXPECT_EQ(web.idle_connections(), 1U);
        EXPECT_TRUE(has(co_await fetch(web, there_ + "/x"), "GET /x"));
        EXPECT_EQ(web.connections(), 1U);
        co_await fetch(web, here_);
        EXPECT_EQ(connections_, 3);
        auto held = must(co_await web.get(here_ + "/held"));
        std::string waited;
        co_await join_scope([&](scope& all) -> task<void> {
            all.spawn(fetch_into(web, there_ + "/y", waited));
            co_await loop::current().yield();
            EXPECT_EQ(web.waiting(), 1U);
            must(co_await held.body().whole(1000));
            pool_response(std::move(held));  // gives it back
        });
        EXPECT_TRUE(has(waited, "GET /y")) << waited;
    });
}

TEST_P(http_client_pool, idle_connections_are_closed_in_time) {
    options_.limits.keep_time = 20ms;
    with_pool([&](client_pool& web) -> task<void> {
        co_await fetch(web, here_);
        co_await fetch(web, there_);
        // The first one may have been closed by now, on a busy machine.
        EXPECT_GE(web.idle_connections(), 1U);
        for (int i = 0; i < 1000 && web.connections() > 0; ++i)
            must(co_await loop::current().sleep_for(10ms));
        EXPECT_EQ(web.connections(), 0U);
        EXPECT_TRUE(has(co_await fetch(web, here_), "GET /"));
    });
}

TEST_P(http_client_pool, a_connection_with_an_unread_body_is_closed) {
    with_pool([&](client_pool& web) -> task<void> {
        {
            auto large = must(co_await web.get(here_ + "/large"));
            EXPECT_FALSE(must(co_await large.body().read()).empty());
            EXPECT_EQ(web.connections(), 1U);
        }
        EXPECT_EQ(web.connections(), 0U);
        EXPECT_EQ((co_await fetch(web, here_ + "/large")).size(), 1U << 20);
        EXPECT_EQ(web.idle_connections(), 1U);
    });
}

TEST_P(http_client_pool, bodies_stream_both_ways) {
    handler_.answer = [](request& incoming) -> task<response> {
        std::size_t bytes = 0;
        while (const auto piece = co_await incoming.body().read()) bytes += piece->size();
        co_return text(std::to_string(bytes));
    };
    with_pool([&](client_pool& web) -> task<void> {
        pool_request upload;
        upload.method = "POST";
        upload.url = here_;
        upload.body = body::streamed([](body_writer& to) -> task<result<>> {
            const std::string piece(10'000, 'x');
            for (int i = 0; i < 50; ++i) {
                const auto sent = co_await to.write(piece);
                if (!sent) co_return sent;
            }
            co_return result<>();
        });
        EXPECT_EQ(co_await fetch(web, std::move(upload)), "500000");
    });
}

TEST_P(http_client_pool, redirects_follow_the_rules_of_methods) {
    with_pool([&](client_pool& web) -> task<void> {
        struct rule {
            std::string method;
            int status;
            std::string becomes;
        };
        for (const rule& each : {rule{"GET", 302, "GET"},
                                 {"HEAD", 303, "HEAD"},
                                 {"POST", 301, "GET"},
                                 {"POST", 302, "GET"},
                                 {"POST", 303, "GET"},
                                 {"PUT", 302, "PUT"},
                                 {"PUT", 303, "GET"},
                                 {"POST", 307, "POST"},
                                 {"POST", 308, "POST"}}) {
            pool_request asked;
            asked.method = each.method;
            asked.url = here_ + redirect_to("../end?q", each.status);
            const bool has_body = each.method == "POST" || each.method == "PUT";
            if (has_body) asked.body = "content";
            must(asked.headers.add("Content-Type", "text/x"));
            auto answered = must(co_await web.send(std::move(asked)));
            EXPECT_EQ(answered.status, 200);
            EXPECT_EQ(answered.url, here_ + "/end?q");
            const std::string got = must(co_await answered.body().whole(10'000));
            if (each.method == "HEAD") continue;
            EXPECT_TRUE(got.starts_with(each.becomes + " /end?q|")) << got;
            const bool keeps = has_body && each.becomes != "GET";
            EXPECT_EQ(got.ends_with("|content"), keeps) << got;
            EXPECT_EQ(has(got, "Content-Type"), keeps || !has_body) << got;
        }
        EXPECT_EQ(connections_, 1) << "the redirects' bodies are read away";
    });
}

TEST_P(http_client_pool, redirects_have_a_limit) {
    options_.redirects = 2;
    with_pool([&](client_pool& web) -> task<void> {
        const std::string once = redirect_to("/end");
        const std::string twice = redirect_to(once);
        EXPECT_TRUE((co_await fetch(web, here_ + twice)).starts_with("GET /end"));
        EXPECT_EQ(co_await fetch(web, here_ + redirect_to(twice)), failure(errc::limit_reached));
    });
    options_.redirects = 0;
    with_pool([&](client_pool& web) -> task<void> {
        EXPECT_EQ(must(co_await web.get(here_ + redirect_to("/end"))).status, 302);
    });
}

TEST_P(http_client_pool, a_redirect_that_cannot_be_followed_is_the_response) {
    with_pool([&](client_pool& web) -> task<void> {
        for (const char* target : {"ftp://a/", "http://", "javascript:x"})
            EXPECT_EQ(must(co_await web.get(here_ + redirect_to(target))).status, 302) << target;
        pool_request once;
        once.method = "POST";
        once.url = here_ + redirect_to("/end", 307);
        once.body = body::streamed(
            [](body_writer& to) -> task<result<>> { co_return co_await to.write("content"); });
        EXPECT_EQ(must(co_await web.send(std::move(once))).status, 307);
    });
}

TEST_P(http_client_pool, credentials_stay_with_their_origin) {
    with_pool([&](client_pool& web) -> task<void> {
        const auto ask = [&](std::string url) {
            pool_request asked;
            asked.url = std::move(url);
            for (const char* name : {"Authorization", "Cookie", "X-Mine"})
                must(asked.headers.add(name, "secret"));
            return fetch(web, std::move(asked));
        };
        const std::string same = co_await ask(here_ + redirect_to("/end"));
        EXPECT_TRUE(has(same, "Authorization=secret") && has(same, "Cookie=secret")) << same;
        const std::string other = co_await ask(here_ + redirect_to(there_ + "/end"));
        EXPECT_TRUE(has(other, "GET /end|X-Mine=secret") || has(other, "X-Mine=secret")) << other;
        EXPECT_FALSE(has(other, "Authorization") || has(other, "Cookie")) << other;
        EXPECT_TRUE(has(other, "Host=" + there_.substr(7))) << other;

        const std::string user = "http://me:pw@" + here_.substr(7);
        EXPECT_TRUE(has(co_await fetch(web, user), "Authorization=Basic bWU6cHc="));
        EXPECT_TRUE(has(co_await fetch(web, user + redirect_to("/end")), "Authorization=Basic "));
        EXPECT_FALSE(has(co_await fetch(web, user + redirect_to(there_)), "Authorization"));
    });
}

TEST_P(http_client_pool, content_is_decoded) {
    with_pool([&](client_pool& web) -> task<void> {
        auto answered = must(co_await web.get(here_ + "/packed"));
        EXPECT_FALSE(answered.headers.contains("Content-Encoding"));
        EXPECT_FALSE(answered.headers.contains("Content-Length"));
        std::string all;
        while (const auto piece = co_await answered.body().read()) all += *piece;
        EXPECT_EQ(all, sample_text(200'000));
        EXPECT_EQ(co_await fetch(web, here_ + "/damaged"), failure(errc::truncated));

        pool_request own;
        own.url = here_ + "/packed";
        must(own.headers.add("Accept-Encoding", "br"));
        auto raw = must(co_await web.send(std::move(own)));
        EXPECT_EQ(raw.headers.find("Content-Encoding"), "br");
        EXPECT_LT(must(co_await raw.body().whole(1 << 20)).size(), 100'000U);

        pool_request head;
        head.method = "HEAD";
        head.url = here_ + "/packed";
        auto fields = must(co_await web.send(std::move(head)));
        EXPECT_TRUE(fields.body().ended());
        EXPECT_EQ(fields.headers.find("Content-Encoding"), "br");
    });
    options_.expansion = {.ratio = 2, .free_bytes = 0};
    with_pool([&](client_pool& web) -> task<void> {
        EXPECT_EQ(co_await fetch(web, here_ + "/packed"), failure(errc::limit_reached));
    });
}

TEST_P(http_client_pool, content_is_decoded_that_was_encoded_twice) {
    options_.expansion = {.ratio = 2000};
    with_pool([&](client_pool& web) -> task<void> {
        auto answered = must(co_await web.get(here_ + "/stacked"));
        EXPECT_FALSE(answered.headers.contains("Content-Encoding"));
        std::string all;
        while (const auto piece = co_await answered.body().read()) all += *piece;
        EXPECT_EQ(all, sample_text(200'000));
        EXPECT_EQ(co_await fetch(web, here_ + "/stacked"), sample_text(200'000));
        // Each coding is within the limit, but not both.
        auto bomb = must(co_await web.get(here_ + "/stacked?zeros"));
        std::error_code end;
        while (!end) end = error_of(co_await bomb.body().read());
        EXPECT_EQ(end, errc::limit_reached);
        EXPECT_EQ(co_await fetch(web, here_ + "/stacked?count=3"), failure(errc::unsupported));
        EXPECT_EQ(co_await fetch(web, here_ + "/stacked"), sample_text(200'000));
    });
}

TEST_P(http_client_pool, cookies_are_kept_by_option) {
    for (const bool keeps : {false, true}) {
        options_.cookies = keeps;
        with_pool([&](client_pool& web) -> task<void> {
            co_await fetch(web, here_ + "/cookie");
            const std::string got = co_await fetch(web, here_ + "/x");
            EXPECT_EQ(has(got, "Cookie=a=1|"), keeps) << got;
            EXPECT_FALSE(has(got, "b=2")) << got;
        });
    }
}

TEST_P(http_client_pool, a_proxy_gets_whole_urls) {
    with_pool([&](client_pool& web) -> task<void> {
        client_pool_options by_proxy = options_;
        by_proxy.proxies.http = "http://me:pw@" + there_.substr(7);
        by_proxy.proxies.no_proxy = "direct.example";
        client_pool through(by_proxy);
        const std::string got = co_await fetch(through, "http://no.such.host/a?b");
        EXPECT_TRUE(got.starts_with("GET http://no.such.host/a?b|Host=no.such.host|")) << got;
        EXPECT_TRUE(has(got, "Proxy-Authorization=Basic bWU6cHc=")) << got;
        co_await fetch(through, "http://another.host/");
        EXPECT_EQ(through.connections(), 1U) << "hosts share the connection to the proxy";
        static_cast<void>(web);
    });
}

TEST_P(http_client_pool, connects_elsewhere_when_asked) {
    with_pool([&](client_pool& web) -> task<void> {
        transport::address named;
        named.kind = transport::scheme::unix_socket;
        named.path = "@eddy-pool-test-" + std::to_string(::getpid());
        listener other = must(unix_socket::listen(named.path));
        co_await with_scope([&](scope& serving) -> task<void> {
            serving.spawn(accept_all(other, serving));
            for (const char* path : {"/a", "/b"}) {
                pool_request asked;
                asked.url = std::string("http://app.example") + path;
                asked.connect_to = named;
                const std::string got = co_await fetch(web, std::move(asked));
                EXPECT_TRUE(got.starts_with("GET " + std::string(path) + "|Host=app.example|"));
            }
            EXPECT_EQ(connections_, 1);
        });
    });
}

TEST_P(http_client_pool, the_total_time_includes_the_body) {
    options_.total_time = 50ms;
    handler_.answer = [&](request& incoming) -> task<response> {
        if (incoming.path() == "/head") must(co_await go_on_.wait());
        co_return response(200, "text/plain",
                           body::streamed([&](body_writer& to) -> task<result<>> {
                               const auto sent = co_await to.write("begin");
                               if (!sent) co_return sent;
                               co_return co_await go_on_.wait();
                           }));
    };
    with_pool([&](client_pool& web) -> task<void> {
        EXPECT_EQ(co_await fetch(web, here_ + "/head"), failure(errc::timed_out));
        auto answered = must(co_await web.get(here_ + "/body"));
        EXPECT_EQ(must(co_await answered.body().read()), "begin");
        EXPECT_EQ(error_of(co_await answered.body().read()), errc::timed_out);
        go_on_.set();
    });
}

TEST_P(http_client_pool, closing_ends_what_waits) {
    options_.host_connections = 1;
    with_pool([&](client_pool& web) -> task<void> {
        auto held = must(co_await web.get(here_ + "/held"));
        co_await fetch(web, there_);
        std::string waited;
        co_await join_scope([&](scope& all) -> task<void> {
            all.spawn(fetch_into(web, here_ + "/x", waited));
            co_await loop::current().yield();
            web.close();
            co_return;
        });
        EXPECT_EQ(waited, failure(errc::closed));
        EXPECT_EQ(co_await fetch(web, here_), failure(errc::closed));
        EXPECT_EQ(web.connections(), 1U);
        EXPECT_TRUE(must(co_await held.body().whole(1000)).starts_with("GET /held"));
        pool_response(std::move(held));
        EXPECT_EQ(web.connections(), 0U);
    });
}

TEST_P(http_client_pool, a_response_may_outlive_the_pool) {
    with_pool([&](client_pool&) -> task<void> {
        auto web = std::make_unique<client_pool>(options_);
        auto held = must(co_await web->get(here_ + "/held"));
        web.reset();
        EXPECT_TRUE(must(co_await held.body().whole(1000)).starts_with("GET /held"));
    });
}

TEST_P(http_client_pool, cancelled_requests_leave_nothing) {
    options_.host_connections = 1;
    with_pool([&](client_pool& web) -> task<void> {
        std::string first;
        std::string second;
        scope asking;
        asking.spawn(fetch_into(web, here_ + "/slow", first));
        asking.spawn(fetch_into(web, here_ + "/slow", second));
        must(co_await loop::current().sleep_for(5ms));
        EXPECT_EQ(web.waiting(), 1U);
        asking.cancel();
        co_await asking.join();
        EXPECT_EQ(web.waiting(), 0U);
        EXPECT_EQ(web.connections(), 0U);
        go_on_.set();
        EXPECT_TRUE(has(co_await fetch(web, here_ + "/x"), "GET /x"));
    });
}

EDDY_HTTP_ON_EVERY_BACKEND(http_client_pool);

}  // namespace
}  // namespace eddy::http
