// The second part of what docs/tour.md shows: other kinds of sockets, files, processes, more than
// one thread, and the simulator. Each function runs one of them and says whether it worked.
#include <eddy/io/blocking.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/file.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/loop_lock.hpp>
#include <eddy/io/pipe.hpp>
#include <eddy/io/process.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/signals.hpp>
#include <eddy/io/strand.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/io/when.hpp>
#include <eddy/net/blocking.hpp>
#include <eddy/net/descriptors.hpp>
#include <eddy/net/resolver.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/net/udp.hpp>
#include <eddy/net/unix.hpp>
#include <eddy/transport/transport.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

task<> send_one(datagram& socket, endpoint to) {
    const std::string text = "how are you?";
    static_cast<void>(co_await socket.send(as_bytes(text), to));
}

task<bool> messages() {
    auto server = udp::bind("127.0.0.1", 0);
    auto client = udp::bind("127.0.0.1", 0);
    if (!server || !client) co_return false;
    co_await send_one(*client, server->local());
    auto received = co_await server->receive();
    if (!received) co_return false;
    const result<> sent = server->send_to(as_bytes("well"), received->from);
    co_return sent.has_value() && received->payload.text() == "how are you?";
}

task<bool> segments() {
    udp::socket_options options;
    options.join_segments = true;
    auto server = udp::bind("127.0.0.1", 0, options);
    auto client = udp::bind("127.0.0.1", 0);
    if (!server || !client) co_return false;
    const std::vector<std::byte> ten(std::size_t{10} * 1000);
    const endpoint to = server->local();
    if (!co_await client->send(ten, to, 1000)) co_return false;
    int count = 0;
    while (count < 10) {
        auto received = co_await server->receive();
        if (!received) co_return false;
        for (const const_bytes one : received->segments()) count += one.size() == 1000 ? 1 : 0;
    }
    co_return count == 10;
}

task<bool> batches() {
    udp::socket_options options;
    options.local_address = true;
    auto server = udp::bind("127.0.0.1", 0, options);
    if (!server) co_return false;
    auto client = loop::current().connect_datagram(server->local());
    if (!client) co_return false;
    const std::string one = "one";
    const std::string two = "two";
    std::array<outgoing_datagram, 2> both;
    both[0].bytes = as_bytes(one);
    both[1].bytes = as_bytes(two);
    const result<std::size_t> went = client->try_send(both);
    auto received = co_await server->receive();
    if (!received) co_return false;
    std::printf("to %s, interface %u\n", received->to.host().c_str(), received->interface);
    outgoing_datagram answer;
    answer.bytes = as_bytes("both");
    answer.to = &received->from;
    answer.from = &received->to;
    if (!server->try_send({&answer, 1})) co_return false;
    co_return went == 2U && received->to == server->local() && received->from == client->local();
}

task<bool> options_of_tcp() {
    auto listening = tcp::listen("127.0.0.1", 0);
    const auto here = endpoint::ip("127.0.0.1", 0);
    if (!listening || !here) co_return false;
    tcp::connect_options from;
    from.local.address = *here;
    auto client = co_await tcp::connect_any({listening->local()}, from);
    if (!client) co_return false;
    tcp::socket_options patient = tcp::keepalive_after(60s);
    patient.user_timeout = 20s;
    co_return tcp::apply(*client, patient).has_value();
}

task<bool> names() {
    auto found = co_await resolver::of_this_thread().resolve("localhost", 80);
    if (!found) co_return false;
    for (const endpoint& address : *found)
        std::printf("localhost is %s\n", address.to_string().c_str());
    co_return !found->empty();
}

task<bool> addresses() {
    const result<endpoint> address = endpoint::ip("::1", 8080);
    co_return address && address->to_string() == "[::1]:8080" && address->port() == 8080;
}

task<bool> unix_sockets() {
    listen_options mine;
    mine.unix_mode = 0600;
    auto listening = unix_socket::listen("/tmp/eddy-tour-" + std::to_string(::getpid()), mine);
    if (!listening) co_return false;
    auto client = co_await unix_socket::connect(listening->local().host());
    auto server = co_await listening->accept();
    if (!client || !server) co_return false;
    const auto who = unix_socket::peer_credentials(*server);
    co_return who && who->pid == ::getpid();
}

