// The simulator: virtual time, repeatability, faults.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace eddy {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<loop> make_loop(const sim_options& options = {}) {
    loop_options all;
    all.kind = io_backend_kind::sim;
    all.sim = options;
    auto made = loop::create(all);
    EXPECT_TRUE(made);
    return std::move(*made);
}

const endpoint& any_port() {
    static const endpoint address = *endpoint::ip("127.0.0.1", 0);
    return address;
}

/// Two connected streams.
struct connection {
    stream client;
    stream server;
};

task<void> accept_into(listener& from, stream& into) {
    auto accepted = co_await from.accept();
    EXPECT_TRUE(accepted) << accepted.error().message();
    if (accepted) into = std::move(*accepted);
}

task<connection> connect_pair(endpoint address) {
    connection made;
    listener accepting = *loop::current().listen(address);
    scope side(co_await current_source());
    side.spawn(accept_into(accepting, made.server));
    auto connected = co_await loop::current().connect(accepting.local());
    EXPECT_TRUE(connected) << connected.error().message();
    if (connected) made.client = std::move(*connected);
    co_await side.join();
    co_return made;
}

task<void> write_text(stream& to, std::string text, bool then_shutdown) {
    auto written = co_await to.write_all(text);
    EXPECT_TRUE(written) << written.error().message();
    if (then_shutdown) EXPECT_TRUE(to.shutdown_write());
}

/// Everything until the end of the stream; the error that ended it goes to `end`.
task<std::string> read_all(stream& from, std::error_code& end) {
    std::string text;
    for (;;) {
        auto got = co_await from.read();
        if (!got) {
            end = got.error();
            co_return text;
        }
        text += got->text();
    }
}

// ---- time

task<void> sleep_a_year() {
    const time_point start = loop::current().now();
    EXPECT_TRUE(co_await loop::current().sleep_for(std::chrono::hours(24 * 365)));
    EXPECT_EQ(loop::current().now() - start, std::chrono::hours(24 * 365));
}

TEST(sim_time, a_year_passes_at_once_and_exactly) { make_loop()->run(sleep_a_year()); }

task<void> spin_until(time_point when) {
    while (loop::current().now() < when) co_await loop::current().yield();
}

TEST(sim_time, passes_for_a_program_that_never_waits) {
    auto here = make_loop();
    const time_point end = here->now() + 1ms;
    here->run(spin_until(end));
    EXPECT_GE(here->now(), end);
}

class wake_up final : public posted_work {
public:
    explicit wake_up(cancel_source& target) : target_(&target) {}
    void run() noexcept override { target_->request(); }

private:
    cancel_source* target_;
};

task<std::error_code> read_forever(stream& from) {
    auto got = co_await from.read();
    co_return got ? std::error_code() : got.error();
}

task<void> wait_for_a_thread() {
    connection pair = co_await connect_pair(any_port());
    cancel_source source;
    wake_up work(source);
    loop& here = loop::current();
    std::thread other([&] { here.post(work); });
    EXPECT_EQ(co_await read_forever(pair.server).under(source), errc::cancelled);
    other.join();
}

TEST(sim_time, another_thread_wakes_a_loop_without_events) {
    make_loop()->run(wait_for_a_thread());
}

// ---- connections

task<void> talk_both_ways(endpoint address) {
    connection pair = co_await connect_pair(address);
    EXPECT_EQ(pair.client.peer(), pair.server.local());
    EXPECT_EQ(pair.server.peer(), pair.client.local());
    EXPECT_EQ(pair.client.native_handle(), -1);
    co_await write_text(pair.client, "over there", true);
    std::error_code end;
    EXPECT_EQ(co_await read_all(pair.server, end), "over there");
    EXPECT_EQ(end, errc::end_of_stream);
    // The other half is still open.
    co_await write_text(pair.server, "and back", false);
    pair.server.close();
    EXPECT_EQ(co_await read_all(pair.client, end), "and back");
    EXPECT_EQ(end, errc::end_of_stream);
}

TEST(sim_network, carries_bytes_and_half_closes) {
    for (const endpoint& address :
         {any_port(), *endpoint::ip("::1", 0), *endpoint::unix_path("/run/sim.sock"),
          *endpoint::unix_path("@sim")}) {
        SCOPED_TRACE(address.to_string());
        make_loop()->run(talk_both_ways(address));
    }
}

