// A server without memory: each allocation of a request's life fails once, alone and with all that
// come after it. The client gets a whole response, or its connection is closed; the server goes on.
#include <eddy/http/router.hpp>
#include <eddy/http/server.hpp>
#include <eddy/http/static_files.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/frames.hpp>

#include "base/counted_memory.hpp"
#include "base/temporary_folder.hpp"
#include "http/spare_buffers.hpp"
#include "io/testing.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
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
    served_site(backend_kind kind, const std::string& folder) {
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

    /// What fails is seen as the end of the connection.
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

class allocation_failures : public ::testing::TestWithParam<backend_kind> {
protected:
    allocation_failures() {
        std::ofstream(folder_.file("small.txt")) << "small";
        std::ofstream(folder_.file("large.txt")) << file_text;
    }

    /// What the connection has sent until its end; `disarm` is called when it is silent, at the
    /// latest.
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
                         ::testing::Values(backend_kind::uring, backend_kind::epoll),
                         eddy::testing::backend_name);

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

}  // namespace
}  // namespace eddy::http

#endif