task<bool> descriptors() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) co_return false;
    const unique_fd from(ends[0]);
    const unique_fd to(ends[1]);
    std::array<std::byte, 64> room;
    const auto sent = unix_socket::send_descriptor(from.get(), "take this", 0);
    const auto got = unix_socket::receive_message(to.get(), room);
    co_return sent&& got && got->size == *sent && got->descriptor;
}

task<bool> uris() {
    auto listening = transport::listen("tcp://127.0.0.1:0");
    if (!listening) co_return false;
    const std::string uri = "tcp://" + listening->local().to_string();
    auto client = co_await transport::connect(uri);
    const auto wrong = transport::parse("tcp//127.0.0.1:0");
    if (!wrong) std::puts(transport::explain("tcp//127.0.0.1:0", wrong.error()).c_str());
    co_return client.has_value() && !wrong;
}

task<bool> signals() {
    auto taken = signal_set::take({SIGUSR1});
    if (!taken) co_return false;
    ::kill(::getpid(), SIGUSR1);
    co_return co_await taken->next() == SIGUSR1;
}

task<result<std::string>> keep_and_read(std::string path, std::string text) {
    auto log = co_await file::open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (!log) co_return fail(log.error());
    if (auto written = co_await log->write_at(0, as_bytes(text)); !written)
        co_return fail(written.error());
    if (auto synced = co_await log->sync_data(); !synced) co_return fail(synced.error());
    std::array<std::byte, 64> buffer;
    auto size = co_await log->read_at(0, buffer);
    if (!size) co_return fail(size.error());
    co_return std::string(as_text(const_bytes(buffer).first(*size)));
}

task<bool> files() {
    const std::string path = "/tmp/eddy-tour-" + std::to_string(::getpid());
    const auto kept = co_await keep_and_read(path, "kept");
    ::unlink(path.c_str());
    co_return kept.value_or("") == "kept";
}

task<result<>> replace(std::string path, std::string text) {
    const std::string fresh = path + ".new";
    auto log = co_await file::open(fresh, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!log) co_return fail(log.error());
    if (auto written = co_await log->write_at(0, as_bytes(text)); !written) co_return written;
    if (auto synced = co_await log->sync(); !synced) co_return synced;
    co_return co_await file::rename(fresh, path);
}

task<bool> replacing() {
    const std::string path = "/tmp/eddy-tour-file-" + std::to_string(::getpid());
    if (!co_await replace(path, "all of it, or nothing")) co_return false;
    auto replaced = co_await file::open(path, O_RDONLY);
    const result<> removed = co_await file::remove(path);
    if (!replaced || !removed) co_return false;
    co_return co_await replaced->size() == 21U;
}

task<bool> pipes() {
    auto ends = make_pipe();
    if (!ends || !co_await ends->writer.write_all("through")) co_return false;
    auto received = co_await ends->reader.read();
    co_return received && received->text() == "through";
}

task<bool> processes() {
    process_options options;
    options.input = stdio::stream;
    options.output = stdio::stream;
    auto sort = process::start({"sort", "-n"}, options);
    if (!sort || !co_await sort->input.write_all("20\n3\n")) co_return false;
    sort->input.close();
    auto sorted = co_await sort->output.read();
    auto status = co_await sort->wait();
    co_return sorted && sorted->text() == "3\n20\n" && status && status->success();
}

int slow_sum(int a, int b) {
    std::this_thread::sleep_for(1ms);
    return a + b;
}

task<bool> threads() {
    blocking_pool pool;
    const result<int> sum = co_await run_blocking(pool, [] { return slow_sum(1, 2); });
    co_return sum == 3;
}

task<bool> other_descriptors() {
    std::array<int, 2> both{};
    if (::pipe(both.data()) != 0) co_return false;
    const unique_fd reader(both[0]);
    const unique_fd writer(both[1]);
    const bool written = ::write(writer.get(), "x", 1) == 1;
    const result<> ready = co_await loop::current().wait_readable(reader.get());
    const result<> roomy = co_await loop::current().wait_writable(writer.get());
    co_return written&& ready&& roomy;
}

