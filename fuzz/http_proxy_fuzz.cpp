// Fuzz target of HTTP forwarding, in the simulator: whatever a client and a backend send, and
// however it is cut, each client gets whole responses to its own requests, in no larger number than
// it has sent, and nothing of another client's; the backend gets whole, valid requests alone;
// memory stays bounded, and everything ends.
//
// Two clients share the backend's connections. The first one sends what the input says, the second
// one well-formed requests. The backend answers the requests that it reads with the pieces of the
// input's script, and properly when there are no more. In a script the byte `tag` stands for the
// client whose request came last on that connection.
//
// The input: flags, a seed of the cuts, the size of the first client's text in units of 8 bytes,
// that text, and the script: pieces with a byte of piece_flags each, joined by the byte `joint`.
#include <eddy/base/assert.hpp>
#include <eddy/http/session.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/wire/http1.hpp>

#include "proxy/http/forwarder.hpp"
#include "simulated_client.hpp"

#include <sanitizer/allocator_interface.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

/// Flags of an input, beside those of fuzz::choice.
enum flag : std::uint8_t {
    pauses = 4,         // between the pieces of the first client
    one_slot = 16,      // one connection to the backend, which both clients wait for
    second_first = 32,  // the second client begins before the first one
};

/// Flags of a piece of the script.
enum piece_flag : std::uint8_t {
    closes = 1,       // the connection ends behind it
    resets = 2,       // it is reset
    is_late = 4,      // the request is read to its end before
    waits = 8,        // a pause within it
    is_unasked = 16,  // the next piece follows at once
};

constexpr char joint = '\xFF';
constexpr char tag = '\xC1';
constexpr std::array<char, 2> tags = {'\xC2', '\xC3'};  // of the clients; in no text of the input
constexpr std::array<std::string_view, 2> addresses = {"127.0.0.2", "127.0.0.3"};

/// More than two sessions, the backend's connections and the network hold.
constexpr std::size_t most_memory = std::size_t{16} << 20;

/// State of the run of an input.
struct world {
    explicit world(fuzz::session_input input) : flags(input.flags), seed(input.seed) {
        if (input.text.empty()) return;
        const std::size_t size = static_cast<std::uint8_t>(input.text[0]) * std::size_t{8};
        input.text.remove_prefix(1);
        text = input.text.substr(0, size);
        std::string_view rest = input.text.substr(text.size());
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find(joint), rest.size());
            script.emplace_back(rest.substr(0, end));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        for (std::string& each : script)
            std::ranges::replace_if(each, [](char c) { return c == tags[0] || c == tags[1]; }, ' ');
    }
    void check_memory() const {
        EDDY_ASSERT(__sanitizer_get_current_allocated_bytes() < memory + most_memory);
    }

    const std::uint8_t flags;
    const std::uint8_t seed;
    std::string_view text;
    std::vector<std::string> script;
    std::size_t played = 0;                                                // pieces of it
    const std::size_t memory = __sanitizer_get_current_allocated_bytes();  // before
};

/// Counts the exchanges of a client.
class exchange_counter final : public http::session_observer {
public:
    void enter(http::session_state) noexcept override {}
    void note(const http::exchange_record& what) override {
        ++count;
        methods.emplace_back(what.request == nullptr ? std::string() : what.request->method);
    }
    bool is_ending() const noexcept override { return false; }

    std::size_t count = 0;
    std::vector<std::string> methods;  // empty for what was no valid request
};

class silent_observer final : public proxy::forwarding_observer {
    void note_failed_backend(const proxy::backend&, std::string_view) noexcept override {}
    void note_unanswered(int, std::string_view) noexcept override {}
    void note_ejected(const proxy::backend&) noexcept override {}
    void note_returned(const proxy::backend&) noexcept override {}
    void note_slow(const proxy::slow_backend&) noexcept override {}
    void note_no_memory() noexcept override {}
};

/// One connection of the backend.
class backend_connection {
public:
    backend_connection(world& of, stream peer) : of_(of), peer_(std::move(peer)) {}

