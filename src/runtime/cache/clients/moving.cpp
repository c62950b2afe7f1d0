// Living clients on their way to another instance: the connection, the state of its session, and
// what was received and not executed.
#include <eddy/io/loop.hpp>

#include "cache/clients/engine_clients.hpp"
#include "runtime/cache/clients/cache_worker.hpp"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <new>
#include <string>
#include <utility>

namespace eddy::runtime::cache {
namespace {

using eddy::cache::engine_clients;
using eddy::cache::moved_session;

/// Time for busy clients to come to a rest; the others wait.
constexpr duration rest_patience = std::chrono::seconds(1);
constexpr duration rest_pause = std::chrono::milliseconds(1);

void add(std::string& to, std::string_view text) { to += fmt::format("{}:{}", text.size(), text); }

// Bits of a session's properties in its text.
constexpr unsigned no_evict_bit = 1;
constexpr unsigned redirects_bit = 2;
constexpr unsigned reads_replica_bit = 4;

unsigned properties_of(const moved_session& of) noexcept {
    return (of.no_evict ? no_evict_bit : 0) | (of.redirects ? redirects_bit : 0) |
           (of.reads_replica ? reads_replica_bit : 0);
}

std::string text_of(const moved_session& of) {
    std::string made;
    for (const std::string* const each :
         {&of.user, &of.name, &of.library_name, &of.library_version, &of.address})
        add(made, *each);
    for (const auto* const names : {&of.channels, &of.patterns, &of.shard_channels}) {
        add(made, std::to_string(names->size()));
        for (const std::string& each : *names) add(made, each);
    }
    for (const unsigned each : {unsigned{of.special}, unsigned{of.protocol}, unsigned{of.db},
                                unsigned{of.authenticated}, properties_of(of)})
        add(made, std::to_string(each));
    return made;
}

/// Takes the next text of text_of(); false if there is none.
bool take(std::string_view& from, std::string& into) {
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), size);
    const auto used = static_cast<std::size_t>(end - from.data());
    if (error != std::errc{} || used >= from.size() || from[used] != ':' ||
        size > from.size() - used - 1)
        return false;
    into = from.substr(used + 1, size);
    from.remove_prefix(used + 1 + size);
    return true;
}

std::optional<moved_session> session_of(std::string_view text) {
    moved_session made;
    for (std::string* const each :
         {&made.user, &made.name, &made.library_name, &made.library_version, &made.address})
        if (!take(text, *each)) return std::nullopt;
    for (auto* const names : {&made.channels, &made.patterns, &made.shard_channels}) {
        std::size_t count = 0;
        std::string digits;
        if (!take(text, digits) ||
            std::from_chars(digits.data(), digits.data() + digits.size(), count).ec != std::errc{})
            return std::nullopt;
        for (; count > 0; --count)
            if (!take(text, names->emplace_back())) return std::nullopt;
    }
    unsigned numbers[5] = {};
    for (unsigned& each : numbers) {
        std::string digits;
        if (!take(text, digits)) return std::nullopt;
        if (std::from_chars(digits.data(), digits.data() + digits.size(), each).ec != std::errc{})
            return std::nullopt;
    }
    made.special = static_cast<std::uint16_t>(numbers[0]);
    made.protocol = static_cast<std::uint8_t>(numbers[1]);
    made.db = static_cast<std::uint8_t>(numbers[2]);
    made.authenticated = numbers[3] != 0;
    made.no_evict = (numbers[4] & no_evict_bit) != 0;
    made.redirects = (numbers[4] & redirects_bit) != 0;
    made.reads_replica = (numbers[4] & reads_replica_bit) != 0;
    return made;
}

}  // namespace

bool cache_worker::may_move(client& c) {
    // TLS and shared memory have no socket of their own, and their state cannot leave.
    if (!c.session || c.socket.native_handle() < 0) return false;
    const loop_lock lock(context_.lockable.get());
    return engine_clients(context_.engine).may_move(*c.session);
}

/// True for a client in push mode that serve() moves, once its replies are sent.
bool cache_worker::is_to_move(client& c) {
    return moved_ && !c.push_mode->at_end && !c.cancel.requested() && may_move(c);
}

bool cache_worker::has_clients_to_move() {
    bool found = false;
    clients_.for_each([&](serving::connection& each) {
        if (found || !static_cast<cache_connection&>(each).is_client()) return;
        found = may_move(static_cast<client&>(each));
    });
    return found;
}

task<std::vector<serving::passed_client>> cache_worker::move_clients() {
    loop& here = loop::current();
    moved_.emplace();
    clients_.for_each([](serving::connection& each) {
        if (!static_cast<cache_connection&>(each).is_client()) return;
        client& c = static_cast<client&>(each);
        if (c.push_mode)
            c.push_mode->something.set();
        else if (c.is_reading())
            c.interrupt();
    });
    const time_point until = here.after(rest_patience);
    co_await here.yield();
    while (has_clients_to_move() && here.now() < until)
        if (!co_await here.sleep_for(rest_pause)) break;
    std::vector<serving::passed_client> all;
    // Subscribers, which have sent nothing, are there before what others publish.
    for (const bool has_input : {false, true})
        for (serving::passed_client& each : *moved_)
            if (each.socket && each.input.empty() != has_input) all.push_back(std::move(each));
    moved_.reset();
    co_return all;
}

/// Between two commands of a client. True if it is not served here any more.
[[gnu::noinline]] task<bool> cache_worker::move(client& c) {
    if (c.cancel.requested() || !may_move(c) || !c.socket.driver().end_receiving()) co_return false;
    c.enter(serving::activity::working);
    // Its command would be lost here.
    const bool is_blocked = c.seen().blocked;
    for (;;) {
        const result<lease> got = co_await c.socket.read();
        if (!got && got.error() == errc::closed) break;
        if (!got) co_return is_blocked;
        counted_.bytes_in += got->size();
        keep(c, got->text());
    }
    if (!may_move(c) || !moved_) co_return true;
    serving::passed_client made;
    {
        const loop_lock lock(context_.lockable.get());
        const moved_session its = engine_clients(context_.engine).move_out(*c.session);
        made.state = text_of(its);
        made.input = its.waiting;
    }
    if (c.rest) {
        if (!c.rest->large.empty()) c.rest->join();
        made.input += c.rest->bytes.text();
    }
    auto socket = c.socket.detach();
    if (!socket) co_return true;
    made.socket = std::move(*socket);
    moved_->push_back(std::move(made));
    co_return true;
}

void cache_worker::take_moved(serving::passed_client from, serving::connection_slot slot) {
    auto socket = loop::current().adopt(std::move(from.socket));
    if (!socket) return note_lost("its socket cannot be used", socket.error());
    const auto its = session_of(from.state);
    if (!its) return note_lost("its state cannot be read", errc::bad_address);
    try {
        auto c = std::make_unique<client>(clients_, std::move(*socket), tasks_.source(), *this,
                                          std::move(slot));
        {
            const loop_lock lock(context_.lockable.get());
            // A user that is gone has no clients.
            if (!engine_clients(context_.engine).move_in(*c->session, *its)) return;
            note_view(*c);
        }
        keep(*c, from.input);
        // Not for bytes: a wake-up by its own commands, or before them, interrupts nothing.
        c->enter(serving::activity::working);
        begin(std::move(c));
    } catch (const std::bad_alloc&) {
        note_no_memory();
    }
}

}  // namespace eddy::runtime::cache
