// MIGRATE. Error texts are Redis's, since programs parse them.
#include "runtime/cache/replication/migrating.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/transport/transport.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include "base/problem.hpp"
#include "cache/clients/engine_clients.hpp"
#include "cache/engine/server_host.hpp"
#include "cache/types/number.hpp"
#include "runtime/cache/config/protection.hpp"

#include <algorithm>
#include <chrono>
#include <expected>
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

/// Between polls of whether the client is still there.
constexpr duration look_for_client = std::chrono::milliseconds(500);
/// The patience is for so many bytes at most: more may take longer.
constexpr std::size_t most_without_progress = 64U << 10;

constexpr const char* not_connected_text = "IOERR error or timeout connecting to the client";
constexpr const char* not_sent_text = "IOERR error or timeout writing to target instance";
constexpr const char* not_answered_text = "IOERR error or timeout reading to target instance";

/// Failure of a migration, with the reply to the client.
std::unexpected<problem> failed(std::string reply) { return refuse(503, std::move(reply)); }

// The connection to the other server.
class other_server {
public:
    other_server(stream connected, duration patience)
        : socket_(std::move(connected)), patience_(patience) {}

    task<outcome<>> send(byte_buffer commands) {
        const_bytes left = commands.bytes();
        while (!left.empty()) {
            const const_bytes piece = left.first(std::min(left.size(), most_without_progress));
            const result<> sent = co_await with_timeout(patience_, socket_.write_all(piece));
            if (!sent) co_return failed(not_sent_text);
            left = left.subspan(piece.size());
        }
        co_return outcome<>();
    }
    task<outcome<std::string>> line() {
        const time_point until = loop::current().after(patience_);
        for (;;) {
            const std::string_view text = in_.text();
            const std::size_t end = text.find("\r\n");
            if (end != std::string_view::npos && end <= most_migration_answer) {
                std::string found(text.substr(0, end));
                in_.consume(end + 2);
                co_return found;
            }
            if (text.size() > most_migration_answer) co_return failed(not_answered_text);
            const result<lease> got = co_await with_deadline(until, socket_.read());
            if (!got) co_return failed(not_answered_text);
            in_.append(got->text());
        }
    }
    task<outcome<std::string>> ask(std::initializer_list<std::string_view> words) {
        const std::vector<std::string_view> copied(words);
        byte_buffer out;
        resp::write_command(out, copied);
        if (auto sent = co_await send(std::move(out)); !sent)
            co_return std::unexpected(sent.error());
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

/// True for errors for which there was no address to connect to.
bool is_without_address(std::error_code error) noexcept {
    return error == errc::bad_address || error == errc::name_not_found ||
           error == errc::resolver_failed;
}

task<outcome<other_server>> connect(const eddy::cache::tls_settings& tls,
                                    const migration_order& order) {
    const auto port = eddy::cache::parse_integer(order.port);
    if (!port || *port <= 0 || *port > 65535) co_return failed(not_connected_text);
    tcp::connect_options how;
    how.timeout = order.patience;
    result<stream> connected = co_await transport::connect(
        server_address(tls, order.host, static_cast<std::uint16_t>(*port)), how);
    // As in Redis, which does not wait for the connection before it writes.
    if (!connected)
        co_return failed(is_without_address(connected.error()) ? not_connected_text
                                                               : not_sent_text);
    co_return other_server(std::move(*connected), order.patience);
}

// Before any key: one that came to another database, or to another server, would be lost.
task<outcome<>> introduce(other_server& to, const migration_order& order) {
    outcome<std::string> answer;
    if (order.has_password) {
        if (order.user.empty())
            answer = co_await to.ask({"AUTH", order.password});
        else
            answer = co_await to.ask({"AUTH", order.user, order.password});
        if (!answer) co_return std::unexpected(answer.error());
        if (answer->starts_with('-')) co_return failed(refusal_in(*answer));
    }
    answer = co_await to.ask({"SELECT", std::to_string(order.database)});
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->starts_with('-')) co_return failed(refusal_in(*answer));
    co_return outcome<>();
}

// Outcome for the keys of a migration.
struct outcome_of_keys {
    std::vector<std::size_t> taken;  // by the other server, and still here
    std::string refusal;             // the first one; empty: there was none
};

// Removes what the other server has, as soon as that is allowed.
task<outcome<>> remove_taken(migration& what, outcome_of_keys& of, cache_context& context) {
    if (of.taken.empty() || what.order().copies) co_return outcome<>();
    context.update_time();
    while (!what.may_remove()) {
        if (!co_await context.await_progress_until(what.pause_ends_us()))
            co_return failed("ERR it was given up before the keys could be removed here");
        context.update_time();
    }
    const std::vector<std::size_t> taken = std::exchange(of.taken, {});
    if (const std::string why = what.remove(taken); !why.empty())
        co_return failed("ERR the other server has some keys, and they stay here as well: " + why);
    co_return outcome<>();
}

// Keys of one message to the other server.
struct key_batch {
    std::vector<std::size_t> sent{};  // indices of the keys in the message
    std::size_t end = 0;              // end of the keys that were examined
    bool is_too_large = false;        // the last of these
};

// Writes keys from this index on, up to the limits of one message.
key_batch write_batch(migration& what, std::size_t next, byte_buffer& out) {
    key_batch made{.end = next};
    while (made.end < what.order().keys.size() && !made.is_too_large &&
           out.size() < most_migrated_at_once && made.sent.size() < most_keys_migrated_at_once) {
        switch (what.write(made.end, out)) {
            case migration::written::whole: made.sent.push_back(made.end); break;
            case migration::written::gone: break;
            case migration::written::too_large: made.is_too_large = true; break;
        }
        ++made.end;
    }
    return made;
}

// A key that the other server refuses does not keep the others from moving.
task<outcome<>> send_keys(other_server& to, migration& what, cache_context& context,
                          outcome_of_keys& of) {
    for (std::size_t next = 0; next < what.order().keys.size();) {
        while (what.is_crowded()) {
            context.keys_sent.reset();
            if (!co_await context.keys_sent.wait()) co_return failed(not_sent_text);
        }
        context.update_time();
        byte_buffer out;
        const key_batch batch = write_batch(what, next, out);
        EDDY_ASSERT(batch.end > next);
        next = batch.end;
        what.note_unsent(out.size());
        if (!out.empty()) {
            if (auto sent = co_await to.send(std::move(out)); !sent) co_return sent;
        }
        what.note_unsent(0);
        context.keys_sent.set();
        for (const std::size_t each : batch.sent) {
            const outcome<std::string> answer = co_await to.line();
            if (!answer) co_return std::unexpected(answer.error());
            if (answer->starts_with('+'))
                of.taken.push_back(each);
            else if (of.refusal.empty())
                of.refusal = refusal_in(*answer);
        }
        if (auto removed = co_await remove_taken(what, of, context); !removed) co_return removed;
        of.taken.clear();  // of copies
        what.release(next);
        if (batch.is_too_large)
            co_return failed(
                "ERR the value of a key takes more bytes than a reply may, as DUMP gives it");
    }
    co_return outcome<>();
}

task<outcome<>> move_keys(cache_context& of, migration& what, outcome_of_keys& of_keys) {
    outcome<other_server> to = co_await connect(of.settings.tls, what.order());
    if (!to) co_return std::unexpected(to.error());
    if (auto known = co_await introduce(*to, what.order()); !known) co_return known;
    co_return co_await send_keys(*to, what, of, of_keys);
}

// The same, until it is done or the client has gone: then no other migration waits for it.
task<outcome<>> move_keys_while_wanted(cache_context& of, migration& what,
                                       outcome_of_keys& of_keys) {
    cancel_source unwanted(co_await current_source());
    outcome<> moved;
    co_await with_scope([&](scope& looking) -> task<void> {
        looking.spawn([](const migration& its, cancel_source& end) -> task<void> {
            while (co_await loop::current().sleep_for(look_for_client)) {
                if (!its.is_wanted()) co_return end.request();
            }
        }(what, unwanted));
        moved = co_await move_keys(of, what, of_keys).under(unwanted);
    });
    co_return moved;
}

// Why the work could not be done, or empty.
task<std::string> error_of(task<outcome<>> work) {
    try {
        outcome<> done = co_await std::move(work);
        co_return done ? std::string() : std::move(done.error().message);
    } catch (const std::bad_alloc&) {
        co_return "ERR there is no memory for it";
    }
}

}  // namespace

task<void> migrate_keys(cache_context& of, std::uint64_t session, std::unique_ptr<migration> what) {
    EDDY_ASSERT(what != nullptr);
    // The command that began it has to end first.
    co_await loop::current().yield();
    outcome_of_keys of_keys;
    std::string error = co_await error_of(move_keys_while_wanted(of, *what, of_keys));
    if (!of_keys.refusal.empty()) error = of_keys.refusal;
    what->note_unsent(0);
    of.keys_sent.set();
    // Removes the keys that the other server had taken before the migration ended.
    std::string stays = co_await error_of(remove_taken(*what, of_keys, of));
    if (error.empty()) error = std::move(stays);
    // Releases the remaining keys, where the migration did not complete.
    for (std::size_t end = most_keys_migrated_at_once; end < what->order().keys.size();
         end += most_keys_migrated_at_once) {
        if (what->release(end)) co_await loop::current().yield();
    }
    of.update_time();
    what.reset();
    if (error.empty())
        eddy::cache::engine_clients(of.engine).answer(session, {});
    else
        eddy::cache::engine_clients(of.engine).answer_error(session, error);
}

}  // namespace eddy::runtime::cache