    static task<void> serve(std::unique_ptr<backend_connection> self) {
        for (;;) {
            const auto got = co_await self->peer_.read();
            if (!got) co_return;
            self->of_.check_memory();
            const bool goes_on = co_await self->take(std::string(got->text()));
            if (!goes_on) co_return;
        }
    }

private:
    task<bool> take(std::string received) {
        std::string_view rest = received;
        while (!is_tunnel_) {
            const http1::step step = parser_.parse(rest);
            // The forwarder sends only what it has read whole.
            EDDY_ASSERT(step.what != http1::event::error);
            if (step.what == http1::event::need_more) break;
            rest.remove_prefix(step.consumed);
            if (step.what == http1::event::head) {
                EDDY_ASSERT(has_answered_);
                has_answered_ = false;
                const std::string_view from = *parser_.head().headers.find("X-Forwarded-For");
                client_ = from == addresses[0] ? 0 : 1;
                EDDY_ASSERT(from == addresses[client_]);
                // Its content may be awaited by a tunnel.
                if (parser_.head().method == "CONNECT") is_tunnel_ = true;
            }
            const bool is_end = step.what == http1::event::end;
            if (has_answered_ || (step.what != http1::event::head && !is_end)) continue;
            if (!is_end && !is_tunnel_ && is_late_piece()) continue;
            has_answered_ = true;
            const bool goes_on = co_await answer();
            if (!goes_on) co_return false;
        }
        co_return true;
    }

    bool is_late_piece() const {
        return of_.played == of_.script.size() || of_.script[of_.played].empty() ||
               (of_.script[of_.played][0] & is_late) != 0;
    }

    task<bool> answer() {
        for (;;) {
            if (of_.played == of_.script.size()) {
                const std::string text =
                    std::string("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n") + tags[client_];
                const auto sent = co_await peer_.write_all(text);
                co_return sent.has_value();
            }
            const std::string piece = of_.script[of_.played++];
            const auto how = static_cast<std::uint8_t>(piece.empty() ? 0 : piece[0]);
            std::string text = piece.empty() ? std::string() : piece.substr(1);
            std::ranges::replace(text, tag, tags[client_]);
            // The bytes behind it are those of another protocol, if the proxy takes it.
            if (text.find(" 101") != std::string::npos) is_tunnel_ = true;
            const std::size_t first = (how & waits) != 0 ? text.size() / 2 : text.size();
            auto sent = co_await peer_.write_all(std::string_view(text).substr(0, first));
            if (first < text.size()) {
                static_cast<void>(co_await loop::current().sleep_for(1ms));
                if (sent) sent = co_await peer_.write_all(std::string_view(text).substr(first));
            }
            if ((how & resets) != 0) {
                peer_.abort();
                co_return false;
            }
            if (!sent || (how & closes) != 0) co_return false;
            if ((how & is_unasked) == 0) co_return true;
        }
    }

    world& of_;
    stream peer_;
    http1::request_parser parser_{unlimited()};
    std::size_t client_ = 0;
    bool has_answered_ = true;
    bool is_tunnel_ = false;

    static http1::limits unlimited() {
        http1::limits made;
        made.body = UINT64_MAX;
        return made;
    }
};

task<void> serve_backend(world& of, listener& at) {
    scope connections(co_await current_source());
    for (;;) {
        auto peer = co_await at.accept();
        if (!peer) break;
        connections.spawn(
            backend_connection::serve(std::make_unique<backend_connection>(of, std::move(*peer))));
    }
    connections.cancel();
    co_await connections.join();
}

/// Everything that a client got must be responses to its requests.
void check(std::string_view received, const exchange_counter& seen, std::size_t client) {
    EDDY_ASSERT(received.find(tags[1 - client]) == std::string_view::npos);
    http1::limits limits;
    limits.body = UINT64_MAX;
    http1::response_parser parser(limits);
    std::size_t finals = 0;
    const auto expect_next = [&] {
        if (finals < seen.methods.size()) parser.expect_response_to(seen.methods[finals]);
    };
    expect_next();
    for (;;) {
        const http1::step step = parser.parse(received);
        EDDY_ASSERT(step.what != http1::event::error);
        if (step.what == http1::event::need_more) break;
        const bool is_final = parser.head().status >= 200 || parser.tunnel();
        if (step.what == http1::event::head && is_final) {
            ++finals;
            EDDY_ASSERT(finals <= seen.count);
            // An invalid request may have begun as HEAD; its response was the last one.
            if (seen.methods[finals - 1].empty()) {
                EDDY_ASSERT(finals == seen.count);
                return;
            }
        }
        if (step.what == http1::event::end && is_final) {
            if (parser.tunnel()) return;
            expect_next();
        }
        received.remove_prefix(step.consumed);
    }
    static_cast<void>(parser.finish());
}

