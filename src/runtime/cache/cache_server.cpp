// Serving RESP clients.
#include "runtime/cache/cache_server.hpp"

#include <eddy/io/file.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/wire/resp/reply_writer.hpp>

#include "cache/client_memory.hpp"
#include "cache/persistence.hpp"
#include "runtime/cache/append_file.hpp"
#include "runtime/cache/cache_hooks.hpp"
#include "runtime/cache/dump_file.hpp"
#include "runtime/cache/protection.hpp"
#include "runtime/cache/replicator.hpp"
#include "runtime/cache/services.hpp"
#include "runtime/clock.hpp"
#include "runtime/stop_timer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <utility>

namespace eddy::runtime::cache {
namespace {

constexpr std::string_view refusal = "-ERR max number of clients reached\r\n";

/// A reply buffer that grew beyond this is given back.
constexpr std::size_t kept_reply_capacity = 256 * 1024;
/// Replies that may wait for the end of a turn; beyond it they go out one by one.
constexpr std::size_t most_waiting_bytes = 4 * 1024 * 1024;
constexpr std::size_t most_spare_buffers = 64;
/// Replies go out in parts of this size at most, so that a slow client is seen to make progress.
constexpr std::size_t largest_write = 1024 * 1024;
/// One batch in so many is timed: reading the clock for each would cost half a percent.
constexpr std::uint32_t batches_a_sample = 16;

/// Keys that expire are looked for this often; less often while none is found.
constexpr duration shortest_upkeep = std::chrono::milliseconds(100);
constexpr duration longest_upkeep = std::chrono::seconds(1);

/// What a client may send behind a command that waits, before nothing more is read from it.
constexpr std::size_t most_read_ahead = 1024 * 1024;
/// A longer wait is looked at again after this time.
constexpr duration longest_wait = std::chrono::hours(1);

task<result<>> wait_for_event(event& of) { co_return co_await of.wait(); }

}  // namespace

struct cache_server::running {
    running(listeners opened, eddy::cache::engine_options options)
        : listening(std::move(opened)), engine(std::move(options)) {}

    listeners listening;
    endpoint address;
    eddy::cache::engine engine;
    std::unique_ptr<append_file> append;  // null without a folder
    scope accepting;
    scope background;
    scope sessions;

    /// Is told by the engine that a snapshot is to be written.
    struct saver final : eddy::cache::save_host {
        void save_began() noexcept override { wanted.set(); }
        event wanted;
    };
    saver saving;

