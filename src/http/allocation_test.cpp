// A server without memory: each allocation of a request's life fails once, alone and with all later
// ones. The client gets a whole response, or its connection is closed; the server keeps serving.
// Also the cost of an exchange over a kept connection, which allocates nothing.
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>
#include <eddy/http/static_files.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/frames.hpp>

#include "base/counted_memory.hpp"
#include "base/files/temporary_folder.hpp"
#include "http/client/connection_pool.hpp"
#include "http/client/testing.hpp"
#include "http/session/spare_buffers.hpp"
#include "io/counting_resource.hpp"
#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#if EDDY_COUNTS_ALLOCATIONS

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using eddy::testing::error_of;
using eddy::testing::live_blocks;
using eddy::testing::must;
using eddy::testing::no_memory;
using eddy::testing::one_failure;
using eddy::testing::temporary_folder;

constexpr std::size_t streamed_pieces = 20;
const std::string piece(3000, 'p');
const std::string file_text(100'000, 'f');  // above static_files::whole_limit

task<response> hello(request&) { co_return text("hello"); }

task<response> take_whole(request& incoming) {
    if (!co_await incoming.collect()) co_return response();
    co_return text(std::move(incoming.content()));
}

task<response> count_pieces(request& incoming) {
    std::size_t bytes = 0;
    while (auto got = co_await incoming.body().read()) bytes += got->size();
    co_return text(std::to_string(bytes));
}

task<response> send_pieces(request&) {
    auto pieces = [](body_writer& to) -> task<result<>> {
        for (std::size_t i = 0; i < streamed_pieces; ++i) {
            const std::string copy = piece;
            if (auto sent = co_await to.write(copy); !sent) co_return fail(sent.error());
        }
        co_return result<>{};
    };
    co_return response(200, "text/plain", body::streamed(pieces));
}

task<response> show_user(request& incoming) {
    co_return text("user " + std::to_string(incoming.path_integer("id")) + " of " +
                   std::string(incoming.query("of").value_or("none")));
}

task<response> add_field(request& incoming, chain rest) {
    response answer = co_await rest(incoming);
    answer.add("X-Seen", "a value that is longer than a short string");
    co_return answer;
}

/// A router with the files of one loop.
class site_handler final : public request_handler {
public:
    explicit site_handler(const std::string& folder)
        : files_(must(static_files::open(folder, {}))) {
        routes_.get("/hello", hello)
            .post("/whole", take_whole)
            .post("/count", count_pieces)
            .get("/stream", send_pieces)
            .get("/users/{id:int}", show_user)
            .get("/files/{path...}", [this](request& incoming) {
                return files_.serve(incoming, incoming.path_parameter("path"));
            });
        routes_.use(add_field).use(add_field);
    }
    task<response> handle(request& incoming) override { return routes_.dispatch(incoming); }
    response reject(int status, std::string_view what) override {
        return routes_.reject(status, what);
    }

private:
    static_files files_;
    router routes_;
};

/// A server on a loop and a thread of its own, whose coroutine frames come from malloc.
class served_site {
public:
    served_site(io_backend_kind kind, const std::string& folder) {
        std::promise<endpoint> begun;
        std::future<endpoint> address = begun.get_future();
        thread_ = std::thread([this, kind, folder, &begun] {
            loop_options options;
            options.kind = kind;
            const auto own = must(loop::create(options));
            own->run(with_frames(*std::pmr::new_delete_resource(),
                                 [&] { return serve(folder, begun); }));
        });
        address_ = address.get();
    }
    ~served_site() {
        call([this] { ending_->set(); });
        thread_.join();
    }
    served_site(const served_site&) = delete;
    served_site& operator=(const served_site&) = delete;

    /// Runs `f` on the loop's thread and awaits it.
    void call(std::function<void()> f) {
        // Allocates on this thread alone, so that the loop's blocks can be counted.
        struct posted_call final : posted_work {
            explicit posted_call(std::function<void()>& of) : work(of) {}
            void run() noexcept override {
                work();
                done.set_value();
            }
            std::function<void()>& work;
            std::promise<void> done;
        };
        posted_call posted(f);
        std::future<void> done = posted.done.get_future();
        must(loop_.post(posted));
        done.get();
    }
    const endpoint& address() const noexcept { return address_; }
    std::uint64_t connections() {
        std::uint64_t all = 0;
        call([&] { all = site_->connections(); });
        return all;
    }

private:
    task<void> serve(std::string folder, std::promise<endpoint>& begun) {
        server_options options;
        options.listen = {"tcp://127.0.0.1:0"};
        server site([folder](std::size_t) { return std::make_shared<site_handler>(folder); },
                    std::move(options));
        must(co_await site.start());
        event ending;
        site_ = &site;
        ending_ = &ending;
        loop_ = executor::current();
        begun.set_value(site.addresses()[0]);
        must(co_await ending.wait());
        co_await site.stop(1s);
    }

    std::thread thread_;
    executor loop_;
    endpoint address_;
    server* site_ = nullptr;
    event* ending_ = nullptr;
};

/// A client with a blocking socket, which ends its requests with "Connection: close".
class raw_client {
public:
    explicit raw_client(const endpoint& where) : socket_(::socket(where.family(), SOCK_STREAM, 0)) {
        if (::connect(socket_.get(), where.data(), where.size()) != 0)
            throw std::runtime_error("connect failed");
    }

    /// Failures are ignored; they show as the end of the connection.
    void send(std::string_view text) {
        static_cast<void>(::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL));
    }
    /// Reads on until the server closes or resets; false when it is silent for `patience`.
    bool read_to_end(std::string& into, std::chrono::milliseconds patience) {
        for (;;) {
            pollfd waiting{socket_.get(), POLLIN, 0};
            if (::poll(&waiting, 1, static_cast<int>(patience.count())) <= 0) return false;
            char room[16 * 1024];
            const auto got = ::recv(socket_.get(), room, sizeof room, 0);
            if (got <= 0) return true;
            into.append(room, static_cast<std::size_t>(got));
        }
    }

private:
    unique_fd socket_;
};

