// The generator's loop: every connection sends a pipeline encoded beforehand, counts the replies as
// they come, and sends the next one. Values are checked in a second pass, which is not timed. A
// row says how busy both sides were, and is void when the generator was the limit.
#include <eddy/wire/resp.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/histogram.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "cli/bench/commands.hpp"
#include "cli/bench/measure.hpp"
#include "cli/bench/resp_workload.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <numeric>

namespace eddy::cli::bench {
namespace {

struct options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 6379;
    std::size_t clients = 50;
    bench_shape shape;
    std::vector<std::string> tests = {"set", "get", "lpush", "lpop", "sadd", "hset"};
    int server_pid = 0;
    int timeout_s = 10;
    bool json = false;
    bool progress = false;
    io_backend_kind io_backend = io_backend_kind::automatic;
};

/// A row of the report.
struct row {
    std::string test;
    std::uint64_t requests = 0;
    std::uint64_t errors = 0;
    double seconds = 0;
    double generator_cpu = 0;
    double server_cpu = 0;  // 0 when no --server-pid was given
    bool verified = false;
    histogram latency;

    double rate() const { return static_cast<double>(requests) / seconds; }
    /// Every reply came, none was an error, and the checked ones were right.
    bool is_right() const { return verified && errors == 0; }
    /// The generator had no time left while the server had: the figure is the generator's.
    bool is_void() const { return generator_cpu > 0.95 && server_cpu > 0 && server_cpu < 0.95; }
};

constexpr const char* not_resp = "the server sent something that is not RESP";
constexpr const char* too_many_replies = "the server sent more replies than it was sent commands";

/// One run of one workload over all connections.
class run {
public:
    run(const workload& work, std::uint64_t batches) : work_(work), left_(batches) {}

    task<void> drive(stream& connection) {
        resp::reply_counter replies;
        while (left_ > 0 && failure_.empty()) {
            --left_;
            const std::string_view batch = work_.batch(next_);
            next_ = next_ + 1 == work_.batches() ? 0 : next_ + 1;
            const auto sent_at = steady::now();
            if (auto sent = co_await connection.write_all(batch); !sent) {
                fail("sending failed: " + sent.error().message());
                co_return;
            }
            for (std::size_t missing = work_.pipeline(); missing > 0;) {
                auto received = co_await connection.read();
                if (!received) {
                    fail("the server closed a connection: " + received.error().message());
                    co_return;
                }
                const std::uint64_t came = replies.count(received->text());
                if (replies.malformed() || came > missing) {
                    fail(replies.malformed() ? not_resp : too_many_replies);
                    co_return;
                }
                missing -= came;
                replies_ += came;
            }
            latency_.record(static_cast<std::uint64_t>((steady::now() - sent_at).count()));
            done_ += work_.pipeline();
        }
        errors_ += replies.errors();
        finished_ = steady::now();
    }

    std::uint64_t done() const { return done_; }
    /// Also those of pipelines that are not whole yet.
    std::uint64_t replies() const { return replies_; }
    std::uint64_t errors() const { return errors_; }
    const histogram& latency() const { return latency_; }
    steady::time_point finished() const { return finished_; }
    const std::string& failure() const { return failure_; }
    void fail(std::string_view why) {
        if (failure_.empty()) failure_ = why;
    }

private:
    const workload& work_;
    std::uint64_t left_;
    std::size_t next_ = 0;
    std::uint64_t done_ = 0;
    std::uint64_t replies_ = 0;
    std::uint64_t errors_ = 0;
    steady::time_point finished_{};
    histogram latency_;
    std::string failure_;
};

class generator {
public:
    explicit generator(const options& wanted) : options_(wanted) {}

    task<void> operator()(std::vector<row>& rows) {
        co_await connect();
        for (const std::string& name : options_.tests) {
            const auto work = workload::make(name, options_.shape);
            EDDY_ASSERT(work.has_value());  // read_tests() has checked it
            co_await prepare(*work);
            rows.push_back(co_await measure(*work));
            rows.back().verified = co_await verify(*work);
        }
    }

private:
    task<void> connect() {
        auto server = endpoint::ip(options_.host, options_.port);
        if (!server) give_up(fmt::format("'{}' is no numeric address", options_.host));
        for (std::size_t i = 0; i < options_.clients; ++i) {
            auto connected = co_await with_timeout(patience(), loop::current().connect(*server));
            if (!connected)
                give_up(fmt::format("cannot connect to {}: {}. Is the server running?",
                                    server->to_string(), connected.error().message()));
            connections_.push_back(std::move(*connected));
        }
    }