/// A listening socket as another process would leave it to this one.
int listening_descriptor() {
    const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (made >= 0 && ::listen(made, 16) == 0) return made;
    if (made >= 0) ::close(made);
    return -1;
}

task<bool> adopting_a_listener() {
    const int inherited = listening_descriptor();
    auto listening = loop::current().adopt_listener(unique_fd(inherited));
    if (!listening) co_return false;
    auto client = co_await tcp::connect("127.0.0.1", listening->local().port());
    auto server = co_await listening->accept();
    co_return client&& server;
}

task<std::thread::id> where_am_i() { co_return std::this_thread::get_id(); }

task<bool> groups() {
    loop_group_options options;
    options.threads = 2;
    auto group = loop_group::start(options);
    if (!group) co_return false;
    auto first = co_await resume_on((*group)->executor(0), where_am_i());
    auto second = co_await resume_on((*group)->executor(1), where_am_i());
    (*group)->stop();
    co_return first&& second && *first != *second && *first != std::this_thread::get_id();
}

task<> greet(stream peer) {
    const std::string hello = "hello";
    static_cast<void>(co_await peer.write_all(hello));
}

/// Each loop of the group runs one of these, with a listener of its own at the same port.
task<> serve_port(std::uint16_t port) {
    listen_options shared;
    shared.reuse_port = true;
    auto listening = tcp::listen("127.0.0.1", port, shared);
    if (!listening) co_return;
    co_await with_scope([&](scope& clients) -> task<> {
        for (;;) {
            auto peer = co_await listening->accept();
            if (peer)
                clients.spawn(greet(std::move(*peer)));
            else if (!co_await sleep_for(10ms))
                co_return;
        }
    });
}

result<std::uint16_t> free_port() {
    auto listening = tcp::listen("127.0.0.1", 0);
    if (!listening) return fail(listening.error());
    return listening->local().port();
}

task<bool> many_cores() {
    const auto port = free_port();
    loop_group_options options;
    options.threads = 2;
    auto group = loop_group::start(options);
    if (!port || !group) co_return false;
    for (std::size_t i = 0; i < (*group)->size(); ++i)
        if (!(*group)->post(i, serve_port(*port))) co_return false;
    for (int greeted = 0; greeted < 20;) {
        auto client = co_await tcp::connect("127.0.0.1", *port);
        if (client) {
            auto hello = co_await client->read();
            if (!hello || hello->text() != "hello") co_return false;
            ++greeted;
        } else if (!co_await sleep_for(1ms)) {  // no listener yet
            co_return false;
        }
    }
    (*group)->stop();
    co_return true;
}

task<bool> executors() {
    auto group = loop_group::start({.threads = 1, .loop = {}});
    if (!group) co_return false;
    std::atomic<int> ran = 0;
    const executor there = (*group)->executor(0);
    const result<> posted = there.post([&ran] { ++ran; });
    (*group)->stop();
    const result<> late = there.post([&ran] { ++ran; });
    co_return posted&& ran == 1 && !late && late.error() == errc::closed;
}

task<bool> dispatching() {
    int ran = 0;
    const result<> at_once = executor::current().dispatch([&ran] { ++ran; });
    co_return at_once&& ran == 1;
}

task<bool> locks_a_loop() {
    lockable_loop lockable;
    event done;
    int changes = 0;  // this loop's; no atomic
    std::thread other([&] {
        const loop_lock lock(lockable);
        ++changes;
        done.set();
    });
    const result<> woken = co_await done.wait();
    other.join();
    co_return woken&& changes == 1;
}

task<int> withdraw(int& balance, int amount) {
    const int left = balance - amount;
    co_await loop::current().yield();
    co_return balance = left;
}

task<void> add_one(long& to) {
    ++to;
    co_return;
}

task<result<>> add_often(const strand& account, long& to) {
    for (int i = 0; i < 1000; ++i)
        if (auto done = co_await account.run(add_one(to)); !done) co_return done;
    co_return {};
}

task<bool> pool_and_strand() {
    loop_group_options options;
    options.threads = 2;
    auto pool = loop_group::start(options);
    if (!pool) co_return false;
    const executor one = (*pool)->executor(0);
    const executor two = (*pool)->executor(1);
    const strand account(one);
    long sum = 0;
    auto [first, second] = co_await when_all(resume_on(one, add_often(account, sum)),
                                             resume_on(two, add_often(account, sum)));
    if (!first || !second) co_return false;
    co_return sum == 2000;
}