struct answer {
    int status = 0;
    std::string content;
    bool is_whole = false;
};

/// The responses in what a connection has sent; the last one may be cut off.
std::vector<answer> split(std::string_view got) {
    std::vector<answer> all;
    while (!got.empty()) {
        http1::response_parser parser;
        parser.expect_response_to("GET");
        byte_buffer content;
        answer each;
        for (;;) {
            const http1::step step = parser.collect(got, content);
            got.remove_prefix(step.consumed);
            if (step.what == http1::event::head) each.status = parser.head().status;
            if (step.what == http1::event::error)
                ADD_FAILURE() << "malformed: " << parser.error().what << " in "
                              << got.substr(0, 200);
            each.is_whole = step.what == http1::event::end;
            if (step.what != http1::event::head && step.what != http1::event::body) break;
        }
        each.content = content.text();
        const bool is_last = !each.is_whole;
        all.push_back(std::move(each));
        if (is_last) break;
    }
    return all;
}

struct scenario {
    std::string name;
    std::string sent;
    std::vector<std::string> contents;  ///< of the responses, which are all 200
};

std::vector<scenario> scenarios() {
    const std::string close = "Host: x\r\nConnection: close\r\n";
    const std::string large(20'000, 'b');
    std::string chunks;
    for (int i = 0; i < 10; ++i) chunks += "7d0\r\n" + std::string(2000, 'c') + "\r\n";
    std::string streamed;
    for (std::size_t i = 0; i < streamed_pieces; ++i) streamed += piece;
    return {
        {"a plain GET", "GET /hello HTTP/1.1\r\n" + close + "\r\n", {"hello"}},
        {"parameters and middleware",
         "GET /users/17?of=a%20group%20with%20a%20long%20name HTTP/1.1\r\n" + close + "\r\n",
         {"user 17 of a group with a long name"}},
        {"a collected body",
         "POST /whole HTTP/1.1\r\n" + close + "Content-Length: " + std::to_string(large.size()) +
             "\r\n\r\n" + large,
         {large}},
        {"a chunked upload",
         "POST /count HTTP/1.1\r\n" + close + "Transfer-Encoding: chunked\r\n\r\n" + chunks +
             "0\r\n\r\n",
         {"20000"}},
        {"a streamed response", "GET /stream HTTP/1.1\r\n" + close + "\r\n", {streamed}},
        {"a small file", "GET /files/small.txt HTTP/1.1\r\n" + close + "\r\n", {"small"}},
        {"a large file", "GET /files/large.txt HTTP/1.1\r\n" + close + "\r\n", {file_text}},
        {"a pipelined pair",
         "GET /hello HTTP/1.1\r\nHost: x\r\n\r\nGET /users/3 HTTP/1.1\r\n" + close + "\r\n",
         {"hello", "user 3 of none"}},
        {"no such route", "GET /nothing HTTP/1.1\r\n" + close + "\r\n", {}},
        {"no valid request", "GET /hello HTTP/1.1\r\nHost: x\r\nbad field\r\n\r\n", {}},
    };
}

class allocation_failures : public ::testing::TestWithParam<io_backend_kind> {
protected:
    allocation_failures() {
        std::ofstream(folder_.file("small.txt")) << "small";
        std::ofstream(folder_.file("large.txt")) << file_text;
    }

    /// All bytes that the connection has sent until its end. `disarm` is called when the connection
    /// is silent, at the latest.
    static std::string exchange(const endpoint& where, const std::string& sent,
                                const std::function<void()>& disarm) {
        raw_client client(where);
        client.send(sent);
        std::string got;
        if (!client.read_to_end(got, 100ms)) {
            disarm();
            EXPECT_TRUE(client.read_to_end(got, 10s)) << "neither answered nor closed";
        }
        return got;
    }

    static void expect_valid(const scenario& of, const std::string& got) {
        const std::vector<answer> all = split(got);
        if (of.contents.empty()) return;
        EXPECT_LE(all.size(), of.contents.size());
        for (std::size_t i = 0; i < all.size() && i < of.contents.size(); ++i) {
            if (all[i].status >= 500) {
                EXPECT_TRUE(all[i].status == 500 || all[i].status == 503) << all[i].status;
            } else if (all[i].is_whole) {
                EXPECT_EQ(all[i].status, 200);
                EXPECT_EQ(all[i].content, of.contents[i]);
            } else {
                EXPECT_TRUE(all[i].status == 200 || all[i].status == 0);
                EXPECT_TRUE(of.contents[i].starts_with(all[i].content));
            }
        }
    }

    static void expect_right(const scenario& of, const std::string& got) {
        const std::vector<answer> all = split(got);
        EXPECT_GE(all.size(), 1U) << of.name;
        for (std::size_t i = 0; i < of.contents.size(); ++i) {
            if (i >= all.size()) return ADD_FAILURE() << of.name << " is not answered";
            EXPECT_TRUE(all[i].is_whole);
            EXPECT_EQ(all[i].status, 200);
            EXPECT_EQ(all[i].content, of.contents[i]);
        }
    }

    static void await_quiet(served_site& site) {
        const auto deadline = std::chrono::steady_clock::now() + 60s;
        while (site.connections() > 0 && std::chrono::steady_clock::now() < deadline)
            std::this_thread::sleep_for(1ms);
        EXPECT_EQ(site.connections(), 0U);
    }

    temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(http, allocation_failures,
                         ::testing::Values(io_backend_kind::uring, io_backend_kind::epoll),
                         eddy::testing::io_backend_name);

TEST_P(allocation_failures, leave_a_server_that_answers_and_leaks_nothing) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the sanitizer's allocator is another one";
    served_site site(GetParam(), folder_.path());
    const auto nothing = [] {};
    for (const scenario& each : scenarios()) {
        SCOPED_TRACE(each.name);
        for (int i = 0; i < 3; ++i)
            expect_right(each, exchange(site.address(), each.sent, nothing));
        await_quiet(site);
        const auto held = [&site] {
            std::int64_t blocks = 0;
            site.call([&] { blocks = live_blocks() - static_cast<std::int64_t>(spare_buffers()); });
            return blocks;
        };
        const std::int64_t held_before = held();
        for (const bool fails_once : {true, false}) {
            // Both are made, and die, on the loop's thread.
            std::variant<std::monostate, std::unique_ptr<one_failure>, std::unique_ptr<no_memory>>
                armed;
            std::uint64_t points = 0;
            for (bool has_failed = true; has_failed; ++points) {
                std::uint64_t before = 0;
                site.call([&] {
                    before = eddy::testing::refusals();
                    if (fails_once)
                        armed = std::make_unique<one_failure>(points);
                    else
                        armed = std::make_unique<no_memory>(points);
                });
                const auto disarm = [&] {
                    eddy::testing::mallocs_left = eddy::testing::no_limit;
                    armed = std::monostate();
                    has_failed = eddy::testing::refusals() != before;
                };
                const std::string got =
                    exchange(site.address(), each.sent, [&] { site.call(disarm); });
                site.call(disarm);
                SCOPED_TRACE("failure " + std::to_string(points) +
                             (fails_once ? " alone" : " and all after it"));
                expect_valid(each, got);
                if (!has_failed) expect_right(each, got);
                expect_right(each, exchange(site.address(), each.sent, nothing));
                if (HasFailure()) return;
                ASSERT_LT(points, 2000U);
            }
            EXPECT_GT(points, 5U) << "nothing was allocated";
            await_quiet(site);
            EXPECT_LE(held(), held_before + 2) << "leaked";
        }
    }
}

/// An exchange of a kept connection: taken from the pool, a request without content, a response
/// with a length, returned to the pool. The server is played without coroutines.
class kept_exchange : public testing::with_connection {
protected:
    static constexpr std::string_view answer =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nServer: x\r\nContent-Length: "
        "5\r\n\r\nhello";

    static connection_key key() {
        connection_key made;
        made.place = "backend.example.with.a.name.that.is.longer.than.a.short.string";
        made.port = 80;
        return made;
    }

    /// Runs `body` with a pool that has one idle connection, and the stream of its server.
    void with_pool(std::function<task<void>(connection_pool& pool, stream& server)> body) {
        run([&]() -> task<void> {
            connection_pool pool(
                {.of_upstream = 4, .of_all = 4, .waiting = 4, .waiting_time = 1s, .idle_time = 1h});
            eddy::testing::connection both = co_await connect();
            pool_connection* const first = pool.try_take(key());
            first->through =
                std::make_shared<client_connection>(std::move(both.client), limits_of_test());
            pool.give_back(*first);
            co_await body(pool, both.server);
            EXPECT_EQ(pool.idle(), 1U);
            pool.close();
        });
    }

    /// The same bytes, and waits, of streams alone.
    static task<void> carry(eddy::testing::connection& both, std::size_t times) {
        const std::string_view request = "GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n";
        for (std::size_t i = 0; i < times; ++i) {
            EXPECT_EQ(error_of(co_await with_timeout(duration{}, both.client.read())),
                      errc::timed_out);
            must(co_await both.client.write_all(request));
            must(co_await both.server.read());
            must(co_await both.server.write_all(answer));
            must(co_await both.client.read());
        }
    }

    static task<void> exchange(connection_pool& pool, stream& server, std::size_t times) {
        for (std::size_t i = 0; i < times; ++i) {
            pool_connection* const taken = pool.try_take(key());
            client_connection& over = *taken->through;
            EXPECT_TRUE(co_await over.is_quiet());
            must(begin(over));
            must(co_await over.finish());
            std::size_t asked = 0;
            while (asked < 30) asked += must(co_await server.read()).bytes().size();
            must(co_await server.write_all(answer));
            must(co_await over.read_head());
            EXPECT_EQ(over.head().status, 200);
            std::size_t got = 0;
            for (;;) {
                auto next = over.try_read();
                if (!next) next = co_await over.response_body().read();
                if (!*next) break;
                got += (*next)->size();
            }
            EXPECT_EQ(got, 5U);
            pool.give_back(*taken);
        }
    }
};
EDDY_HTTP_ON_EVERY_BACKEND(kept_exchange);

TEST_P(kept_exchange, takes_three_coroutine_frames) {
    with_pool([](connection_pool& pool, stream& server) -> task<void> {
        constexpr std::size_t times = 10;
        co_await exchange(pool, server, 1);
        eddy::testing::counting_resource frames;
        std::size_t made = 0;
        co_await with_frames(frames, [&]() -> task<void> {
            const std::size_t before = frames.made();
            co_await exchange(pool, server, times);
            made = frames.made() - before - 1;  // without that of exchange()
        });
        RecordProperty("frames_each", std::to_string(made / times));
        std::printf("%.1f frames for each exchange\n", static_cast<double>(made) / times);
        EXPECT_LE(made, 3 * times);
    });
}

TEST_P(kept_exchange, allocates_nothing) {
    if (!frame_pool_recycles()) GTEST_SKIP() << "the sanitizer's allocator is another one";
    with_pool([this](connection_pool& pool, stream& server) -> task<void> {
        constexpr std::size_t times = 100;
        const auto cost_of = [](task<void> first, task<void> rest) -> task<std::uint64_t> {
            co_await std::move(first);
            const std::uint64_t before = eddy::testing::allocations();
            co_await std::move(rest);
            co_return eddy::testing::allocations() - before;
        };
        const std::uint64_t made =
            co_await cost_of(exchange(pool, server, 10), exchange(pool, server, times));
        // The simulator allocates for what it carries.
        eddy::testing::connection both = co_await connect();
        const std::uint64_t carried = co_await cost_of(carry(both, 10), carry(both, times));
        std::printf("%.2f allocations for each exchange, %.2f of them the carrier's\n",
                    static_cast<double>(made) / times, static_cast<double>(carried) / times);
        EXPECT_LE(made, carried);
        if (!simulated()) EXPECT_EQ(carried, 0U);
    });
}

}  // namespace
}  // namespace eddy::http

#endif