    /// Sends a pipeline of commands and awaits that many replies, all without error.
    task<void> ask(std::string commands, std::size_t count) {
        resp::reply_counter replies;
        // Replies are read meanwhile: a large preparation would fill both socket buffers.
        co_await join_scope([&](scope& children) -> task<void> {
            children.spawn(send_all(connections_[0], std::move(commands)));
            co_return co_await count_replies(connections_[0], replies, count);
        });
        if (replies.errors() > 0) give_up("the server answered a preparation with an error");
    }
    static task<void> send_all(stream& connection, std::string commands) {
        if (auto sent = co_await connection.write_all(commands); !sent)
            give_up("sending failed: " + sent.error().message());
    }
    task<void> count_replies(stream& connection, resp::reply_counter& replies, std::size_t count) {
        while (replies.replies() < count) {
            auto received = co_await with_timeout(patience(), connection.read());
            if (!received && received.error() == errc::timed_out) give_up(no_answer());
            if (!received) give_up("the server closed: " + received.error().message());
            replies.count(received->text());
            if (replies.malformed()) give_up(not_resp);
        }
        if (replies.replies() > count) give_up(too_many_replies);
    }

    task<void> prepare(const workload& work) {
        using enum workload::preparation;
        constexpr std::size_t chunk = 1000;
        std::string commands;
        std::size_t count = 0;
        const std::uint64_t total = work.needs() == none           ? 0
                                    : work.needs() == set_all_keys ? options_.shape.keys
                                                                   : pops();
        if (work.needs() == fill_list) {
            encode_command(commands, {"DEL", "mylist"});
            co_await ask(std::exchange(commands, {}), 1);
        }
        for (std::uint64_t i = 0; i < total; ++i) {
            if (work.needs() == set_all_keys)
                encode_command(commands, {"SET", bench_key(i), work.value()});
            else
                encode_command(commands, {"RPUSH", "mylist", work.value()});
            if (++count == chunk || i + 1 == total) {
                co_await ask(std::exchange(commands, {}), std::exchange(count, 0));
                progress(
                    fmt::format("{}: preparing {:.0f} %", work.name(),
                                100.0 * static_cast<double>(i + 1) / static_cast<double>(total)));
            }
        }
    }

    std::uint64_t batches() const {
        return std::max<std::uint64_t>(1, options_.shape.requests / options_.shape.pipeline);
    }
    /// Every pop of the timed and of the checking pass finds an element.
    std::uint64_t pops() const { return (batches() + 1) * options_.shape.pipeline; }

    task<row> measure(const workload& work) {
        run timed(work, batches());
        const double own_before = own_cpu_seconds();
        const double server_before = process_cpu_seconds(options_.server_pid);
        const auto begun = steady::now();
        co_await join_scope([&](scope& children) -> task<void> {
            for (stream& connection : connections_) children.spawn(timed.drive(connection));
            co_await attend(children, timed, work, begun);
        });
        const double seconds = std::chrono::duration<double>(timed.finished() - begun).count();
        if (!timed.failure().empty()) give_up(timed.failure());

        row made;
        made.test = work.name();
        made.requests = timed.done();
        made.errors = timed.errors();
        made.seconds = seconds;
        made.generator_cpu = (own_cpu_seconds() - own_before) / seconds;
        made.server_cpu = (process_cpu_seconds(options_.server_pid) - server_before) / seconds;
        made.latency = timed.latency();
        co_return made;
    }

    /// Until they are done: shows how far they are, and ends them when no reply comes any more.
    task<void> attend(scope& children, run& timed, const workload& work, steady::time_point begun) {
        std::uint64_t replies = 0;
        auto heard = begun;
        while (children.children() > 0) {
            // Short enough that a quick run is not prolonged noticeably by the last nap.
            static_cast<void>(co_await loop::current().sleep_for(std::chrono::milliseconds(20)));
            const auto now = steady::now();
            if (std::exchange(replies, timed.replies()) != timed.replies()) heard = now;
            if (now - heard >= patience()) {
                timed.fail(no_answer());
                children.cancel();
            }
            const double seconds = std::chrono::duration<double>(now - begun).count();
            progress(fmt::format("{}: {:.0f} % {:.2f} M/s", work.name(),
                                 100.0 * static_cast<double>(timed.done()) /
                                     static_cast<double>(batches() * options_.shape.pipeline),
                                 static_cast<double>(timed.done()) / seconds / 1e6));
        }
    }

