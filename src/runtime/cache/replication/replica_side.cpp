// Replica side of PSYNC. Input from the master is untrusted.
#include "runtime/cache/replication/replica_side.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/transport/transport.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include "base/problem.hpp"
#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"
#include "cache/persistence/append_log.hpp"
#include "cache/persistence/engine_files.hpp"
#include "cache/rdb/file_head.hpp"
#include "cache/rdb/load.hpp"
#include "cache/replication/expired_keys_view.hpp"
#include "cache/script/script_gap.hpp"
#include "runtime/cache/config/protection.hpp"
#include "runtime/cache/files/append_file.hpp"
#include "runtime/cache/replication/key_delay.hpp"
#include "runtime/cache/replication/trusted_limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <expected>
#include <initializer_list>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {
namespace {

using eddy::cache::client_session;
using eddy::cache::link_state;
using eddy::cache::replication;
using eddy::cache::rdb::loader;
using eddy::cache::rdb::magic_bytes;
using eddy::cache::rdb::reader;

constexpr duration retry_pause = std::chrono::seconds(1);
constexpr std::string_view again_text = "; it is tried again every second";
constexpr std::string_view copy_again_text = "; it is tried again after pauses of up to a minute";
constexpr duration ack_pause = std::chrono::seconds(1);
/// Valkey's version that is named to masters: one of Valkey 9 sends all that it has to replicas of
/// this version and newer ones alone.
constexpr std::string_view named_version = "9.0.0";
/// Bytes of a copy in one slice; keys are made of them.
constexpr std::size_t load_slice = 16 * 1024;
constexpr std::size_t id_size = 40;

/// Port of this replica that the master announces to its clients.
std::uint16_t announced_port(const eddy::cache::server_settings& of) {
    if (of.replica.announce_port != 0) return of.replica.announce_port;
    const bool by_tls = of.tls.port != 0 && (of.tls.replication || of.port == 0);
    return by_tls ? of.tls.port : of.port;
}

/// The end of a link, with its reason for the journal.
std::unexpected<problem> lost(std::string why) { return refuse(503, std::move(why)); }

bool is_id(std::string_view text) noexcept {
    return text.size() == id_size && text.find_first_of(" \r\n") == std::string_view::npos;
}

std::optional<std::uint64_t> number_of(std::string_view text) noexcept {
    std::uint64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    constexpr auto most = static_cast<std::uint64_t>(INT64_MAX) / 2;
    if (read.ec != std::errc() || read.ptr != text.data() + text.size() || value > most) {
        return std::nullopt;
    }
    return value;
}

/// Bytes of the master's input that a message repeats.
constexpr std::size_t most_shown = 200;

/// Reply to PSYNC of a master that sends its stream.
struct sync_answer {
    std::string id;                        ///< of the stream; empty: as before
    std::optional<std::uint64_t> copy_at;  ///< all data comes first, as of this offset
};

outcome<sync_answer> sync_answer_in(std::string_view reply) {
    constexpr std::string_view on = "+CONTINUE";
    constexpr std::string_view full = "+FULLRESYNC ";
    if (reply.starts_with(on)) {
        std::string_view id = reply.substr(on.size());
        if (id.starts_with(' ')) id.remove_prefix(1);
        if (id.empty() || is_id(id)) return sync_answer{std::string(id), std::nullopt};
    } else if (reply.starts_with(full)) {
        const std::string_view rest = reply.substr(full.size());
        const std::string_view id = rest.substr(0, rest.find(' '));
        const auto offset =
            id.size() < rest.size() ? number_of(rest.substr(id.size() + 1)) : std::nullopt;
        if (is_id(id) && offset) return sync_answer{std::string(id), offset};
    }
    return lost("it answered PSYNC with: " + printable(reply, most_shown));
}

bool is_alone(const resp::command& what, std::string_view name) noexcept {
    return what.argc == 1 && is_word(what.argv[0], name);
}

/// Number of commands before the MULTI of the transaction that is open behind them. A MULTI within
/// it begins nothing.
std::size_t before_open_transaction(std::span<const resp::command> all, bool is_open) noexcept {
    std::size_t before = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (is_open) {
            is_open = !is_alone(all[i], "exec") && !is_alone(all[i], "discard");
        } else if (is_alone(all[i], "multi")) {
            is_open = true;
            before = i;
        }
    }
    return before;
}