task<void> connect_to_wildcard() {
    listener accepting = *loop::current().listen(*endpoint::ip("", 0));
    const std::uint16_t port = accepting.local().port();
    EXPECT_NE(port, 0);
    for (std::string_view address : {"127.0.0.1", "::1", "10.1.2.3", "0.0.0.0"}) {
        auto client = co_await loop::current().connect(*endpoint::ip(address, port));
        EXPECT_TRUE(client) << address;
        auto server = co_await accepting.accept();
        EXPECT_TRUE(server) << address;
        EXPECT_EQ(server->local().family(), AF_INET6) << "a dual-stack socket maps IPv4";
    }
    listen_options only_v6;
    only_v6.dual_stack = false;
    listener second = *loop::current().listen(*endpoint::ip("", 0), only_v6);
    auto refused =
        co_await loop::current().connect(*endpoint::ip("127.0.0.1", second.local().port()));
    EXPECT_EQ(refused.error(), errno_code(ECONNREFUSED));
}

TEST(sim_network, a_dual_stack_wildcard_takes_every_address) {
    make_loop()->run(connect_to_wildcard());
}

TEST(sim_network, two_listeners_do_not_share_an_address) {
    auto here = make_loop();
    const endpoint v4 = *endpoint::ip("127.0.0.1", 80);
    listener first = *here->listen(v4);
    EXPECT_EQ(here->listen(v4).error(), errno_code(EADDRINUSE));
    EXPECT_EQ(here->listen(*endpoint::ip("", 80)).error(), errno_code(EADDRINUSE));
    EXPECT_EQ(here->listen(*endpoint::ip("0.0.0.0", 80)).error(), errno_code(EADDRINUSE));
    EXPECT_TRUE(here->listen(*endpoint::ip("127.0.0.2", 80)));
    EXPECT_TRUE(here->listen(*endpoint::ip("::1", 80)));
    first.close();
    EXPECT_TRUE(here->listen(v4));

    listen_options shared;
    shared.reuse_port = true;
    listener one = *here->listen(v4, shared);
    EXPECT_TRUE(here->listen(v4, shared));
    EXPECT_EQ(here->listen(v4).error(), errno_code(EADDRINUSE));

    listener path = *here->listen(*endpoint::unix_path("/x"));
    EXPECT_EQ(here->listen(*endpoint::unix_path("/x")).error(), errno_code(EADDRINUSE));
    EXPECT_EQ(here->listen(endpoint()).error(), errno_code(EAFNOSUPPORT));
    EXPECT_EQ(here->adopt(unique_fd()).error(), errc::unsupported);
}

task<std::error_code> connect_error(endpoint to) {
    auto made = co_await loop::current().connect(to);
    co_return made ? std::error_code() : made.error();
}

TEST(sim_network, refuses_without_a_listener) {
    auto here = make_loop();
    EXPECT_EQ(here->run(connect_error(*endpoint::ip("127.0.0.1", 9))), errno_code(ECONNREFUSED));
    EXPECT_EQ(here->run(connect_error(*endpoint::unix_path("/none"))), errno_code(ENOENT));
    EXPECT_EQ(here->run(connect_error(*endpoint::unix_path("@none"))), errno_code(ECONNREFUSED));
    EXPECT_EQ(here->run(connect_error(endpoint())), errno_code(EAFNOSUPPORT));
}

task<result<stream>> connect_task(endpoint to) { co_return co_await loop::current().connect(to); }

task<void> connect_to_nowhere() {
    const time_point start = loop::current().now();
    EXPECT_EQ(co_await connect_error(*endpoint::ip("192.0.2.1", 80)), errno_code(ETIMEDOUT));
    EXPECT_GE(loop::current().now() - start, 2min);
    auto bounded = co_await with_timeout(3s, connect_task(*endpoint::ip("2001:db8::1", 80)));
    EXPECT_EQ(bounded.error(), errc::timed_out);
}

TEST(sim_network, documentation_addresses_never_answer) { make_loop()->run(connect_to_nowhere()); }