    duration patience() const { return std::chrono::seconds(options_.timeout_s); }
    std::string no_answer() const {
        return fmt::format("the server has not answered for {} s; --timeout makes the wait longer",
                           options_.timeout_s);
    }

    /// Sends one pipeline again and checks every reply.
    task<bool> verify(const workload& work) {
        stream& connection = connections_[0];
        auto sent = co_await with_timeout(patience(), connection.write_all(work.batch(0)));
        if (!sent && sent.error() == errc::timed_out) give_up(no_answer());
        if (!sent) co_return false;
        resp::reply_parser parser;
        byte_buffer input;
        std::int64_t last = 0;
        for (std::size_t seen = 0; seen < work.pipeline();) {
            const resp::reply_outcome next = parser.next(input.text());
            if (next.status == resp::parse_status::error) co_return false;
            if (next.status == resp::parse_status::need_more) {
                auto received = co_await with_timeout(patience(), connection.read());
                if (!received && received.error() == errc::timed_out) give_up(no_answer());
                if (!received) co_return false;
                input.append(received->text());
                continue;
            }
            if (!as_expected(work, next.event, last, seen == 0)) co_return false;
            ++seen;
            input.consume(next.consumed);
        }
        const bool nothing_more = input.text().empty();
        co_return nothing_more;
    }

    static bool as_expected(const workload& work, const resp::reply_event& reply,
                            std::int64_t& last, bool first) {
        using enum workload::reply_kind;
        const std::int64_t before = std::exchange(last, reply.integer);
        switch (work.expected()) {
            case ok: return reply.type == resp::reply_type::simple && reply.text == "OK";
            case pong: return reply.type == resp::reply_type::simple && reply.text == "PONG";
            case value: return reply.type == resp::reply_type::bulk && reply.text == work.value();
            case integer: return reply.type == resp::reply_type::integer;
            case increasing:
                return reply.type == resp::reply_type::integer &&
                       (first || reply.integer == before + 1);
        }
        return false;
    }

    void progress(const std::string& text) { progress_.show(text); }