/// Connects from `source` if that is an address of this machine, else from one of the system's
/// choice, as Redis does with its bind-source-addr.
task<result<stream>> connect_from(std::string source, transport::address where,
                                  tcp::connect_options how) {
    const result<endpoint> from = endpoint::ip(source, 0);
    if (!source.empty() && from) {
        how.local.address = *from;
        result<stream> connected = co_await transport::connect(where, how);
        if (connected || (connected.error() != std::errc::address_not_available &&
                          connected.error() != std::errc::address_family_not_supported))
            co_return connected;
        how.local = local_binding();
    }
    co_return co_await transport::connect(std::move(where), std::move(how));
}

/// Database that a SELECT selects; none for another command.
std::optional<std::uint8_t> selected_by(const resp::command& what) noexcept {
    if (what.argc != 2 || !is_word(what.argv[0], "select")) return std::nullopt;
    const auto number = number_of(what.argv[1]);
    if (!number || *number >= eddy::cache::engine::databases) return std::nullopt;
    return static_cast<std::uint8_t>(*number);
}

}  // namespace

/// One connection. It ends with a failed outcome, whose message is the reason.
class replica_side::link {
public:
    link(replica_side& owner, stream connected)
        : of_(owner),
          its_(owner.links()),
          engine_(owner.context_.engine),
          socket(std::move(connected)),
          parser_(limits_of_trusted()) {}

    task<outcome<>> handshake();
    /// By PSYNC: the stream begins behind it.
    task<outcome<>> synchronize();
    /// Yields the reason for the stream's end.
    task<outcome<>> apply_stream();

private:
    friend class replica_side;

    struct own_session final : client_session {
        own_session(link& on, eddy::cache::engine& engine)
            : client_session(engine, on.socket.peer().to_string(), on.socket.local().to_string()),
              on_(on) {
            special |= client_session::master | client_session::reply_off;
        }
        void wake() noexcept override { on_.of_.context_.progress.set(); }
        void close_now() noexcept override {
            if (on_.of_.current_ != nullptr) on_.of_.current_->request();
        }
        void strayed(std::string_view command) override { stray = command; }

        std::string stray;  // a command that no master sends, and this one has

    private:
        link& on_;
    };

    task<outcome<std::string>> ask(std::initializer_list<std::string_view> words);
    task<outcome<>> authenticate();
    task<outcome<sync_answer>> request_failover(std::string id, std::string from);
    task<outcome<sync_answer>> request_stream(std::string id, std::string from);
    task<outcome<>> receive();
    task<outcome<std::string>> line();
    task<outcome<>> load(sync_answer answer, std::string announced);
    task<outcome<>> check_head(std::optional<std::uint64_t> size);
    std::unexpected<problem> refuse_copy(std::string why);
    task<outcome<>> feed_loader(loader& into, std::optional<std::uint64_t> left);
    task<outcome<>> skip_mark(std::string_view mark);
    std::size_t feed(loader& into, std::string_view piece);
    task<outcome<>> yield_to_others() const;
    task<outcome<>> wait_for_gap();
    outcome<> check_generation() const;
    outcome<> check_memory() const;
    task<outcome<>> apply();
    struct applied;
    outcome<applied> execute(const resp::batch_outcome& parsed);
    std::uint64_t failures() const noexcept { return engine_.stats().unexpected_errors; }
    void log_failure();
    std::size_t size_of(std::size_t commands);
    outcome<> hold(std::span<const resp::command> executed, std::size_t size);
    void pass_on(std::size_t size);

    replica_side& of_;
    replication& its_;
    eddy::cache::engine& engine_;
    stream socket;
    byte_buffer in_;    // received, not understood yet
    byte_buffer held_;  // executed in a transaction that has not ended: not counted
    resp::request_parser parser_;
    resp::request_batch batch_;
    byte_buffer replies_;  // discarded
    std::optional<own_session> session_;
    bool has_logged_failure_ = false;
};

void replica_side::wake() noexcept {
    woken_.set();
    ack_wanted_.set();
    if (current_ != nullptr && links().generation() != generation_) current_->request();
}

void replica_side::log(std::string_view what) {
    if (last_logged_ == what) return;
    last_logged_ = what;
    context_.events.write(what);
}

