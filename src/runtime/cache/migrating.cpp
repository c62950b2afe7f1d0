// MIGRATE. Error texts are Redis's, since programs parse them.
#include "runtime/cache/migrating.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/transport/transport.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include "cache/clients/waits.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/types/number.hpp"
#include "runtime/cache/protection.hpp"

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {
namespace {

using eddy::cache::migration;
using eddy::cache::migration_order;

/// Between polls while writes are held.
constexpr duration poll_pause = std::chrono::milliseconds(5);

/// Between polls of whether the client is still there.
constexpr duration look_for_client = std::chrono::milliseconds(500);
/// The patience is for so many bytes at most: more may take longer.
constexpr std::size_t most_without_progress = 64U << 10;

constexpr const char* not_connected_text = "IOERR error or timeout connecting to the client";
constexpr const char* not_sent_text = "IOERR error or timeout writing to target instance";
constexpr const char* not_answered_text = "IOERR error or timeout reading to target instance";

// Failure of a migration: the reply to the client.
struct trouble {
    std::string error;
};

// The connection to the other server.
class other_server {
public:
    other_server(stream connected, duration patience)
        : socket_(std::move(connected)), patience_(patience) {}

    task<void> send(byte_buffer commands) {
        const_bytes left = commands.bytes();
        while (!left.empty()) {
            const const_bytes piece = left.first(std::min(left.size(), most_without_progress));
            const result<> sent = co_await with_timeout(patience_, socket_.write_all(piece));
            if (!sent) throw trouble{not_sent_text};
            left = left.subspan(piece.size());
        }
    }
    task<std::string> line() {
        const time_point until = loop::current().after(patience_);
        for (;;) {
            const std::string_view text = in_.text();
            const std::size_t end = text.find("\r\n");
            if (end != std::string_view::npos && end <= most_migration_answer) {
                std::string found(text.substr(0, end));
                in_.consume(end + 2);
                co_return found;
            }
            if (text.size() > most_migration_answer) throw trouble{not_answered_text};
            const result<lease> got = co_await with_deadline(until, socket_.read());
            if (!got) throw trouble{not_answered_text};
            in_.append(got->text());
        }
    }
    task<std::string> ask(std::initializer_list<std::string_view> words) {
        const std::vector<std::string_view> copied(words);
        byte_buffer out;
        resp::write_command(out, copied);
        co_await send(std::move(out));
        co_return co_await line();
    }

private:
    stream socket_;
    duration patience_;
    byte_buffer in_;
};

std::string refusal_in(std::string answer) {
    answer.erase(0, 1);
    std::ranges::replace(answer, '\n', ' ');
    std::ranges::replace(answer, '\r', ' ');
    return "ERR Target instance replied with error: " + answer;
}

/// Whether there was nothing to connect to.
bool is_without_address(std::error_code error) noexcept {
    return error == errc::bad_address || error == errc::name_not_found ||
           error == errc::resolver_failed;
}

task<other_server> connect(const eddy::cache::engine& of, const migration_order& order) {
    const auto port = eddy::cache::parse_integer(order.port);
    if (!port || *port <= 0 || *port > 65535) throw trouble{not_connected_text};
    tcp::connect_options how;
    how.timeout = order.patience;
    result<stream> connected = co_await transport::connect(
        server_address(of.options().tls, order.host, static_cast<std::uint16_t>(*port)), how);
    // As in Redis, which does not wait for the connection before it writes.
    if (!connected)
        throw trouble{is_without_address(connected.error()) ? not_connected_text : not_sent_text};
    co_return other_server(std::move(*connected), order.patience);
}

// Before any key: one that came to another database, or to another server, would be lost.
task<void> introduce(other_server& to, const migration_order& order) {
    if (order.has_password) {
        std::string answer;
        if (order.user.empty())
            answer = co_await to.ask({"AUTH", order.password});
        else
            answer = co_await to.ask({"AUTH", order.user, order.password});
        if (answer.starts_with('-')) throw trouble{refusal_in(answer)};
    }
    const std::string answer = co_await to.ask({"SELECT", std::to_string(order.database)});
    if (answer.starts_with('-')) throw trouble{refusal_in(answer)};
}

// What comes of the keys.
struct outcome_of_keys {
    std::vector<std::size_t> taken;  // by the other server, and still here
    std::string refusal;             // the first one; empty: there was none
};

// Removes what the other server has, as soon as that is allowed.
task<void> remove_taken(migration& what, outcome_of_keys& of, cache_context& context) {
    if (of.taken.empty() || what.order().copies) co_return;
    context.update_time();
    while (!what.may_remove()) {
        if (!co_await loop::current().sleep_for(poll_pause))
            throw trouble{"ERR it was given up before the keys could be removed here"};
        context.update_time();
    }
    const std::vector<std::size_t> taken = std::exchange(of.taken, {});
    if (const std::string why = what.remove(taken); !why.empty())
        throw trouble{"ERR the other server has some keys, and they stay here as well: " + why};
}

// A key that the other server refuses does not keep the others from moving.
task<void> send_keys(other_server& to, migration& what, cache_context& context,
                     outcome_of_keys& of) {
    const std::size_t keys = what.order().keys.size();
    std::vector<std::size_t> sent;
    for (std::size_t next = 0; next < keys;) {
        while (what.is_crowded()) {
            if (!co_await loop::current().sleep_for(poll_pause)) throw trouble{not_sent_text};
        }
        context.update_time();
        byte_buffer out;
        bool is_too_large = false;
        while (next < keys && !is_too_large && out.size() < most_migrated_at_once &&
               sent.size() < most_keys_migrated_at_once) {
            switch (what.write(next, out)) {
                case migration::written::whole: sent.push_back(next); break;
                case migration::written::gone: break;
                case migration::written::too_large: is_too_large = true; break;
            }
            ++next;
        }
        what.note_unsent(out.size());
        if (!out.empty()) co_await to.send(std::move(out));
        what.note_unsent(0);
        for (const std::size_t each : sent) {
            const std::string answer = co_await to.line();
            if (answer.starts_with('+'))
                of.taken.push_back(each);
            else if (of.refusal.empty())
                of.refusal = refusal_in(answer);
        }
        sent.clear();
        co_await remove_taken(what, of, context);
        of.taken.clear();  // of copies
        what.release(next);
        if (is_too_large)
            throw trouble{
                "ERR the value of a key takes more bytes than a reply may, as DUMP gives it"};
    }
}

task<void> move_keys(cache_context& of, migration& what, outcome_of_keys& of_keys) {
    other_server to = co_await connect(of.engine, what.order());
    co_await introduce(to, what.order());
    co_await send_keys(to, what, of, of_keys);
}

// The same, until it is done or the client has gone: then no other migration waits for it.
task<void> move_keys_while_wanted(cache_context& of, migration& what, outcome_of_keys& of_keys) {
    cancel_source unwanted(co_await current_source());
    co_await with_scope([&](scope& looking) -> task<void> {
        looking.spawn([](const migration& its, cancel_source& end) -> task<void> {
            while (co_await loop::current().sleep_for(look_for_client)) {
                if (!its.is_wanted()) co_return end.request();
            }
        }(what, unwanted));
        co_await move_keys(of, what, of_keys).under(unwanted);
    });
}

// Why the work could not be done, or empty.
task<std::string> error_of(task<void> work) {
    try {
        co_await std::move(work);
    } catch (const trouble& known) {
        co_return known.error;
    } catch (const std::bad_alloc&) {
        co_return "ERR there is no memory for it";
    }
    co_return std::string();
}

}  // namespace

task<void> migrate_keys(cache_context& of, std::uint64_t session, std::unique_ptr<migration> what) {
    // The command that began it has to end first.
    co_await loop::current().yield();
    outcome_of_keys of_keys;
    std::string error = co_await error_of(move_keys_while_wanted(of, *what, of_keys));
    if (!of_keys.refusal.empty()) error = of_keys.refusal;
    what->note_unsent(0);
    // What the other server has taken before it went silent, or the client went.
    std::string stays = co_await error_of(remove_taken(*what, of_keys, of));
    if (error.empty()) error = std::move(stays);
    // Those that are left, where it did not come to its end.
    for (std::size_t end = most_keys_migrated_at_once; end < what->order().keys.size();
         end += most_keys_migrated_at_once) {
        if (what->release(end)) co_await loop::current().yield();
    }
    of.update_time();
    what.reset();
    if (error.empty())
        eddy::cache::answer(of.engine.internals(), session, {});
    else
        eddy::cache::answer_error(of.engine.internals(), session, error);
}

}  // namespace eddy::runtime::cache