task<bool> strands() {
    int balance = 100;
    const strand account(executor::current());
    auto [one, two] =
        co_await when_all(account.run(withdraw(balance, 20)), account.run(withdraw(balance, 30)));
    co_return one == 80 && two == 50;
}

task<bool> moved_connection(stream connection) {
    auto descriptor = connection.detach();
    if (!descriptor) co_return false;
    auto again = loop::current().adopt(std::move(*descriptor));
    co_return again.has_value();
}

task<bool> handing_over() {
    auto listening = tcp::listen("127.0.0.1", 0);
    if (!listening) co_return false;
    auto client = co_await tcp::connect("127.0.0.1", listening->local().port());
    co_return client.has_value() && co_await moved_connection(std::move(*client));
}

result<std::string> ask_blocking(std::uint16_t port) {
    auto server = blocking::connect("127.0.0.1", port);
    if (!server) return fail(server.error());
    server->set_timeout(5s);
    if (auto sent = server->write_all("hello"); !sent) return fail(sent.error());
    std::array<std::byte, 64> buffer;
    auto size = server->read_some(buffer);
    if (!size) return fail(size.error());
    return std::string(as_text(const_bytes(buffer).first(*size)));
}

task<> echo_once(listener& from) {
    auto peer = co_await from.accept();
    if (!peer) co_return;
    if (auto received = co_await peer->read())
        static_cast<void>(co_await peer->write_all(received->bytes()));
}

task<result<std::string>> ask_elsewhere(blocking_pool& pool, std::uint16_t port) {
    co_return co_await run_blocking(pool, [port] { return ask_blocking(port); });
}

task<bool> without_loop() {
    auto listening = tcp::listen("127.0.0.1", 0);
    if (!listening) co_return false;
    blocking_pool pool;
    auto [done, told] =
        co_await when_all(echo_once(*listening), ask_elsewhere(pool, listening->local().port()));
    static_cast<void>(done);
    co_return told.value_or("") == "hello";
}

task<bool> sleep_a_day() { co_return (co_await sleep_for(24h)).has_value(); }

bool simulated() {
    loop_options options;
    options.kind = io_backend_kind::sim;
    options.sim.seed = 42;
    options.sim.short_read = 0.1;
    options.sim.max_delay = 5ms;
    auto made = loop::create(options);
    return made && (*made)->run(sleep_a_day());
}

task<int> everything() {
    const auto check = [](const char* what, bool good) {
        if (!good) std::printf("%s: does not work\n", what);
        return good ? 0 : 1;
    };
    int failed = 0;
    failed += check("messages", co_await messages());
    failed += check("segments", co_await segments());
    failed += check("batches", co_await batches());
    failed += check("options_of_tcp", co_await options_of_tcp());
    failed += check("names", co_await names());
    failed += check("addresses", co_await addresses());
    failed += check("unix_sockets", co_await unix_sockets());
    failed += check("descriptors", co_await descriptors());
    failed += check("uris", co_await uris());
    failed += check("signals", co_await signals());
    failed += check("files", co_await files());
    failed += check("replacing", co_await replacing());
    failed += check("pipes", co_await pipes());
    failed += check("processes", co_await processes());
    failed += check("threads", co_await threads());
    failed += check("other_descriptors", co_await other_descriptors());
    failed += check("adopting_a_listener", co_await adopting_a_listener());
    failed += check("groups", co_await groups());
    failed += check("many_cores", co_await many_cores());
    failed += check("executors", co_await executors());
    failed += check("dispatching", co_await dispatching());
    failed += check("loop_lock", co_await locks_a_loop());
    failed += check("strands", co_await strands());
    failed += check("pool_and_strand", co_await pool_and_strand());
    failed += check("handing_over", co_await handing_over());
    failed += check("without_loop", co_await without_loop());
    co_return failed;
}

}  // namespace

int main() {
    int failed = simulated() ? 0 : 1;
    auto made = loop::create();
    if (!made) return 1;
    failed += (*made)->run(everything());
    if (failed == 0) std::puts("all of it works");
    return failed;
}