task<void> replica_side::run() {
    for (;;) {
        woken_.reset();
        cancel_source* const source = co_await current_source();
        if (source != nullptr && source->requested()) co_return;
        links().advance_failover();
        if (!links().is_replica()) {
            if (!co_await woken_.wait()) co_return;
            continue;
        }
        const bool is_new = generation_ != links().generation();
        generation_ = links().generation();
        if (is_new) {
            last_logged_.clear();
            copy_pauses_.reset();
        }
        copy_refused_ = false;
        {
            cancel_source mine(source);
            current_ = &mine;
            try {
                co_await replicate_once().under(mine);
            } catch (const std::bad_alloc&) {
                ++context_.counted.errors;
            }
            current_ = nullptr;
        }
        context_.update_time();
        if (source != nullptr && source->requested()) co_return;
        if (generation_ != links().generation()) continue;
        if (links().is_loading()) links().fail_load();
        links().set_link(link_state::connect);
        if (!co_await pause()) co_return;
    }
}

/// Waits before the next attempt, or until the master changes. False when cancelled.
task<bool> replica_side::pause() {
    const duration length = copy_refused_ ? copy_pauses_.next() : retry_pause;
    const time_point until = loop::current().now() + length;
    while (loop::current().now() < until && generation_ == links().generation()) {
        woken_.reset();
        const result<> woken = co_await with_deadline(until, woken_.wait());
        if (!woken && woken.error() != errc::timed_out) co_return false;
    }
    co_return true;
}

task<void> replica_side::replicate_once() {
    replication& its = links();
    const std::int64_t timeout_s = context_.engine.options().replication.timeout_s;
    const std::string name = fmt::format("{}:{}", its.master_host(), its.master_port());
    its.set_link(link_state::connecting);
    const transport::address where =
        server_address(context_.settings.tls, its.master_host(), its.master_port());
    tcp::connect_options how;
    how.timeout = std::chrono::seconds(std::max<std::int64_t>(timeout_s, 1));
    how.socket = tcp::keepalive_after(context_.settings.tcp_keepalive);
    result<stream> connected =
        co_await connect_from(context_.settings.replica.source_address, where, how);
    if (!connected) {
        if (connected.error() == errc::cancelled) co_return;
        const std::string why = where.kind == transport::scheme::tls
                                    ? " by TLS (tls-replication): " +
                                          transport::explain(where.to_string(), connected.error())
                                    : ": " + connected.error().message();
        log(fmt::format("cannot reach the master {}{}{}", name, why, again_text));
        // The target was not asked to become master.
        if (!its.failover().asked) its.abort_failover("the replica cannot be reached");
        co_return;
    }
    if (generation_ != its.generation()) co_return;
    its.set_link(link_state::handshake);
    std::string why;
    try {
        link on(*this, std::move(*connected));
        why = (co_await replicate_over(on)).error().message;
    } catch (const std::bad_alloc&) {
        // Progress within a command is unknown.
        its.cannot_resume();
        copy_refused_ = true;
        why = "there is no memory for its data";
    }
    if (generation_ != its.generation()) co_return;
    if (its.is_failing_over() && !its.failover().asked) co_return its.abort_failover(why);
    log(fmt::format("the master {} is lost: {}{}", name, why,
                    copy_refused_ ? copy_again_text : again_text));
}

/// Yields why the connection has ended, never a success.
task<outcome<>> replica_side::replicate_over(link& on) {
    if (auto done = co_await on.handshake(); !done) co_return done;
    if (auto done = co_await on.synchronize(); !done) co_return done;
    last_logged_.clear();
    copy_pauses_.reset();
    outcome<> ended;
    co_await with_scope([this, &on, &ended](scope& acks) -> task<void> {
        acks.spawn(acknowledge(on));
        ended = co_await on.apply_stream();
    });
    EDDY_ASSERT(!ended);
    co_return ended;
}

/// The offset up to which this server's disk has the master's stream, as far as that is known.
std::uint64_t replica_side::note_disk() {
    const eddy::cache::append_log* const log = eddy::cache::engine_files(context_.engine).append();
    if (log == nullptr || !log->has_on_disk(0)) return 0;
    if (!unsynced_) unsynced_ = mark{links().offset(), log->appended};
    if (log->has_on_disk(unsynced_->position))
        synced_offset_ = std::exchange(unsynced_, {})->offset;
    if (log->has_on_disk(log->appended)) synced_offset_ = links().offset();
    return synced_offset_;
}