task<void> fill_the_backlog() {
    listen_options options;
    options.backlog = 1;
    listener tcp = *loop::current().listen(any_port(), options);
    listener path = *loop::current().listen(*endpoint::unix_path("@b"), options);
    stream first_tcp = *co_await loop::current().connect(tcp.local());
    stream first_path = *co_await loop::current().connect(path.local());
    EXPECT_EQ(co_await connect_error(path.local()), errno_code(EAGAIN));
    auto bounded = co_await with_timeout(5s, connect_task(tcp.local()));
    EXPECT_EQ(bounded.error(), errc::timed_out) << "nobody accepts";

    scope side(co_await current_source());
    stream accepted;
    stream second;
    side.spawn(accept_into(tcp, accepted));
    auto later = co_await with_timeout(5s, connect_task(tcp.local()));
    EXPECT_TRUE(later);
    co_await side.join();

    // Connections that were not accepted are reset when the listener is closed.
    tcp.close();
    std::error_code end;
    co_await read_all(*later, end);
    EXPECT_EQ(end, errno_code(ECONNRESET));
}

TEST(sim_network, a_full_backlog_keeps_connects_waiting) { make_loop()->run(fill_the_backlog()); }

task<void> write_until_full(std::size_t limit) {
    connection pair = co_await connect_pair(any_port());
    const std::vector<std::byte> bytes(limit * 3);
    std::size_t taken = 0;
    while (const std::size_t now = *pair.client.try_write(bytes)) taken += now;
    EXPECT_EQ(taken, limit);

    scope side(co_await current_source());
    side.spawn(write_text(pair.client, std::string(limit, 'x'), true));
    EXPECT_EQ(side.children(), 1U) << "the writer waits";
    EXPECT_EQ(*pair.client.try_write(bytes), 0U) << "and nobody overtakes it";
    std::error_code end;
    const std::string got = co_await read_all(pair.server, end);
    EXPECT_EQ(got.size(), 2 * limit);
    EXPECT_EQ(end, errc::end_of_stream);
    co_await side.join();
}

TEST(sim_network, a_full_socket_buffer_makes_writers_wait) {
    sim_options options;
    options.socket_buffer = 1000;
    make_loop(options)->run(write_until_full(1000));
}

task<void> close_before_reading() {
    connection pair = co_await connect_pair(any_port());
    co_await write_text(pair.client, "unread", false);
    pair.server.close();
    std::error_code end;
    EXPECT_EQ(co_await read_all(pair.client, end), "");
    EXPECT_EQ(end, errno_code(ECONNRESET));
    auto written = co_await pair.client.write_all("x");
    EXPECT_EQ(written.error(), errno_code(EPIPE));
}

TEST(sim_network, closing_with_unread_bytes_resets) { make_loop()->run(close_before_reading()); }

task<void> write_to_a_closed_peer() {
    connection pair = co_await connect_pair(any_port());
    pair.server.close();
    std::error_code end;
    co_await read_all(pair.client, end);
    EXPECT_EQ(end, errc::end_of_stream);
    EXPECT_TRUE(co_await pair.client.write_all("nobody reads this"));
    static_cast<void>(co_await loop::current().sleep_for(1ms));
    auto second = co_await pair.client.write_all("x");
    EXPECT_EQ(second.error(), errno_code(ECONNRESET));
    EXPECT_EQ(pair.client.shutdown_write().error(), errno_code(ENOTCONN));
}

TEST(sim_network, writing_to_a_closed_peer_is_answered_with_a_reset) {
    make_loop()->run(write_to_a_closed_peer());
}

task<void> record_error(awaiting<write_operation>& wait, std::error_code& into) {
    auto done = co_await wait;
    into = done ? std::error_code() : done.error();
}

task<void> record_read_error(stream& from, std::error_code& into) {
    into = co_await read_forever(from);
}

task<void> close_with_waits_in_flight() {
    connection pair = co_await connect_pair(any_port());
    const std::string much(1 << 20, 'x');
    std::error_code read_end;
    std::error_code write_end;
    scope side(co_await current_source());
    auto writing = pair.client.write_all(much);
    side.spawn(record_error(writing, write_end));
    side.spawn(record_read_error(pair.client, read_end));
    pair.client.close();
    EXPECT_FALSE(pair.client);
    co_await side.join();
    EXPECT_EQ(read_end, errc::cancelled);
    EXPECT_EQ(write_end, errc::cancelled);

    // A closed handle answers every call.
    EXPECT_EQ(co_await read_forever(pair.client), errc::closed);
    auto written = co_await pair.client.write_all("x");
    EXPECT_EQ(written.error(), errc::closed);
    EXPECT_EQ(pair.client.try_write(as_bytes("x")).error(), errc::closed);
    EXPECT_EQ(pair.client.shutdown_write().error(), errc::closed);
    EXPECT_EQ(pair.client.peer(), endpoint());
    pair.client.close();
}

