// Fuzz target of both sides of replication, in the simulator: a cache is the replica of a master
// that sends anything, or the master of such a replica. It keeps serving its clients, counts no
// more of a stream than was sent, and ends when it is stopped.
//
// The first byte chooses what `choice` names, the second seeds the pieces in which the rest comes.
#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "runtime/options/settings.hpp"
#include "runtime/type.hpp"
#include "serving/journal.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace {

using namespace eddy;
using namespace std::chrono_literals;
using nlohmann::json;

enum choice : std::uint8_t {
    leads = 1,          // the rest comes from a replica; else from a master
    knows_itself = 2,   // the handshake is good, the rest comes behind it
    in_the_stream = 4,  // so is the copy
    small_sockets = 8,
    comes_back = 16,  // the same once more, on a new connection
};

constexpr std::string_view handshake = "+PONG\r\n+OK\r\n+OK\r\n+OK\r\n";
constexpr std::string_view name = "0123456789012345678901234567890123456789";

struct nowhere final : serving::journal {
    void write(std::string_view) override {}
};

std::string what_comes(std::uint8_t flags, std::string_view rest) {
    std::string all;
    if ((flags & leads) != 0) {
        if ((flags & knows_itself) != 0) all = "REPLCONF capa eof capa psync2\r\nPSYNC ? -1\r\n";
        return all.append(rest);
    }
    if ((flags & knows_itself) == 0) return std::string(rest);
    all.append(handshake).append("+FULLRESYNC ").append(name).append(" 0\r\n");
    if ((flags & in_the_stream) != 0)
        all.append("$18\r\nREDIS0009\xff").append(8, '\0');
    else
        all.append("$" + std::to_string(rest.size()) + "\r\n");
    return all.append(rest);
}

task<> speak(stream& to, std::string_view bytes, random_generator& random) {
    while (!bytes.empty()) {
        const std::size_t most = random.chance(0.2) ? 4 : 3'000;
        const std::string_view piece = bytes.substr(0, 1 + random.below(most));
        if (!co_await to.write_all(piece)) co_return;
        bytes.remove_prefix(piece.size());
        if (random.chance(0.3)) static_cast<void>(co_await loop::current().sleep_for(10us));
    }
}

task<> drain(stream& from) {
    while (co_await from.read()) {
    }
}

/// Sends all bytes, reads for 50 ms, and closes.
task<> be_the_peer(stream peer, std::string_view bytes, random_generator& random) {
    co_await with_scope([&](scope& hearing) -> task<> {
        hearing.spawn(drain(peer));
        co_await speak(peer, bytes, random);
        static_cast<void>(co_await loop::current().sleep_for(50ms));
    });
}

task<result<std::string>> line_of(stream& from, std::string& unread) {
    for (;;) {
        const std::size_t end = unread.find('\n');
        if (end != std::string::npos) {
            std::string line = unread.substr(0, end);
            unread.erase(0, end + 1);
            co_return line;
        }
        const result<lease> got = co_await from.read();
        if (!got) co_return std::unexpected(got.error());
        unread += got->text();
    }
}

/// An accepted client is answered, in time; a stream may have set a password.
task<> check_service(endpoint at) {
    result<stream> client = co_await loop::current().connect(at);
    EDDY_ASSERT(client);
    EDDY_ASSERT(co_await client->write_all("PING\r\n"));
    std::string unread;
    const result<std::string> line = co_await with_timeout(30s, line_of(*client, unread));
    EDDY_ASSERT(line && !line->empty());
    EDDY_ASSERT(line->front() == '+' || line->front() == '-');
}

task<> main_task(std::uint8_t flags, std::string_view rest, random_generator random) {
    const runtime::type* const type = runtime::find_type("cache");
    EDDY_ASSERT(type != nullptr);
    nowhere events;
    json options = {{"port", 0}, {"mode", "admin"}, {"maxmemory", "16M"}};
    listener master = *loop::current().listen(*endpoint::ip("127.0.0.1", 0));
    if ((flags & leads) == 0) options["replicate"] = master.local().to_string();
    options["config"] = "repl-diskless-sync-delay 0; busy-reply-threshold 5";
    const auto parsed = runtime::settings::parse(type->options, options);
    EDDY_ASSERT(parsed);
    const auto cache = type->make({"c", *parsed, &events});
    EDDY_ASSERT(co_await cache->start());
    const endpoint at = cache->local();
    const std::string bytes = what_comes(flags, rest);
    const int times = (flags & comes_back) != 0 ? 2 : 1;
    for (int i = 0; i < times; ++i) {
        if ((flags & leads) != 0) {
            result<stream> peer = co_await loop::current().connect(at);
            EDDY_ASSERT(peer);
            co_await be_the_peer(std::move(*peer), bytes, random);
        } else {
            const auto accept = [](listener& of) -> task<result<stream>> {
                co_return co_await of.accept();
            };
            result<stream> peer = co_await with_timeout(5s, accept(master));
            // The received commands may have made it the replica of another server.
            if (!peer) break;
            co_await be_the_peer(std::move(*peer), bytes, random);
        }
    }
    if (cache->local().family() != AF_UNSPEC) co_await check_service(at);
    co_await cache->stop(10ms);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    loop_options options;
    options.kind = io_backend_kind::sim;
    options.sim.seed = data[1];
    if ((data[0] & small_sockets) != 0) options.sim.socket_buffer = 500;
    options.sim.max_delay = 20us;
    const auto here = loop::create(options);
    EDDY_ASSERT(here);
    const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
    (*here)->run(main_task(data[0], rest, random_generator(data[1])));
    return 0;
}