/// Sends the offset, each second and on request.
task<void> replica_side::acknowledge(link& on) {
    for (;;) {
        ack_wanted_.reset();
        links().ack_wanted = false;
        const std::string offset = std::to_string(links().offset());
        const std::string synced = std::to_string(note_disk());
        byte_buffer out;
        const std::string_view words[] = {"REPLCONF", "ACK", offset, "FACK", synced};
        // Without an append-only file there is no offset on disk.
        const bool has_disk = context_.engine.options().append.enabled;
        resp::write_command(out, std::span(words).first(has_disk ? 5 : 3));
        if (!co_await on.socket.write_all(out.bytes())) co_return;
        const result<> woken = co_await with_timeout(ack_pause, ack_wanted_.wait());
        if (!woken && woken.error() != errc::timed_out) co_return;
    }
}

// --- Before the stream --------------------------------------------------------------------------

task<outcome<std::string>> replica_side::link::ask(std::initializer_list<std::string_view> words) {
    const std::vector<std::string_view> copied(words);
    byte_buffer out;
    resp::write_command(out, copied);
    const result<> sent = co_await socket.write_all(out.bytes());
    if (!sent) co_return lost("the connection broke: " + sent.error().message());
    co_return co_await line();
}

task<outcome<>> replica_side::link::receive() {
    // Appended changes that the disk lacks are limited.
    if (of_.context_.append != nullptr) co_await of_.context_.append->await_room();
    // CONFIG SET may change the limit while this waits.
    const time_point began = loop::current().now();
    constexpr duration poll_pause = std::chrono::seconds(1);
    std::int64_t limit_s = 0;
    result<lease> got = fail(errc::timed_out);
    for (bool waits = true; waits;) {
        limit_s = std::max<std::int64_t>(engine_.options().replication.timeout_s, 1);
        const time_point end = began + std::chrono::seconds(limit_s);
        const time_point until = std::min(end, loop::current().now() + poll_pause);
        got = co_await with_deadline(until, socket.read());
        waits = !got && got.error() == errc::timed_out && loop::current().now() < end;
    }
    if (!got) {
        if (got.error() == errc::timed_out)
            co_return lost(fmt::format("it sent nothing for {} s", limit_s));
        co_return lost(got.error() == errc::end_of_stream
                           ? "it closed the connection"
                           : "the connection broke: " + got.error().message());
    }
    of_.context_.update_time();
    of_.context_.counted.bytes_in += got->size();
    ++of_.context_.counted.reads;
    // Input that came together with a change of the master is not of the new one.
    if (auto same = check_generation(); !same) co_return same;
    its_.last_input_us = engine_.steady_us();
    in_.append(got->text());
    co_return outcome<>();
}

/// The next line that is not empty: empty ones are signs of life.
task<outcome<std::string>> replica_side::link::line() {
    for (;;) {
        const std::string_view text = in_.text();
        const std::size_t end = text.find('\n');
        if (end == std::string_view::npos) {
            if (text.size() > max_line) co_return lost("it sent a line that does not end");
            const outcome<> more = co_await receive();
            if (!more) co_return std::unexpected(more.error());
            continue;
        }
        if (end > max_line) co_return lost("it sent a line that is too long");
        std::string found(text.substr(0, end));
        in_.consume(end + 1);
        if (!found.empty() && found.back() == '\r') found.pop_back();
        if (!found.empty()) co_return found;
    }
}

task<outcome<>> replica_side::link::handshake() {
    outcome<std::string> reply = co_await ask({"PING"});
    if (!reply) co_return std::unexpected(reply.error());
    const bool is_known = reply->starts_with('+') || reply->starts_with("-NOAUTH") ||
                          reply->starts_with("-NOPERM") ||
                          reply->starts_with("-ERR operation not permitted");
    if (!is_known) co_return lost("it answered PING with: " + printable(*reply, most_shown));
    if (auto done = co_await authenticate(); !done) co_return done;
    const std::string port = std::to_string(announced_port(of_.context_.settings));
    // Masters that do not know these attributes continue nevertheless.
    reply = co_await ask({"REPLCONF", "listening-port", port});
    if (!reply) co_return std::unexpected(reply.error());
    const std::string address = of_.context_.settings.replica.announce_ip;
    if (!address.empty()) reply = co_await ask({"REPLCONF", "ip-address", address});
    if (!reply) co_return std::unexpected(reply.error());
    reply = co_await ask({"REPLCONF", "capa", "eof", "capa", "psync2"});
    if (!reply) co_return std::unexpected(reply.error());
    reply = co_await ask({"REPLCONF", "version", named_version});
    if (!reply) co_return std::unexpected(reply.error());
    co_return outcome<>();
}