TEST(sim_network, closing_ends_what_waits) { make_loop()->run(close_with_waits_in_flight()); }

task<void> shut_down_under_a_writer() {
    connection pair = co_await connect_pair(any_port());
    const std::string much(1 << 20, 'x');
    std::error_code write_end;
    scope side(co_await current_source());
    auto writing = pair.client.write_all(much);
    side.spawn(record_error(writing, write_end));
    EXPECT_TRUE(pair.client.shutdown_write());
    EXPECT_TRUE(pair.client.shutdown_write()) << "twice is no error";
    co_await side.join();
    EXPECT_EQ(write_end, errno_code(EPIPE));
}

TEST(sim_network, shutting_down_ends_a_waiting_write) {
    make_loop()->run(shut_down_under_a_writer());
}

task<void> accept_forever(listener& from, std::error_code& into) {
    auto got = co_await from.accept();
    into = got ? std::error_code() : got.error();
}
task<void> receive_forever(datagram& from, std::error_code& into) {
    auto got = co_await from.receive();
    into = got ? std::error_code() : got.error();
}

task<void> cancel_everything() {
    connection pair = co_await connect_pair(any_port());
    listener accepting = *loop::current().listen(any_port());
    datagram socket = *loop::current().bind_datagram(any_port());
    const std::string much(1 << 20, 'x');
    std::error_code ends[4];
    scope side(co_await current_source());
    auto writing = pair.client.write_all(much);
    side.spawn(record_error(writing, ends[0]));
    side.spawn(record_read_error(pair.client, ends[1]));
    side.spawn(accept_forever(accepting, ends[2]));
    side.spawn(receive_forever(socket, ends[3]));
    side.cancel();
    co_await side.join();
    for (const std::error_code& end : ends) EXPECT_EQ(end, errc::cancelled);
    // The stream is still good: what went out arrives.
    pair.client.close();
    std::error_code end;
    EXPECT_EQ((co_await read_all(pair.server, end)).size(), 64U * 1024);
}

TEST(sim_network, every_wait_can_be_cancelled) { make_loop()->run(cancel_everything()); }

task<void> poll_a_descriptor() {
    auto waited = co_await loop::current().wait_readable(0);
    EXPECT_EQ(waited.error(), errno_code(ENOTSUP));
}

TEST(sim_network, has_no_descriptors) { make_loop()->run(poll_a_descriptor()); }

// ---- faults

sim_options rough(std::uint64_t seed) {
    sim_options options;
    options.seed = seed;
    options.short_read = 0.5;
    options.no_buffers = 0.1;
    options.min_delay = 10us;
    options.max_delay = 5ms;
    options.socket_buffer = 3000;
    return options;
}

struct trace {
    std::string text;
    void add(std::string_view what, std::size_t size) {
        text += std::to_string(loop::current().now().time_since_epoch().count());
        text += ' ';
        text += what;
        text += ' ';
        text += std::to_string(size);
        text += '\n';
    }
};

task<void> echo(stream connection, trace& log) {
    for (;;) {
        auto got = co_await connection.read();
        if (!got) {
            log.add(got.error().message(), 0);
            co_return;
        }
        // Copied, so that the buffer is back before the next wait.
        const std::string text(got->text());
        got->reset();
        log.add("echo", text.size());
        if (!co_await connection.write_all(text)) co_return;
    }
}

task<void> serve_echo(listener& from, scope& sessions, trace& log) {
    for (;;) {
        auto accepted = co_await from.accept();
        if (!accepted) co_return;
        sessions.spawn(echo(std::move(*accepted), log));
    }
}