    const options& options_;
    std::vector<stream> connections_;
    progress_line progress_{options_.progress};
};

void print_table(const std::vector<row>& rows, const options& wanted) {
    progress_line(wanted.progress).clear();
    fmt::print("{:<8} {:>10} {:>10} {:>10} {:>12} {:>11} {:>11}  {}\n", "test", "M ops/s", "p50 us",
               "p99 us", "server ns/op", "server CPU", "own CPU", "verdict");
    for (const row& each : rows) {
        const bool server = wanted.server_pid != 0;
        fmt::print("{:<8} {:>10.3f} {:>10.1f} {:>10.1f} {:>12} {:>11} {:>11.2f}  {}\n", each.test,
                   each.rate() / 1e6, static_cast<double>(each.latency.percentile(50)) / 1e3,
                   static_cast<double>(each.latency.percentile(99)) / 1e3,
                   server ? fmt::format("{:.1f}", each.server_cpu * 1e9 / each.rate()) : "-",
                   server ? fmt::format("{:.2f}", each.server_cpu) : "-", each.generator_cpu,
                   !each.verified    ? "WRONG REPLIES"
                   : each.errors > 0 ? fmt::format("{} error replies", each.errors)
                   : each.is_void()  ? "void: the generator was the limit"
                                     : "ok");
    }
}

void print_json(const std::vector<row>& rows) {
    nlohmann::json all = nlohmann::json::array();
    for (const row& each : rows)
        all.push_back({{"test", each.test},
                       {"ops_per_second", each.rate()},
                       {"p50_us", static_cast<double>(each.latency.percentile(50)) / 1e3},
                       {"p99_us", static_cast<double>(each.latency.percentile(99)) / 1e3},
                       {"requests", each.requests},
                       {"seconds", each.seconds},
                       {"generator_cpu", each.generator_cpu},
                       {"server_cpu", each.server_cpu},
                       {"server_ns_per_op", each.server_cpu * 1e9 / each.rate()},
                       {"void", each.is_void()},
                       {"verified", each.verified},
                       {"errors", each.errors}});
    fmt::print("{}\n", all.dump(2));
}

/// Names of tests, separated by commas. False, after a complaint, when there is none or one is
/// unknown.
bool read_tests(std::string_view list, std::vector<std::string>& into) {
    const std::vector<std::string_view> known = workload::names();
    into.clear();
    for (bool more = true; more;) {
        const std::size_t comma = list.find(',');
        const std::string_view name = list.substr(0, comma);
        if (std::ranges::find(known, name) == known.end()) {
            complain(fmt::format("--tests: there is no test '{}'; there are: {}", name,
                                 fmt::join(known, ", ")));
            return false;
        }
        into.emplace_back(name);
        more = comma != std::string_view::npos;
        if (more) list.remove_prefix(comma + 1);
    }
    return true;
}

bool read_options(const context& with, const arguments& given, options& wanted) {
    wanted.host = given.value("host", wanted.host);
    wanted.json = with.json;
    wanted.progress = wants_progress(given);
    if (given.has("tests") && !read_tests(given.value("tests"), wanted.tests)) return false;
    return read_io_backend(given, wanted.io_backend) &&
           read_number(given, "port", 1, 65'535, wanted.port) &&
           read_number(given, "clients", 1, 10'000, wanted.clients) &&
           read_number(given, "pipeline", 1, 10'000, wanted.shape.pipeline) &&
           read_number(given, "requests", 1, 1'000'000'000'000, wanted.shape.requests) &&
           read_number(given, "keys", 1, 1'000'000'000, wanted.shape.keys) &&
           read_number(given, "value-size", 0, 1 << 20, wanted.shape.value_size) &&
           read_number(given, "seed", 0, UINT64_MAX, wanted.shape.seed) &&
           read_number(given, "timeout", 1, 3'600, wanted.timeout_s) &&
           read_number(given, "server-pid", 1, 1 << 22, wanted.server_pid);
}

int run_bench(context& with, const arguments& given) {
    options wanted;
    if (!read_options(with, given, wanted)) return exit_bad_input;
    loop_options choices;
    choices.kind = wanted.io_backend;
    try {
        auto made = loop::create(choices);
        if (!made) give_up("could not make an event loop: " + made.error().message());
        std::vector<row> rows;
        {
            generator load(wanted);
            (*made)->run(load(rows));
        }
        if (wanted.json)
            print_json(rows);
        else
            print_table(rows, wanted);
        return std::ranges::all_of(rows, &row::is_right) ? exit_ok : exit_fatal;
    } catch (const std::exception& error) {
        progress_line(wanted.progress).clear();
        complain(error.what());
        return exit_fatal;
    }
}

}  // namespace

command resp_command() {
    command c;
    c.name = "bench resp";
    c.operands = "[flags]";
    c.summary = "measure a RESP server, such as Eddy's cache or Redis";
    c.flags = {
        {.name = "host",
         .value_name = "ADDRESS",
         .help = "numeric address of the server",
         .default_value = "127.0.0.1"},
        {.name = "port",
         .letter = 'p',
         .value_name = "N",
         .help = "its port",
         .default_value = "6379"},
        {.name = "clients",
         .letter = 'c',
         .value_name = "N",
         .help = "connections",
         .default_value = "50"},
        {.name = "pipeline",
         .letter = 'P',
         .value_name = "N",
         .help = "commands sent before replies are awaited",
         .default_value = "100"},
        {.name = "requests",
         .letter = 'n',
         .value_name = "N",
         .help = "commands of each test",
         .default_value = "5000000"},
        {.name = "keys",
         .value_name = "N",
         .help = "1: one hot key; more: random among so many",
         .default_value = "1"},
        {.name = "value-size",
         .letter = 'd',
         .value_name = "BYTES",
         .help = "of each value",
         .default_value = "3"},
        {.name = "tests",
         .letter = 't',
         .value_name = "LIST",
         .help = fmt::format("with commas between, of {}", fmt::join(workload::names(), ", ")),
         .default_value = "set,get,lpush,lpop,sadd,hset"},
        {.name = "seed", .value_name = "N", .help = "of the random keys", .default_value = "1"},
    };
    for (flag& each : common_flags()) c.flags.push_back(std::move(each));
    c.examples = {
        {"eddy bench resp -p 6379", "one hot key, pipelines of 100"},
        {"eddy bench resp -p 6379 -t set,get --keys 1000000 -d 32", "a million random keys"},
        {"eddy bench resp -p 6379 -P 1 --server-pid $(pidof redis-server)",
         "with the server's CPU"},
    };
    c.more = "A row is void if this program was busier than the server: it then measures the load.";
    c.run = run_bench;
    return c;
}

}  // namespace eddy::cli::bench