/// By AUTH, where there is a password.
task<outcome<>> replica_side::link::authenticate() {
    const std::string user = of_.context_.settings.replica.master_user;
    const std::string password = of_.context_.settings.replica.master_password;
    if (password.empty()) co_return outcome<>();
    outcome<std::string> reply;
    if (user.empty())
        reply = co_await ask({"AUTH", password});
    else
        reply = co_await ask({"AUTH", user, password});
    if (!reply) co_return std::unexpected(reply.error());
    if (!reply->starts_with('+'))
        co_return lost("it refused the password (masterauth): " + printable(*reply, most_shown));
    co_return outcome<>();
}

/// FAILOVER: requests that the replica become master. Yields its reply when it has.
///
/// Where that has certainly not happened this server stays master. While it is unknown the request
/// is repeated: with two masters each would take writes that the other loses.
task<outcome<sync_answer>> replica_side::link::request_failover(std::string id, std::string from) {
    // The request of a connection that broke may have arrived.
    const bool was_asked = its_.failover().asked;
    its_.note_failover_asked();
    outcome<std::string> reply = co_await ask({"PSYNC", id, from, "FAILOVER"});
    if (!reply) co_return std::unexpected(reply.error());
    const bool is_refusal = reply->starts_with("-ERR PSYNC FAILOVER ");
    const bool is_master_already = is_refusal && reply->contains("can't be sent to a master");
    if (was_asked && is_master_already) reply = co_await ask({"PSYNC", id, from});
    if (!reply) co_return std::unexpected(reply.error());
    if (const auto same = check_generation(); !same) co_return std::unexpected(same.error());
    if (reply->starts_with('-')) {
        const bool is_still_replica = is_refusal && !is_master_already;
        if (!was_asked || is_still_replica)
            its_.abort_failover("the replica refuses to become master: " +
                                printable(*reply, most_shown));
        co_return lost("it answered PSYNC with: " + printable(*reply, most_shown));
    }
    const outcome<sync_answer> answer = sync_answer_in(*reply);
    if (!answer) co_return answer;
    // It was restarted since it had everything, and its data would replace the only copy. A replica
    // that continues the stream has shown that it has it.
    const std::uint64_t least =
        std::max<std::uint64_t>(its_.failover().least, is_master_already ? 1 : 0);
    if (answer->copy_at && *answer->copy_at < least) {
        const std::string why =
            fmt::format("it is master of other data: they end at {}, and it had all up to {}",
                        *answer->copy_at, least);
        its_.abort_failover(why);
        co_return lost(why);
    }
    its_.end_failover();
    co_return answer;
}

/// By PSYNC, with a request for failover if one is under way.
task<outcome<sync_answer>> replica_side::link::request_stream(std::string id, std::string from) {
    if (its_.is_failing_over()) co_return co_await request_failover(std::move(id), std::move(from));
    const outcome<std::string> reply = co_await ask({"PSYNC", id, from});
    if (!reply) co_return std::unexpected(reply.error());
    co_return sync_answer_in(*reply);
}

task<outcome<>> replica_side::link::synchronize() {
    const bool resumes = its_.may_resume();
    const std::string id = resumes ? its_.id() : "?";
    const std::string from = resumes ? std::to_string(its_.offset() + 1) : "-1";
    outcome<sync_answer> answer = co_await request_stream(id, from);
    if (!answer) co_return std::unexpected(answer.error());
    if (answer->copy_at) {
        outcome<std::string> announced = co_await line();
        if (!announced) co_return std::unexpected(announced.error());
        co_return co_await load(std::move(*answer), std::move(*announced));
    }
    if (!resumes) co_return lost("it continues a stream that was not requested");
    session_.emplace(*this, engine_);
    session_->db = its_.stream_database;
    its_.resumed(answer->id);
    of_.context_.events.write(
        fmt::format("replicates {}:{} again, from where the link broke: offset {}",
                    its_.master_host(), its_.master_port(), its_.offset()));
    co_return outcome<>();
}