task<void> send_random(stream& to, std::string text, std::uint64_t seed) {
    random_generator random(seed);
    std::string_view left = text;
    while (!left.empty()) {
        const std::size_t size = std::min<std::size_t>(left.size(), 1 + random.below(2000));
        if (!co_await to.write_all(left.substr(0, size))) co_return;
        left.remove_prefix(size);
        if (random.chance(0.2)) static_cast<void>(co_await loop::current().sleep_for(1ms));
    }
    static_cast<void>(to.shutdown_write());
}

/// One client of the echo server; true when it got back all that it sent.
task<void> echo_client(endpoint server, std::uint64_t seed, trace& log, int& good, int& reset) {
    random_generator random(seed);
    std::string text(1 + random.below(20000), '\0');
    for (char& c : text) c = static_cast<char>(random());
    auto connected = co_await loop::current().connect(server);
    if (!connected) co_return;
    scope side(co_await current_source());
    side.spawn(send_random(*connected, text, seed));
    std::string back;
    std::byte room[700];
    for (;;) {
        std::error_code error;
        if (random.chance(0.5)) {
            auto got = co_await connected->read();
            if (got)
                back += got->text();
            else
                error = got.error();
        } else {
            auto got = co_await connected->read_some(room);
            if (got)
                back += as_text(std::span(room).first(*got));
            else
                error = got.error();
        }
        log.add("back", back.size());
        if (!error) continue;
        if (error == errc::end_of_stream && back == text) ++good;
        if (error == errno_code(ECONNRESET)) ++reset;
        EXPECT_TRUE(text.starts_with(back)) << "no byte is changed, doubled or lost before another";
        break;
    }
    side.cancel();
    co_await side.join();
}

constexpr int clients = 4;

task<void> echo_scenario(std::uint64_t seed, trace& log, int& good, int& reset) {
    listener accepting = *loop::current().listen(any_port());
    scope server(co_await current_source());
    server.spawn(serve_echo(accepting, server, log));
    scope side(co_await current_source());
    for (std::uint64_t i = 0; i < clients; ++i)
        side.spawn(echo_client(accepting.local(), seed * clients + i, log, good, reset));
    co_await side.join();
    server.cancel();
    co_await server.join();
}

std::string run_echo(const sim_options& options, int& good, int& reset) {
    trace log;
    make_loop(options)->run(echo_scenario(options.seed, log, good, reset));
    return log.text;
}

TEST(sim_faults, an_echo_survives_short_reads_delays_and_empty_pools) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        int good = 0;
        int reset = 0;
        run_echo(rough(seed), good, reset);
        ASSERT_EQ(good, clients);
        ASSERT_EQ(reset, 0);
    }
}

TEST(sim_faults, a_seed_repeats_its_run) {
    std::set<std::string> traces;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        int good = 0;
        int reset = 0;
        sim_options options = rough(seed);
        options.reset = 0.001;
        const std::string first = run_echo(options, good, reset);
        EXPECT_EQ(run_echo(options, good, reset), first) << "seed " << seed;
        traces.insert(first);
    }
    EXPECT_EQ(traces.size(), 10U) << "each seed has a run of its own";
}

TEST(sim_faults, resets_surface_as_connection_reset) {
    int good = 0;
    int reset = 0;
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        sim_options options = rough(seed);
        options.reset = 0.02;
        run_echo(options, good, reset);
    }
    EXPECT_GT(reset, 0);
    EXPECT_LT(good, 100 * clients);
}

task<void> read_one(stream& from, std::string& into) {
    auto got = co_await from.read();
    if (got) into = got->text();
}

task<void> read_without_buffers() {
    connection pair = co_await connect_pair(any_port());
    co_await write_text(pair.client, "late, not lost", false);
    const time_point start = loop::current().now();
    std::string got;
    co_await read_one(pair.server, got);
    EXPECT_EQ(got, "late, not lost");
    EXPECT_GT(loop::current().now() - start, 10us);

    // Bytes into the caller's own memory need no buffer of the pool.
    co_await write_text(pair.client, "x", false);
    std::byte own[1];
    EXPECT_EQ(*co_await pair.server.read_some(own), 1U);
}

TEST(sim_faults, a_read_waits_while_there_are_no_buffers) {
    sim_options options;
    options.no_buffers = 1;
    for (options.seed = 1; options.seed <= 20; ++options.seed)
        make_loop(options)->run(read_without_buffers());
}

// ---- datagrams