/// A client's connection, from its own address.
task<fuzz::connected_pair> connect(std::size_t client) {
    listener front = *loop::current().listen(*endpoint::ip("127.0.0.1", 0));
    local_binding own;
    own.address = *endpoint::ip(addresses[client], 0);
    auto made = co_await loop::current().connect(front.local(), own);
    auto accepted = co_await front.accept();
    EDDY_ASSERT(made && accepted);
    co_return fuzz::connected_pair{std::move(*made), std::move(*accepted)};
}

task<void> talk_as_first(world& of, http::request_handler& by, http::session_limits limits) {
    fuzz::connected_pair ends = co_await connect(0);
    exchange_counter seen;
    std::string all;
    co_await join_scope([&](scope& both) -> task<void> {
        const auto pause = (of.flags & pauses) != 0 ? 1us : 0us;
        both.spawn(fuzz::send_pieces(ends.client, {of.flags, of.seed, of.text}, pause));
        both.spawn(fuzz::receive_all(ends.client, all));
        // Time passes at once here: silent clients are closed.
        co_await http::serve_observed(ends.server, by, limits, seen);
        ends.server.close();
    });
    check(all, seen, 0);
}

task<void> talk_as_second(http::request_handler& by, http::session_limits limits) {
    constexpr std::string_view text =
        "GET /b HTTP/1.1\r\nHost: b\r\n\r\n"
        "POST /b HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\n\r\nabc"
        "POST /b HTTP/1.1\r\nHost: b\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        "GET /b HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n";
    fuzz::connected_pair ends = co_await connect(1);
    exchange_counter seen;
    std::string all;
    co_await join_scope([&](scope& both) -> task<void> {
        both.spawn(fuzz::send_pieces(ends.client, {0, 0, text}));
        both.spawn(fuzz::receive_all(ends.client, all));
        co_await http::serve_observed(ends.server, by, limits, seen);
        ends.server.close();
    });
    EDDY_ASSERT(seen.count <= 4);
    check(all, seen, 1);
}

std::shared_ptr<const proxy::forwarding_rules> rules_of(const world& of) {
    proxy::forwarding_rules made;
    made.says = proxy::client_fields::x_forwarded;
    made.limits.header_bytes = 1024;
    if ((of.flags & one_slot) != 0) made.backend_connections = 1;
    return std::make_shared<const proxy::forwarding_rules>(std::move(made));
}

task<void> talk(fuzz::session_input input) {
    world of(input);
    http::session_limits limits;
    limits.parser.header_bytes = 1024;
    limits.parser.start_line = 512;
    limits.parser.body = 64 * 1024;
    listener behind = *loop::current().listen(*endpoint::ip("127.0.0.1", 0));
    proxy::wanted_backend where;
    where.where.host = "127.0.0.1";
    where.where.port = behind.local().port();
    const std::vector<proxy::wanted_backend> wanted = {where};
    proxy::route all;
    all.to = std::make_shared<proxy::balancer>(proxy::balancing(),
                                               proxy::update_backends({}, wanted, 1));
    serving::counters counted;
    silent_observer observer;
    proxy::forwarder by(0, counted, observer);
    by.set_rules(rules_of(of),
                 std::make_shared<proxy::route_table>(std::vector<proxy::route>{all}));
    scope backend;
    backend.spawn(serve_backend(of, behind));
    scope clients;
    const bool is_turned = (of.flags & second_first) != 0;
    if (is_turned) clients.spawn(talk_as_second(by, limits));
    clients.spawn(talk_as_first(of, by, limits));
    if (!is_turned) clients.spawn(talk_as_second(by, limits));
    co_await clients.join();
    of.check_memory();
    backend.cancel();
    co_await backend.join();
    by.close();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    return fuzz::run_session(data, size, talk);
}