// --- A full copy --------------------------------------------------------------------------------

outcome<> replica_side::link::check_generation() const {
    if (of_.generation_ != its_.generation()) return lost("it is not the master any more");
    return {};
}

task<outcome<>> replica_side::link::yield_to_others() const {
    co_await loop::current().yield();
    cancel_source* const source = co_await current_source();
    if (source != nullptr && source->requested())
        co_return lost("replication was ended or changed here");
    if (auto same = check_generation(); !same) co_return same;
    of_.context_.update_time();
    // Also for a replica without clients of its own.
    of_.context_.ask_upkeep();
    co_return outcome<>();
}

/// Waits until a script that takes long has ended, and CLIENT PAUSE does not hold up the stream.
/// Nothing is received meanwhile: the stream stays with the master, up to its limit.
task<outcome<>> replica_side::link::wait_for_gap() {
    eddy::cache::script_gap gap(engine_);
    while (!gap.is_there(!session_ || !session_->blocked)) {
        const std::int64_t until_us =
            session_ ? eddy::cache::engine::deadline_us(*session_) : client_session::no_deadline;
        if (!co_await of_.context_.await_progress_until(until_us))
            co_return lost("replication was ended or changed here");
        if (auto same = check_generation(); !same) co_return same;
        of_.context_.update_time();
        if (session_) engine_.end_wait(*session_);
    }
    co_return outcome<>();
}

outcome<> replica_side::link::check_memory() const {
    const std::size_t limit = engine_.options().max_memory;
    const std::size_t used = engine_.used_memory();
    if (limit != 0 && used / most_over_memory > limit)
        return lost(fmt::format("its data takes {} bytes, {} times this cache's maxmemory", used,
                                most_over_memory));
    return {};
}

task<outcome<>> replica_side::link::load(sync_answer answer, std::string announced) {
    EDDY_ASSERT(answer.copy_at && !session_);
    constexpr std::string_view eof = "$EOF:";
    std::optional<std::uint64_t> size;
    std::string mark;
    if (announced.starts_with(eof) && announced.size() == eof.size() + id_size) {
        mark = announced.substr(eof.size());
    } else if (announced.starts_with('$')) {
        size = number_of(std::string_view(announced).substr(1));
    }
    if (!size && mark.empty())
        co_return lost("it sent no data, but: " + printable(announced, most_shown));
    if (auto readable = co_await check_head(size); !readable) co_return readable;
    // A script must not see the data change.
    if (auto gap = co_await wait_for_gap(); !gap) co_return gap;
    // Only now is it certain that there is data to replace the old.
    of_.context_.events.write(
        fmt::format("takes all data of {}:{}", its_.master_host(), its_.master_port()));
    const time_point began = loop::current().now();
    its_.copy_size = size.value_or(0);
    its_.copy_bytes = 0;
    its_.begin_load();
    of_.unsynced_.reset();
    of_.synced_offset_ = 0;
    eddy::cache::rdb::load_options options;
    options.keep_expired = true;
    loader into(engine_, options);
    if (auto fed = co_await feed_loader(into, size); !fed) co_return fed;
    if (auto ended = co_await skip_mark(mark); !ended) co_return ended;
    session_.emplace(*this, engine_);
    session_->db = its_.stream_database = into.stream_database();
    its_.end_load(answer.id, *answer.copy_at);
    eddy::cache::engine_files(engine_).note_copied(into.counts().keys);
    const std::chrono::duration<double> took = loop::current().now() - began;
    of_.context_.events.write(fmt::format("has all data of {}:{}: {} keys, {} bytes in {:.3f} s",
                                          its_.master_host(), its_.master_port(),
                                          into.counts().keys, its_.copy_bytes, took.count()));
    of_.context_.ask_upkeep();
    co_return outcome<>();
}

/// A copy that cannot be taken: the next one would be the same.
std::unexpected<problem> replica_side::link::refuse_copy(std::string why) {
    of_.copy_refused_ = true;
    return lost(std::move(why));
}