struct numbers {
    std::vector<int> seen;
    endpoint from;
};

task<void> collect(datagram& from, numbers& into) {
    for (;;) {
        auto got = co_await from.receive();
        if (!got) co_return;
        into.seen.push_back(std::stoi(std::string(got->payload.text())));
        into.from = got->from;
    }
}

task<void> send_numbers(int count, numbers& into) {
    datagram receiver = *loop::current().bind_datagram(*endpoint::ip("", 0));
    datagram sender = *loop::current().bind_datagram(any_port());
    scope side(co_await current_source());
    side.spawn(collect(receiver, into));
    for (int i = 0; i < count; ++i) {
        const std::string text = std::to_string(i);
        EXPECT_TRUE(
            sender.send_to(as_bytes(text), *endpoint::ip("127.0.0.1", receiver.local().port())));
        static_cast<void>(co_await loop::current().sleep_for(100us));
    }
    static_cast<void>(co_await loop::current().sleep_for(1s));
    side.cancel();
    co_await side.join();
    EXPECT_EQ(into.from.host(), "::ffff:127.0.0.1");
    EXPECT_EQ(into.from.port(), sender.local().port());
}

numbers run_datagrams(const sim_options& options) {
    numbers got;
    make_loop(options)->run(send_numbers(1000, got));
    return got;
}

TEST(sim_datagrams, arrive_once_and_in_order_without_faults) {
    sim_options options;
    options.max_delay = 1ms;
    const numbers got = run_datagrams(options);
    EXPECT_EQ(got.seen.size(), 1000U);
    EXPECT_TRUE(std::is_sorted(got.seen.begin(), got.seen.end()));
}

TEST(sim_datagrams, get_lost_doubled_and_overtaken) {
    sim_options options;
    options.datagram_loss = 0.1;
    const numbers lossy = run_datagrams(options);
    EXPECT_LT(lossy.seen.size(), 1000U);
    EXPECT_GT(lossy.seen.size(), 700U);

    options.datagram_loss = 0;
    options.datagram_duplicate = 0.1;
    EXPECT_GT(run_datagrams(options).seen.size(), 1000U);

    options.datagram_duplicate = 0;
    options.datagram_reorder = 0.1;
    const numbers mixed = run_datagrams(options);
    EXPECT_EQ(mixed.seen.size(), 1000U);
    EXPECT_FALSE(std::is_sorted(mixed.seen.begin(), mixed.seen.end()));
}

task<void> misuse_datagrams() {
    datagram v4 = *loop::current().bind_datagram(any_port());
    EXPECT_EQ(loop::current().bind_datagram(v4.local()).error(), errno_code(EADDRINUSE));
    EXPECT_EQ(loop::current().bind_datagram(*endpoint::unix_path("/x")).error(), errc::unsupported);
    const const_bytes one = as_bytes("x");
    EXPECT_EQ(v4.send_to(one, endpoint()).error(), errno_code(EDESTADDRREQ));
    EXPECT_EQ(v4.send_to(one, *endpoint::ip("::1", 1)).error(), errno_code(EAFNOSUPPORT));
    EXPECT_TRUE(v4.send_to(one, *endpoint::ip("127.0.0.1", 1))) << "nobody there: lost";
    const std::vector<std::byte> much(65508);
    EXPECT_EQ(v4.send_to(much, v4.local()).error(), errno_code(EMSGSIZE));

    // A full receive queue loses datagrams.
    const const_bytes big = std::span(much).first(40000);
    EXPECT_TRUE(v4.send_to(big, v4.local()));
    EXPECT_TRUE(v4.send_to(big, v4.local()));
    static_cast<void>(co_await loop::current().sleep_for(1ms));
    auto got = co_await v4.receive();
    EXPECT_FALSE(got->truncated);
    EXPECT_EQ(got->payload.size(), 40000U);
    std::error_code end;
    scope side(co_await current_source());
    side.spawn(receive_forever(v4, end));
    static_cast<void>(co_await loop::current().sleep_for(1ms));
    v4.close();
    co_await side.join();
    EXPECT_EQ(end, errc::cancelled) << "the second one did not fit";
}

TEST(sim_datagrams, have_limits) { make_loop()->run(misuse_datagrams()); }

}  // namespace
}  // namespace eddy