    std::unique_ptr<replicator> replicating;
    std::unique_ptr<services> helper;
    std::unique_ptr<cache_hooks> hooks;  // null without --hooks
};

cache_server::cache_server(creation from)
    : name_(std::move(from.name)),
      options_(std::move(from.options)),
      events_(*from.events),
      above_(std::move(from.above)),
      clients_(counted_, events_) {}

cache_server::~cache_server() = default;

connections::limits cache_server::limits() const noexcept {
    connections::limits chosen;
    chosen.most = config_.max_connections;
    chosen.idle = config_.idle_timeout;
    chosen.stuck = config_.write_timeout;
    return chosen;
}

task<outcome<>> cache_server::start() {
    if (running_) co_return refuse(409, name_ + " runs already");
    outcome<config> read = read_config(options_);
    if (!read) co_return std::unexpected(read.error());
    config_ = std::move(*read);

    outcome<listeners> opened = open_listeners(config_, name_);
    if (!opened) co_return std::unexpected(opened.error());
    running_ = std::make_unique<running>(std::move(*opened), config_.engine);
    running_->address = running_->listening.first.socket.local();
    told_time_ = {};
    clients_.reset();
    clients_.set_limits(limits());
    work_done_.reset();
    running_->helper = std::make_unique<services>(running_->engine, running_->background, events_,
                                                  options_, above_);
    running_->engine.internals().server = running_->helper.get();
    if (!config_.engine.acl_file.empty()) {
        if (auto loaded = co_await load_users(running_->engine); !loaded) {
            running_.reset();
            co_return loaded;
        }
    }
    if (!config_.hooks.file.empty()) {
        running_->hooks =
            std::make_unique<cache_hooks>(config_.hooks, events_, [this] { tell_time(); });
        if (auto ready = co_await running_->hooks->prepare(); !ready) {
            running_.reset();
            co_return ready;
        }
    }
    if (!config_.engine.dir.empty()) {
        if (auto opened_files = co_await open_files(); !opened_files) {
            running_.reset();
            co_return opened_files;
        }
        eddy::cache::engine::state& state = running_->engine.internals();
        state.saves.host = &running_->saving;
        state.saves.saved_us = state.env.now_us;
        running_->background.spawn(keep_saved());
        running_->background.spawn(running_->append->write_on());
        running_->background.spawn(running_->append->rewrite_on());
    }
    running_->replicating = std::make_unique<replicator>(
        server_parts{running_->engine, events_, counted_, [this] { tell_time(); },
                     [this] {
                         if (!work_done_.is_set()) work_done_.set();
                     }});
    running_->replicating->begin(running_->background);
    if (running_->hooks) {
        tell_time();
        running_->hooks->attach(running_->engine);
        running_->background.spawn(running_->hooks->run());
    }
    running_->background.spawn(keep_up());
    running_->background.spawn(go_on_with_scripts());
    tell_of_protection(config_, events_);
    running_->accepting.spawn(accept_all(running_->listening.first.socket));
    if (running_->listening.secure)
        running_->accepting.spawn(accept_all(running_->listening.secure->socket));
    co_return outcome<>();
}

task<void> cache_server::stop(duration drain) {
    if (!running_) co_return;
    running_->accepting.cancel();
    co_await running_->accepting.join();
    running_->listening.close();
    // Clients between two commands go now; the others when they have their replies, or when the
    // time is over.
    clients_.drain();
    {
        stop_timer limit(running_->sessions, drain);
        co_await running_->sessions.join();
    }
    if (running_->hooks) co_await running_->hooks->flush();
    running_->background.cancel();
    co_await running_->background.join();
    if (running_->append) co_await running_->append->close();
    co_await save_at_end();
    last_stats_ = running_->engine.stats();
    last_stats_.keys = last_stats_.keys_with_expiry = 0;
    last_stats_.used_memory = last_stats_.reserved_memory = 0;
    running_.reset();
    replies_ = byte_buffer();
    spare_buffers_.clear();
}

counters cache_server::count() const {
    const eddy::cache::statistics now = running_ ? running_->engine.stats() : last_stats_;
    counters copy = counted_;
    copy.errors += now.errors;
    copy.more = {
        {"hits_total", static_cast<double>(now.hits)},
        {"misses_total", static_cast<double>(now.misses)},
        {"expired_keys_total", static_cast<double>(now.expired_keys)},
        {"evicted_clients_total", static_cast<double>(now.evicted_clients)},
        {"evicted_keys_total", static_cast<double>(now.evicted_keys)},
        {"keys", static_cast<double>(now.keys)},
        {"used_memory_bytes", static_cast<double>(now.used_memory)},
    };
    if (running_ && running_->hooks) running_->hooks->count(copy.more);
    copy.latency = std::make_shared<const histogram>(*latency_);
    return copy;
}

endpoint cache_server::local() const { return running_ ? running_->address : endpoint(); }

task<outcome<>> cache_server::check_restart() {
    if (!running_ || !running_->hooks) co_return outcome<>();
    co_return co_await running_->hooks->check();
}

outcome<> cache_server::apply(const settings& changed) {
    outcome<config> read = read_config(changed);
    if (!read) return std::unexpected(read.error());
    config_.max_connections = read->max_connections;
    config_.idle_timeout = read->idle_timeout;
    config_.write_timeout = read->write_timeout;
    options_ = changed;
    // What CONFIG SET says meanwhile stays, unless this option changes.
    const bool is_protected = read->engine.protected_mode;
    if (running_ && is_protected != config_.engine.protected_mode)
        running_->engine.internals().options.protected_mode = is_protected;
    config_.engine.protected_mode = is_protected;
    if (running_) clients_.set_limits(limits());
    return {};
}

task<outcome<std::uint64_t>> cache_server::send(std::string) {
    co_return refuse(400, fmt::format("{} is a cache, which takes commands, not messages; use "
                                      "redis-cli -p {}",
                                      name_, local().port()));
}

task<void> cache_server::accept_all(listener& from) {
    for (;;) {
        result<stream> peer = co_await clients_.accept(from, refusal);
        if (!peer) co_return;
        if (is_denied(running_->engine, peer->peer())) {
            ++counted_.connections_refused;
            auto away = std::make_unique<denied_client>(clients_, std::move(*peer),
                                                        running_->sessions.source());
            cancel_source& cancel = away->cancel;
            running_->sessions.spawn(turn_away(std::move(away)).under(cancel));
            continue;
        }
        auto c = std::make_unique<client>(clients_, std::move(*peer), running_->sessions.source(),
                                          running_->engine);
        cancel_source& cancel = c->cancel;
        running_->sessions.spawn(serve(std::move(c)).under(cancel));
    }
}

/// A client's life: read, execute, reply, until one side ends it.
task<void> cache_server::serve(std::unique_ptr<client> c) {
    try {
        next then = next::read;
        while (then != next::close) {
            if (then == next::read) {
                if (!c->rest && clients_.draining()) co_return;
                c->enter(c->rest ? activity::reading : activity::resting);
                result<lease> got = co_await c->socket.read();
                if (!got) co_return;
                // From here to the next rest a stop lets it finish.
                c->enter(activity::working);
                c->touch();
                counted_.bytes_in += got->size();
                then = receive(*c, got->text());
            } else {
                then = execute_rest(*c);
            }
            if (!replies_.empty()) {
                if (!fits_queue(*c)) co_return;
                if (waits_for_disk()) [[unlikely]] {
                    if (!co_await wait_for_disk()) co_return;
                } else if (waiting_bytes_ + replies_.size() <= most_waiting_bytes) {
                    co_await wait_for_turn_end();
                }
                if (!send_now(*c)) co_return;
                if (!replies_.empty() && !co_await send_rest(*c)) co_return;
            } else if (waits_for_disk()) [[unlikely]] {
                if (!co_await wait_for_disk()) co_return;
            }
            // A wait may have ended while earlier replies were on their way: its answer waits.
            if (then == next::wait || (then != next::close && c->session.waits_for_others())) {
                co_await serve_attentively(*c);
                break;
            }
        }
        c->rest.reset();
        c->enter(activity::resting);
        if (c->socket.shutdown_write()) co_await discard_input(c->socket);
    } catch (const std::bad_alloc&) {
        ++counted_.errors;
        replies_ = byte_buffer();
        events_.write(fmt::format("client {} closed: no memory for what it wants", c->id()));
    }
}

/// Executes what was received, together with what was left before. What cannot be executed yet is
/// copied.
cache_server::next cache_server::receive(client& c, std::string_view received) {
    tell_time();
    if (!work_done_.is_set()) work_done_.set();
    // First the command whose beginning came earlier, and no byte more of what is behind it.
    while (c.rest) {
        const std::size_t size = std::min(c.rest->wanted, received.size());
        c.rest->bytes.append(received.substr(0, size));
        eddy::cache::note_client_memory(running_->engine.internals(), size);
        received.remove_prefix(size);
        const next then = execute_rest(c);
        if (then == next::close) return then;
        if (then != next::read) {
            keep(c, received);
            return then;
        }
        if (received.empty()) return then;
    }
    std::size_t used = 0;
    const next then = execute(c, received, used);
    if (then != next::close) keep(c, received.substr(used));
    return then;
}

/// Appends to what is left.
void cache_server::keep(client& c, std::string_view bytes) {
    if (bytes.empty()) return;
    if (!c.rest) c.rest = std::make_unique<client::leftover>();
    c.rest->bytes.append(bytes);
    eddy::cache::note_client_memory(running_->engine.internals(), bytes.size());
}

cache_server::next cache_server::execute_rest(client& c) {
    if (!c.rest) return next::read;
    std::size_t used = 0;
    const next then = execute(c, c.rest->bytes.text(), used);
    c.rest->bytes.consume(used);
    if (c.rest->bytes.empty()) c.rest.reset();
    return then;
}

/// Executes the whole commands at the start of `input`, batch by batch.
cache_server::next cache_server::execute(client& c, std::string_view input, std::size_t& used) {
    eddy::cache::engine& engine = running_->engine;
    for (;;) {
        const bool own = c.rest && c.rest->parser;
        resp::request_parser& parser = own ? *c.rest->parser : parser_;
        const resp::batch_outcome parsed =
            batch_.parse(parser, input.substr(used), !c.session.authenticated);
        if (!parsed.commands.empty()) {
            const std::size_t executed = engine.execute(c.session, parsed.commands, replies_);
            counted_.messages_in += executed;
            counted_.messages_out += executed;
            if (engine.script_is_late() && !script_is_late_.is_set()) [[unlikely]]
                script_is_late_.set();
            const bool blocked = c.session.blocked;
            if (c.session.closing || blocked || executed < parsed.commands.size()) {
                // Much is to be sent before the other commands, or they wait for others. Their
                // views will not last: they are parsed anew, from where the first of them begins.
                parser = resp::request_parser(parser.limits());
                if (c.session.closing) return next::close;
                resp::request_parser again(parser.limits());
                for (std::size_t i = 0; i < executed; ++i)
                    used += again.next(input.substr(used)).consumed;
                return blocked ? next::wait : next::again;
            }
        }
        used += parsed.consumed;
        switch (parsed.status) {
            case resp::parse_status::need_more:
                if (!own && parser.in_progress()) {
                    if (!c.rest) c.rest = std::make_unique<client::leftover>();
                    c.rest->parser = std::make_unique<resp::request_parser>(std::move(parser));
                    parser = resp::request_parser(c.rest->parser->limits());
                }
                if (c.rest) c.rest->wanted = parsed.wanted;
                return next::read;
            case resp::parse_status::error:
                ++counted_.errors;
                resp::reply_writer(replies_, c.session.protocol).error(parsed.error);
                parser = resp::request_parser(parser.limits());
                return next::close;
            case resp::parse_status::complete: break;
        }
        if (replies_.size() >= config_.engine.max_pending_reply) return next::again;
    }
}

/// The first reply of a turn wakes a sleeping peer, which costs this side some microseconds; those
/// that follow at once find it awake. So every client whose commands have arrived is served before
/// the first reply goes out. A task of its own: what it holds is no part of an idle connection.
task<void> cache_server::wait_for_turn_end() {
    byte_buffer waiting = std::move(replies_);
    waiting_bytes_ += waiting.size();
    if (!spare_buffers_.empty()) {
        replies_ = std::move(spare_buffers_.back());
        spare_buffers_.pop_back();
    }
    co_await loop::current().yield();
    waiting_bytes_ -= waiting.size();
    waiting.swap(replies_);
    if (spare_buffers_.size() < most_spare_buffers && waiting.capacity() <= kept_reply_capacity)
        spare_buffers_.push_back(std::move(waiting));
}

bool cache_server::waits_for_disk() const noexcept {
    return running_->append != nullptr && running_->append->holds_replies();
}

/// Until the disk has what the replies tell of, or has so much that more may be executed. False,
/// with the replies dropped, when it refuses: nobody is told of what may be lost.
[[gnu::noinline]] task<bool> cache_server::wait_for_disk() {
    byte_buffer waiting = std::move(replies_);
    if (!spare_buffers_.empty()) {
        replies_ = std::move(spare_buffers_.back());
        spare_buffers_.pop_back();
    }
    if (!co_await running_->append->settled()) co_return false;
    waiting.swap(replies_);
    if (spare_buffers_.size() < most_spare_buffers && waiting.capacity() <= kept_reply_capacity)
        spare_buffers_.push_back(std::move(waiting));
    co_return true;
}

/// False, with the reply dropped, when it is too large: the connection is over.
bool cache_server::fits_queue(client& c) {
    // The engine stops when max_pending_reply is reached: whatever is beyond it is one reply.
    if (replies_.size() <= config_.max_queue + config_.engine.max_pending_reply) return true;
    ++counted_.errors;
    ++counted_.dropped;
    events_.write(fmt::format("client {} closed: a reply of {} bytes is over --max-queue", c.id(),
                              replies_.size()));
    replies_ = byte_buffer();
    return false;
}

/// Sends what goes out at once, which is nearly always all of it, and takes that out of the reply
/// buffer; false when the connection is over.
bool cache_server::send_now(client& c) {
    const result<std::size_t> sent = c.socket.try_write(replies_.bytes());
    if (!sent) {
        replies_.clear();
        return false;
    }
    counted_.bytes_out += *sent;
    replies_.consume(*sent);
    if (batches_++ % batches_a_sample == 0)
        latency_->record(static_cast<std::uint64_t>(
            std::max<std::int64_t>((precise_now() - c.touched_at()).count(), 0)));
    return true;
}

/// Sends what the kernel does not take now. The buffer is this client's until the last byte is
/// gone; the others get a new one.
[[gnu::noinline]] task<bool> cache_server::send_rest(client& c) {
    byte_buffer replies = std::move(replies_);
    c.touch();
    c.enter(activity::writing);
    const bool counts = c.session.waits_for_others();
    const auto note_unsent = [&] {
        c.session.unsent = static_cast<std::uint32_t>(
            std::min<std::size_t>(replies.size(), std::numeric_limits<std::uint32_t>::max()));
    };
    note_unsent();
    eddy::cache::note_client_memory(running_->engine.internals(), replies.size());
    while (!replies.empty()) {
        note_unsent();
        if (counts) running_->engine.set_unsent(c.session, replies.size());
        const const_bytes part = replies.bytes().first(std::min(replies.size(), largest_write));
        if (!co_await c.socket.write_all(part)) co_return false;
        c.touch();
        counted_.bytes_out += part.size();
        replies.consume(part.size());
    }
    c.session.unsent = 0;
    if (counts) running_->engine.set_unsent(c.session, 0);
    c.enter(activity::working);
    if (replies_.capacity() == 0 && replies.capacity() <= kept_reply_capacity)
        replies.swap(replies_);
    co_return true;
}

/// The rest of the life of a client that others send to, or that waits for them. A task of its own:
/// what it holds is no part of other connections.
[[gnu::noinline]] task<void> cache_server::serve_attentively(client& c) {
    c.attention = std::make_unique<client::attentive>();
    co_await with_scope([this, &c](scope& reading) -> task<void> {
        reading.spawn(read_ahead(c));
        co_await attend(c, reading);
    });
}

/// Executes what was read and sends what is there, in order, until one side ends it.
task<void> cache_server::attend(client& c, scope& tasks) {
    client::attentive& here = *c.attention;
    eddy::cache::engine& engine = running_->engine;
    for (;;) {
        here.something.reset();
        tell_time();
        engine.end_wait(c.session);
        next then = c.session.closing ? next::close : next::read;
        if (then == next::read && !c.session.blocked) then = execute_rest(c);
        if (!fits_queue(c)) co_return;
        engine.take_output(c.session, replies_);
        if (here.feeds && !replies_.empty()) {
            // They would stand in the middle of the stream.
            replies_.clear();
            ++counted_.errors;
            events_.write(
                fmt::format("replica {} closed: it sent a command that is answered", c.id()));
            c.cancel.request();
            co_return;
        }
        // Also who wants no replies: there is a limit to what may wait.
        if (waits_for_disk()) [[unlikely]] {
            here.sending = true;
            if (!co_await wait_for_disk()) co_return;
            here.sending = false;
        }
        if (!replies_.empty()) {
            here.sending = true;
            if (!send_now(c)) co_return;
            if (!replies_.empty() && !co_await send_rest(c)) co_return;
            here.sending = false;
        }
        if (then == next::close) co_return;
        if ((c.session.special & eddy::cache::session::replica) != 0 && !here.feeds) {
            here.feeds = true;
            tasks.spawn(running_->replicating->feed(c));
        }
        if (then == next::again) continue;
        // A script goes on without its client: others must not see it half done.
        const bool runs_script = engine.script_is_late(c.session);
        if (here.at_end && !runs_script) co_return;
        if (here.something.is_set()) continue;
        if (clients_.draining() && !runs_script && (!c.rest || c.session.blocked)) co_return;
        here.room.set();
        c.enter(runs_script                    ? activity::working
                : c.session.waits_for_others() ? activity::listening
                : c.rest                       ? activity::reading
                                               : activity::resting);
        if (!co_await wait_for_something(c)) co_return;
        c.enter(activity::working);
        if (!work_done_.is_set()) work_done_.set();
    }
}

/// Until there is something to do, or the session's wait ends by itself.
task<result<>> cache_server::wait_for_something(client& c) {
    const std::int64_t deadline_us = eddy::cache::engine::deadline_us(c.session);
    if (deadline_us == eddy::cache::session::no_deadline)
        co_return co_await c.attention->something.wait();
    const auto left = std::chrono::microseconds(deadline_us) - told_time_of_day_;
    const duration pause = std::min<duration>(left, longest_wait);
    const result<> woken = co_await with_timeout(pause, wait_for_event(c.attention->something));
    if (!woken && woken.error() == errc::timed_out) co_return result<>();
    co_return woken;
}

/// Reads what comes, so that the end of the connection is noticed at any time. What cannot be
/// executed yet is kept, up to a limit; beyond it nothing is read.
task<void> cache_server::read_ahead(client& c) {
    client::attentive& here = *c.attention;
    for (;;) {
        while ((here.sending || c.session.blocked) && c.rest &&
               c.rest->bytes.size() >= most_read_ahead) {
            here.room.reset();
            if (!co_await here.room.wait()) co_return;
        }
        result<lease> got = co_await c.socket.read();
        if (got) {
            c.touch();
            counted_.bytes_in += got->size();
            if (here.feeds) running_->replicating->heard(c);
            try {
                keep(c, got->text());
            } catch (const std::bad_alloc&) {
                ++counted_.errors;
                events_.write(fmt::format("client {} closed: no memory for what it sends", c.id()));
                got = fail(errc::limit_reached);
            }
        }
        here.at_end = !got;
        here.something.set();
        if (!got) co_return;
    }
}

/// Tells the engine the time, once a turn.
void cache_server::tell_time() {
    const loop& here = loop::current();
    if (here.now() == told_time_) return;
    told_time_ = here.now();
    using std::chrono::duration_cast;
    using std::chrono::microseconds;
    told_time_of_day_ =
        here.kind() == backend_kind::sim
            ? duration_cast<microseconds>(here.now().time_since_epoch())
            : duration_cast<microseconds>(std::chrono::system_clock::now().time_since_epoch());
    running_->engine.set_time(told_time_of_day_);
}

/// Has expired keys removed while there are any that expire, and memory given back after commands.
/// Without either it sleeps until a client does something.
task<void> cache_server::keep_up() {
    eddy::cache::engine& engine = running_->engine;
    duration pause = shortest_upkeep;
    std::uint64_t expired = 0;
    for (;;) {
        const eddy::cache::statistics now = engine.stats();
        if (now.keys_with_expiry == 0 && now.fields_with_expiry == 0) {
            work_done_.reset();
            pause = shortest_upkeep;
            if (!co_await work_done_.wait()) co_return;
        }
        if (!co_await loop::current().sleep_for(pause)) co_return;
        spare_buffers_.clear();
        tell_time();
        while (engine.upkeep()) {
            co_await loop::current().yield();
            if (running_->background.source().requested()) co_return;
            tell_time();
        }
        const std::uint64_t now_expired = engine.stats().expired_keys;
        pause = now_expired != expired ? shortest_upkeep : std::min(pause * 2, longest_upkeep);
        expired = now_expired;
    }
}

std::string cache_server::dump_path() const {
    return config_.engine.dir + "/" + config_.engine.dbfilename;
}

/// Nobody is served before all is there; clients that connect wait. Of the two kinds of files the
/// append-only one has the later changes.
task<outcome<>> cache_server::open_files() {
    if (auto usable = co_await check_folder(config_.engine.dir); !usable) co_return usable;
    tell_time();
    running_->append =
        std::make_unique<append_file>(running_->engine, events_, [this] { tell_time(); });
    bool has_loaded = false;
    if (config_.engine.append.enabled) {
        const outcome<bool> loaded = co_await running_->append->load();
        if (!loaded) co_return std::unexpected(loaded.error());
        has_loaded = *loaded;
    }
    if (!has_loaded) {
        if (auto loaded = co_await load(); !loaded) co_return loaded;
    }
    if (!config_.engine.append.enabled) co_return outcome<>();
    co_return co_await running_->append->open();
}

task<outcome<>> cache_server::load() {
    const std::string path = dump_path();
    // Left by a daemon that was killed.
    static_cast<void>(co_await file::remove(temporary_of(path)));
    tell_time();
    const time_point began = loop::current().now();
    eddy::cache::rdb::load_options options;
    options.reading.max_text = config_.engine.max_text;
    const auto loaded = co_await load_dump(running_->engine, path, options, events_);
    if (!loaded) co_return std::unexpected(loaded.error());
    if (!*loaded) {
        events_.write(fmt::format("there is no {} yet: it begins without keys", path));
        co_return outcome<>();
    }
    const eddy::cache::rdb::load_counts& counts = **loaded;
    eddy::cache::note_loaded(running_->engine.internals(), counts.keys, counts.expired);
    const std::chrono::duration<double> took = loop::current().now() - began;
    events_.write(fmt::format("loaded {} keys from {} in {:.3f} s; {} had expired", counts.keys,
                              path, took.count(), counts.expired));
    if (counts.libraries > 0)
        events_.write(fmt::format("loaded {} libraries of functions", counts.libraries));
    co_return outcome<>();
}

/// Writes what the engine was asked to save, and begins by itself what the save points say.
task<void> cache_server::keep_saved() {
    constexpr duration look_again = std::chrono::seconds(1);
    eddy::cache::engine::state& state = running_->engine.internals();
    event& wanted = running_->saving.wanted;
    for (;;) {
        const result<> woken = co_await with_timeout(look_again, wait_for_event(wanted));
        if (!woken && woken.error() != errc::timed_out) co_return;
        wanted.reset();
        tell_time();
        // Half of what a script does must not be in the file without the other half.
        if (!running_->engine.script_is_late() && eddy::cache::save_is_due(state))
            eddy::cache::begin_save(state);
        while (state.saves.image != nullptr) {
            co_await write_save();
            if (running_->background.source().requested()) co_return;
        }
    }
}

/// Runs a script that takes too long, a little in each turn.
task<void> cache_server::go_on_with_scripts() {
    eddy::cache::engine& engine = running_->engine;
    for (;;) {
        script_is_late_.reset();
        if (!co_await script_is_late_.wait()) co_return;
        while (engine.script_is_late()) {
            engine.go_on();
            co_await loop::current().yield();
            if (running_->background.source().requested()) co_return;
            tell_time();
        }
    }
}

/// Writes the snapshot that has begun.
task<void> cache_server::write_save() {
    eddy::cache::engine& engine = running_->engine;
    eddy::cache::rdb::snapshot& image = *engine.internals().saves.image;
    const std::string path = dump_path();
    const std::uint64_t keys = image.keys();
    const time_point began = loop::current().now();
    const outcome<std::uint64_t> written = co_await write_dump(image, path);
    image.end();
    // What is left to clear up after a failure.
    while (eddy::cache::rdb::snapshot::is_clearing(engine)) {
        static_cast<void>(engine.upkeep());
        co_await loop::current().yield();
    }
    tell_time();
    if (written) {
        const std::chrono::duration<double> took = loop::current().now() - began;
        events_.write(fmt::format("saved {} keys, {} bytes, to {} in {:.3f} s", keys, *written,
                                  path, took.count()));
    } else {
        ++counted_.errors;
        events_.write(fmt::format("not saved: {}; the last file stays", written.error().message));
    }
    eddy::cache::end_save(engine.internals(), written ? "" : written.error().message);
    // What was removed meanwhile is only freed now.
    if (!work_done_.is_set()) work_done_.set();
}

/// The changes that no file has yet, when there are save points: as Redis does it.
task<void> cache_server::save_at_end() {
    eddy::cache::engine::state& state = running_->engine.internals();
    const services::saving wanted = running_->helper->at_end();
    if (state.saves.host == nullptr || wanted == services::saving::never) co_return;
    if (state.options.save_points.empty() && wanted != services::saving::always) co_return;
    if (!eddy::cache::has_unsaved_changes(state)) co_return;
    tell_time();
    state.saves.scheduled = false;
    if (eddy::cache::begin_save(state)) co_await write_save();
}

}  // namespace eddy::runtime::cache