/// Waits for the copy's first bytes. They decide whether it is of a format that is read, before the
/// old data is dropped for it.
task<outcome<>> replica_side::link::check_head(std::optional<std::uint64_t> size) {
    if (size && *size < magic_bytes)
        co_return refuse_copy(fmt::format("its data is wrong: {} bytes are no RDB file", *size));
    while (in_.size() < magic_bytes) {
        if (auto more = co_await receive(); !more) co_return more;
    }
    const eddy::cache::rdb::file_head head(in_.text().substr(0, magic_bytes));
    if (head.fault() == nullptr) co_return outcome<>();
    if (head.is_unknown_format())
        co_return refuse_copy(fmt::format("its data cannot be read: {}", head.fault()));
    co_return refuse_copy(fmt::format("its data is wrong at byte 0: {}", head.fault()));
}

/// Feeds the loader until the file has ended, of which `left` bytes are to come if that is known.
task<outcome<>> replica_side::link::feed_loader(loader& into, std::optional<std::uint64_t> left) {
    time_point sent_at = loop::current().now();
    while (into.now() == reader::status::reading) {
        if (in_.empty()) {
            if (auto more = co_await receive(); !more) co_return more;
        }
        std::string_view piece = in_.text().substr(0, load_slice);
        if (left)
            piece = piece.substr(
                0, static_cast<std::size_t>(std::min<std::uint64_t>(*left, piece.size())));
        if (piece.empty()) {
            into.finish();
            break;
        }
        const std::uint64_t keys = into.counts().keys;
        const std::size_t taken = feed(into, piece);
        EDDY_ASSERT(taken <= piece.size());
        in_.consume(taken);
        its_.copy_bytes += taken;
        eddy::cache::engine_files(engine_).set_loaded_bytes(its_.copy_bytes);
        if (left) *left -= taken;
        // The old data goes as the new comes, so that there are not both at the end.
        static_cast<void>(engine_.upkeep());
        if (auto fits = check_memory(); !fits) co_return refuse_copy(fits.error().message);
        co_await delay_keys(of_.context_.settings, &eddy::cache::server_settings::load_key_delay_us,
                            into.counts().keys - keys);
        if (auto done = co_await yield_to_others(); !done) co_return done;
        // Keeps the master from timing this side out.
        if (loop::current().now() - sent_at > ack_pause) {
            sent_at = loop::current().now();
            static_cast<void>(socket.try_write(as_bytes(std::string_view("\n"))));
        }
    }
    if (into.now() != reader::status::done && into.fault().is_unknown_format)
        co_return refuse_copy(fmt::format("its data cannot be read: {}", into.fault().what));
    if (into.now() != reader::status::done)
        co_return refuse_copy(fmt::format("its data is wrong at byte {}: {}", into.fault().offset,
                                          into.fault().what));
    if (left && *left != 0)
        co_return refuse_copy("its data ended before the size that it announced");
    co_return outcome<>();
}

/// Loads the part of the piece that the loader takes. Yields its size.
std::size_t replica_side::link::feed(loader& into, std::string_view piece) {
    const eddy::cache::expired_keys_view whole(engine_);
    return into.feed(piece);
}

/// The mark behind data of unknown size; empty for data of a known one.
task<outcome<>> replica_side::link::skip_mark(std::string_view mark) {
    while (in_.size() < mark.size()) {
        if (auto more = co_await receive(); !more) co_return more;
    }
    if (in_.text().substr(0, mark.size()) != mark)
        co_return refuse_copy("its data did not end with the mark that it announced");
    in_.consume(mark.size());
    co_return outcome<>();
}

// --- The stream ---------------------------------------------------------------------------------

task<outcome<>> replica_side::link::apply_stream() {
    its_.last_input_us = engine_.steady_us();
    for (;;) {
        if (auto done = co_await apply(); !done) co_return done;
        if (auto more = co_await receive(); !more) co_return more;
    }
}

/// The executed part of a batch.
struct replica_side::link::applied {
    std::size_t size = 0;  ///< bytes that count for the offset now
    bool stopped = false;  ///< commands are left
};

/// Executes the whole commands that are there.
task<outcome<>> replica_side::link::apply() {
    for (;;) {
        if (auto gap = co_await wait_for_gap(); !gap) co_return gap;
        session_->unlimited = session_->authenticated = true;
        session_->special |= client_session::reply_off;
        const resp::batch_outcome parsed = batch_.parse(parser_, in_.text());
        applied done{.size = parsed.consumed};
        if (!parsed.commands.empty()) {
            const outcome<applied> executed = execute(parsed);
            if (!executed) co_return std::unexpected(executed.error());
            done = *executed;
        }
        pass_on(done.size);
        if (!session_->stray.empty()) {
            // It would come again.
            its_.cannot_resume();
            co_return lost("it sent '" + printable(session_->stray, most_shown) +
                           "', which no master sends");
        }
        if (auto fits = check_memory(); !fits) co_return fits;
        if (done.stopped) continue;
        switch (parsed.status) {
            case resp::parse_status::need_more: in_.release_if_empty(); co_return outcome<>();
            case resp::parse_status::error:
                // It would come again.
                its_.cannot_resume();
                co_return lost("it broke the protocol: " + printable(parsed.error, most_shown));
            case resp::parse_status::complete: break;
        }
        if (auto going = co_await yield_to_others(); !going) co_return going;
    }
}

/// Executes a batch, up to the command that has to wait or that no master sends.
outcome<replica_side::link::applied> replica_side::link::execute(
    const resp::batch_outcome& parsed) {
    const std::uint64_t failed_before = has_logged_failure_ ? 0 : failures();
    std::size_t executed = engine_.execute(*session_, parsed.commands, replies_);
    if (!has_logged_failure_ && failures() != failed_before) log_failure();
    EDDY_ASSERT(executed <= parsed.commands.size());
    replies_.clear();
    engine_.take_output(*session_, replies_);
    replies_.clear();
    of_.context_.counted.messages_in += executed;
    const bool strayed = !session_->stray.empty();
    if (strayed) {
        // It is not passed on.
        EDDY_ASSERT(executed > 0);
        --executed;
    }
    applied done{.size = parsed.consumed,
                 .stopped = executed < parsed.commands.size() || session_->blocked};
    if (session_->closing && !strayed) return lost("the connection to it was killed");
    // It may have sent REPLICAOF.
    if (const auto same = check_generation(); !same) return std::unexpected(same.error());
    if (done.stopped) {
        done.size = size_of(executed);
        parser_ = resp::request_parser(parser_.limits());
    }
    if ((session_->special & client_session::in_transaction) == 0) {
        its_.stream_database = session_->db;
        return done;
    }
    const auto held = hold(parsed.commands.first(executed), std::exchange(done.size, 0));
    if (!held) return std::unexpected(held.error());
    return done;
}

/// Logs the first command of the link that failed here; the engine counts all of them.
void replica_side::link::log_failure() {
    has_logged_failure_ = true;
    of_.context_.events.write(
        fmt::format("a command of the master {}:{} failed here, so that the data may differ from "
                    "its data; INFO counts these as unexpected_error_replies, and by kind in "
                    "errorstats and commandstats",
                    its_.master_host(), its_.master_port()));
}

/// Bytes of the first so many commands of the input.
std::size_t replica_side::link::size_of(std::size_t commands) {
    const std::string_view input = in_.text();
    resp::request_parser again(parser_.limits());
    std::size_t size = 0;
    for (std::size_t i = 0; i < commands; ++i) size += again.next(input.substr(size)).consumed;
    return size;
}

/// Holds executed commands of an open transaction. They count only at its end: after a broken link
/// it comes again as a whole.
outcome<> replica_side::link::hold(std::span<const resp::command> executed, std::size_t size) {
    const std::size_t before = before_open_transaction(executed, !held_.empty());
    for (const resp::command& each : executed.first(before)) {
        if (const auto chosen = selected_by(each)) its_.stream_database = *chosen;
    }
    const std::size_t counted = size_of(before);
    EDDY_ASSERT(counted <= size && size <= in_.size());
    pass_on(counted);
    held_.append(in_.text().substr(0, size - counted));
    in_.consume(size - counted);
    const std::size_t limit = of_.context_.settings.replica.max_transaction;
    if (held_.size() > limit) {
        its_.cannot_resume();
        return lost(fmt::format("it sent a transaction of more than {} bytes", limit));
    }
    return {};
}

/// Counts so many bytes as executed, and sends them to the replicas of this cache.
void replica_side::link::pass_on(std::size_t size) {
    if (size == 0) return;
    EDDY_ASSERT(size <= in_.size());
    if (!held_.empty()) {
        its_.feed_from_master(held_.text());
        held_ = byte_buffer();
    }
    its_.feed_from_master(in_.text().substr(0, size));
    in_.consume(size);
}

}  // namespace eddy::runtime::cache
