// Attempts to connect, with exponential backoff, and the messages of each connection.
#include "runtime/client/client_runtime.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/utf8.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/udp.hpp>

#include "base/rollback.hpp"
#include "runtime/logs/message_text.hpp"
#include "runtime/scripting/script_limits.hpp"
#include "runtime/serving/inherited_listeners.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

namespace eddy::runtime::client {
namespace {

/// Queue of an instance on its way to the next one: the messages without their framing, oldest
/// first. An instance of the same type gets it, as it would get listeners.
struct inherited_queue final : inherited_listeners {
    std::deque<std::string> messages;
};

constexpr metric connected_metric{.name = "connected",
                                  .kind = metric_kind::gauge,
                                  .help = "1 while it is connected to its server, else 0."};
constexpr metric reconnects_metric{.name = "reconnects_total",
                                   .kind = metric_kind::counter,
                                   .help = "Connections made after the first one."};
constexpr metric queued_bytes_metric{.name = "queued_bytes",
                                     .kind = metric_kind::gauge,
                                     .help = "Bytes of messages that wait to be sent."};
constexpr metric queued_messages_metric{.name = "queued_messages",
                                        .kind = metric_kind::gauge,
                                        .help = "Messages that wait to be sent."};

}  // namespace

client_runtime::client_runtime(creation from, message_receiver* to)
    : name_(std::move(from.name)),
      given_(std::move(from.options)),
      events_(*from.events),
      host_(std::move(from.host)),
      receiver_(to),
      inherited_(std::move(from.listeners)) {
    always_ready_.set();
}

std::unique_ptr<kept_client> make_kept_client(const kept_client_options& by) {
    nlohmann::json given{{"target", by.target}};
    const auto where = read_server_address(by.target);
    const bool is_stream = where && where->is_stream();
    if (is_stream) given["framing"] = by.is_raw ? "raw" : "line";
    if (!is_stream || !by.is_raw) given["max_line"] = std::to_string(by.max_line);
    return std::make_unique<client_runtime>(
        creation{.name = by.name,
                 .options = std::move(*settings::parse(table_of(option_rows()), given)),
                 .events = by.events},
        by.to);
}

task<outcome<>> client_runtime::start() {
    if (tasks_) co_return refuse(409, name_ + " runs already");
    auto read = read_config(given_);
    if (!read) co_return std::unexpected(std::move(read.error()));
    chosen_ = std::move(*read);
    for (outbox* const each : {&waiting_, &greeting_}) each->set_limits(chosen_.queue);
    reported_ = {};
    missing_.clear();
    lost_.clear();
    has_connected_ = is_stopping_ = drops_ = false;
    drained_.set();
    has_handed_over_ = is_greeting_ = false;
    tasks_.emplace();
    if (auto begun = co_await start_script(); !begun) {
        co_await end_script(duration{});
        tasks_.reset();
        waiting_.clear();
        co_return begun;
    }
    queue_inherited();
    resume_attempts();
    co_return outcome<>();
}

task<void> client_runtime::stop(duration drain_time) {
    if (!tasks_) co_return;
    is_stopping_ = true;
    const time_point until = loop::current().after(drain_time);
    const auto remaining = [&] { return std::max(until - loop::current().now(), duration{}); };
    if (script_) co_await script_->stop(std::min<duration>(drain_time, script_farewell));
    co_await drain(remaining());
    const std::uint64_t dropped_before = counted_.dropped.value();
    tasks_->cancel();
    co_await tasks_->join();
    EDDY_ASSERT(!is_connected_ && counted_.connections_now == 0);
    co_await end_script(std::min<duration>(remaining(), script_farewell));
    tasks_.reset();
    has_given_up_ = false;
    counted_.dropped += waiting_.clear();
    if (const std::uint64_t left = counted_.dropped.value() - dropped_before; left > 0) {
        lost_ = fmt::format("{} message{} that waited for {}", left, left == 1 ? "" : "s",
                            chosen_.target.to_string());
    }
}

/// Waits until the queue is empty, as long as there is a connection.
task<void> client_runtime::drain(duration limit) {
    if (!is_connected_) co_return;
    static_cast<void>(co_await with_timeout(limit, drained_.wait()));
}

metrics client_runtime::count() const {
    metrics made(counted_);
    made.add_sample(connected_metric, is_connected_ ? 1 : 0);
    made.add_sample(reconnects_metric, static_cast<double>(reconnects_.value()));
    made.add_sample(queued_bytes_metric, static_cast<double>(waiting_.bytes() + greeting_.bytes()));
    made.add_sample(queued_messages_metric,
                    static_cast<double>(waiting_.messages() + greeting_.messages()));
    if (script_) {
        script_tallies all = script_counts_;
        all.add(script_->counted());
        all.add_samples_to(made);
    }
    return made;
}

std::string client_runtime::fault() const {
    if (!tasks_) return {};
    if (is_connected_ || missing_.empty())
        return script_ ? script_->counted().fault(name_) : std::string();
    if (!has_given_up_) return fmt::format("not connected: {}; it tries again", missing_);
    return fmt::format("not connected: {}; it has given up, and `eddy reload {}` tries again",
                       missing_, name_);
}

// --- Sending -------------------------------------------------------------------------------------

/// Fails for what these options cannot send.
outcome<> client_runtime::can_carry(std::string_view message) const {
    if (chosen_.mode == flow::in)
        return refuse(409, fmt::format("{0} only receives (--mode in); `eddy edit {0} --mode "
                                       "inout` changes that",
                                       name_));
    const std::size_t most = chosen_.target.is_datagram()    ? udp::max_payload
                             : chosen_.target.is_websocket() ? max_websocket_message
                                                             : SIZE_MAX;
    if (message.size() > most)
        return refuse(
            400, fmt::format("the message has {} bytes; {} carries at most {}", message.size(),
                             chosen_.target.is_datagram() ? "a datagram" : "this WebSocket", most));
    if (chosen_.target.is_websocket() && !is_utf8(message))
        return refuse(400, "a text over WebSocket is UTF-8, and the message is not");
    return {};
}

outcome<> client_runtime::may_send(std::string_view message) const {
    if (!tasks_ || is_stopping_)
        return refuse(409, fmt::format("{0} is not running; `eddy start {0}` first", name_));
    if (has_handed_over_) return refuse(503, fmt::format("{} restarts; send it again", name_));
    if (auto fine = can_carry(message); !fine) return fine;
    if (has_given_up_)
        return refuse(503, fmt::format("{0} is not connected to {1} and has given up; `eddy reload "
                                       "{0}` tries again",
                                       name_, chosen_.target.to_string()));
    return {};
}

/// The messages as they are sent: of a stream's lines each ends with a newline.
std::vector<std::string> client_runtime::framed(std::string message) const {
    std::vector<std::string> made;
    if (!has_lines()) {
        // A stream has no empty messages.
        if (!message.empty() || !chosen_.target.is_stream()) made.push_back(std::move(message));
        return made;
    }
    if (!message.ends_with('\n')) message += '\n';
    for (std::string_view rest = message; !rest.empty();) {
        const std::size_t size = rest.find('\n') + 1;
        made.emplace_back(rest.substr(0, size));
        rest.remove_prefix(size);
    }
    return made;
}

task<outcome<std::uint64_t>> client_runtime::send(std::string message) {
    if (script_ && script_->takes_sends()) {
        // The text that the script makes of it is checked below.
        if (auto fine = may_send({}); !fine) co_return std::unexpected(std::move(fine.error()));
        auto made = co_await script_->send(std::move(message));
        if (!made) co_return std::unexpected(std::move(made.error()));
        if (!*made) co_return 0;
        message = std::move(**made);
    }
    co_return send_now(std::move(message));
}

outcome<std::uint64_t> client_runtime::send_now(std::string message) {
    const std::size_t size = message.size();
    if (auto fine = may_send(message); !fine) return std::unexpected(std::move(fine.error()));
    const admission made = add(waiting_, std::move(message));
    if (made.fate == admission::verdict::refused)
        return refuse(503,
                      fmt::format("{} cannot take {} bytes: {} bytes wait for {}, at most {} may "
                                  "(--queue), in at most {} messages",
                                  name_, size, waiting_.bytes(), chosen_.target.to_string(),
                                  chosen_.queue.max_bytes, outbox::max_messages));
    return is_connected_ && made.fate == admission::verdict::queued ? 1 : 0;
}

/// Queues a message, and wakes the writer.
admission client_runtime::add(outbox& to, std::string message) {
    const admission made = to.add(framed(std::move(message)));
    if (made.dropped > 0) note_dropped(made.dropped);
    if (has_messages()) {
        drained_.reset();
        filled_.set();
    }
    return made;
}

void client_runtime::note_dropped(std::uint64_t messages) {
    counted_.dropped += messages;
    if (!std::exchange(drops_, true))
        events_.write(fmt::format("the queue is full: messages are dropped (--queue {} bytes)",
                                  chosen_.queue.max_bytes));
}

/// connection::send(), with ENOMEM in place of an exception.
task<result<>> client_runtime::send_or_fail(connection& server, std::string_view message) {
    try {
        co_return co_await server.send(message);
    } catch (const std::bad_alloc&) {
        co_return fail(errno_code(ENOMEM));
    }
}

/// Sends what is queued, one message after the other, until it is cancelled or a send fails.
task<void> client_runtime::write_out(connection& server, cancel_source& until_broken,
                                     std::error_code& broken) {
    for (;;) {
        while (!greeting_.empty() || (!is_greeting_ && !waiting_.empty())) {
            outbox& from = greeting_.empty() ? waiting_ : greeting_;
            const std::string message = from.take();
            const result<> sent = co_await send_or_fail(server, message);
            from.finish();
            if (!sent) {
                // The server may have got it, so it is not sent again.
                ++counted_.dropped;
                broken = sent.error();
                until_broken.request();
                co_return;
            }
            ++counted_.messages_out;
            counted_.bytes_out += message.size();
            drops_ = false;
        }
        if (!has_messages()) drained_.set();
        filled_.reset();
        if (!co_await filled_.wait()) co_return;
    }
}

// --- Connections ---------------------------------------------------------------------------------

void client_runtime::resume_attempts() {
    EDDY_ASSERT(tasks_ && tasks_->children() == 0);
    has_given_up_ = false;
    pauses_.reset();
    tasks_->spawn(keep_connected());
}

task<void> client_runtime::keep_connected() {
    std::uint64_t attempts = 0;  // to connect again, in a row
    for (;;) {
        try {
            if (co_await connect()) attempts = 0;
        } catch (const std::bad_alloc&) {
            ++counted_.errors;
            missing_ = errno_code(ENOMEM).message();
            note_end(missing_);
        }
        if (tasks_->source().requested()) co_return;
        if (chosen_.reconnect && attempts >= *chosen_.reconnect) break;
        ++attempts;
        if (!co_await sleep_for(pauses_.next())) co_return;
        // Events of the connection before: no more of them wait than those of one.
        if (!ready().is_set() && !co_await ready().wait()) co_return;
    }
    give_up();
}

void client_runtime::give_up() {
    EDDY_ASSERT(chosen_.reconnect && !is_connected_);
    has_given_up_ = true;
    events_.write(
        fmt::format("it gives up after {} attempt{} to connect again (--reconnect); "
                    "`eddy reload {}` tries again",
                    *chosen_.reconnect, *chosen_.reconnect == 1 ? "" : "s", name_));
}

/// An attempt to connect, and the connection. True if there was one.
task<bool> client_runtime::connect() {
    auto made = co_await open_connection(chosen_);
    if (tasks_->source().requested()) co_return false;
    if (!made) {
        ++counted_.errors;
        missing_ = chosen_.target.explain(made.error());
        report(made.error());
        co_return false;
    }
    const std::error_code end = co_await converse(**made);
    reported_ = {};
    if (tasks_->source().requested()) {
        note_end({});
        co_return true;
    }
    const bool is_dismissed = dismissed_.is_set() && end == errc::cancelled;
    if (end != errc::end_of_stream && !is_dismissed) ++counted_.errors;
    const std::string reason = is_dismissed ? "the script has closed it" : end.message();
    missing_ = "the connection has ended: " + reason;
    events_.write(missing_);
    note_end(reason);
    co_return true;
}

/// Writes the error to the journal: once for all in a row that are the same.
void client_runtime::report(std::error_code error) {
    if (error != reported_) events_.write(chosen_.target.explain(error));
    reported_ = error;
}

/// Receives and sends until the connection ends; yields why.
task<std::error_code> client_runtime::converse(connection& server) {
    const rollback end_connection([this, begun = loop::current().now()] {
        is_connected_ = false;
        counted_.connections_now = 0;
        is_greeting_ = false;
        counted_.dropped += greeting_.clear();
        drained_.set();  // no stop() waits for a connection that is gone
        if (loop::current().now() - begun >= longest_pause) pauses_.reset();
    });
    EDDY_ASSERT(!is_connected_);
    is_connected_ = true;
    if (has_messages()) drained_.reset();
    counted_.connections_now = 1;
    ++counted_.connections_total;
    if (std::exchange(has_connected_, true)) ++reconnects_;
    events_.write("connected to " + chosen_.target.to_string());
    begin_connection();
    cancel_source until_broken(co_await current_source());
    std::error_code end;
    std::error_code broken;
    co_await with_scope([&](scope& writing) -> task<void> {
        writing.spawn(write_out(server, until_broken, broken));
        if (script_) writing.spawn(end_on_request(until_broken));
        end = co_await server.receive(*this).under(until_broken);
    });
    if (broken) server.abort();
    co_return broken&& end == errc::cancelled ? broken : end;
}

void client_runtime::note_message(std::string_view message, bool is_cut) {
    if (chosen_.mode == flow::out) return;
    ++counted_.messages_in;
    if (is_cut) ++counted_.errors;
    if (script_ && script_->takes_messages()) return script_->message(message, is_cut);
    show(message, is_cut);
}

event& client_runtime::ready() noexcept {
    if (receiver_ != nullptr) return receiver_->ready();
    return script_ ? script_->idle() : always_ready_;
}

void client_runtime::show(std::string_view message, bool is_cut) {
    if (receiver_ != nullptr) return receiver_->note_received(message);
    const std::string_view mark = is_cut ? "... (longer than --max-line)" : "";
    if (chosen_.has_journal)
        events_.write(fmt::format("received: {}{}", shown_message(message), mark));
    const bool is_piece = chosen_.target.is_stream() && chosen_.messages == framing::raw;
    if (host_->has_followers())
        host_->show_received(fmt::format("{}{}{}", message, mark, is_piece ? "" : "\n"));
}

void client_runtime::note_error(std::error_code error) {
    ++counted_.errors;
    report(error);
}

// --- Its script ----------------------------------------------------------------------------------

task<outcome<>> client_runtime::start_script() {
    if (!chosen_.script) co_return outcome<>();
    auto made = client_script::make(
        chosen_.script, {.name = name_, .target = chosen_.target.to_string(), .daemon = host_},
        events_, *this);
    if (!made) co_return std::unexpected(std::move(made.error()));
    script_ = std::move(*made);
    co_return co_await script_->start();
}

task<void> client_runtime::end_script(duration limit) {
    if (!script_) co_return;
    co_await script_->end(limit);
    script_counts_.add(script_->counted());
    script_counts_.forget_gauges();
    script_.reset();
}

/// on_connect: what it sends goes before the messages that wait.
void client_runtime::begin_connection() {
    if (receiver_ != nullptr) receiver_->note_connected();
    if (!script_) return;
    dismissed_.reset();
    is_greeting_ = true;
    script_->connect();
}

/// on_disconnect. `reason` is empty at a stop.
void client_runtime::note_end(std::string_view reason) {
    if (receiver_ != nullptr) receiver_->note_disconnected(reason);
    if (!script_) return;
    script_->disconnect(reason);
}

void client_runtime::end_greeting() noexcept {
    is_greeting_ = false;
    filled_.set();
}

/// Ends the connection when the script has asked for it, and what is queued has gone.
task<void> client_runtime::end_on_request(cancel_source& connection) {
    if (!co_await dismissed_.wait()) co_return;
    const auto sent = co_await with_timeout(disconnect_patience, drained_.wait());
    if (sent || sent.error() == errc::timed_out) connection.request();
}

bool client_runtime::disconnect() noexcept {
    if (!is_connected_) return false;
    dismissed_.set();
    return true;
}

outcome<bool> client_runtime::queue(std::string_view message) {
    if (!tasks_ || has_handed_over_ || has_given_up_) return false;
    if (auto fine = can_carry(message); !fine) return std::unexpected(std::move(fine.error()));
    return add(is_greeting_ ? greeting_ : waiting_, std::string(message)).fate ==
           admission::verdict::queued;
}

task<outcome<>> client_runtime::reload_script() {
    if (!tasks_) co_return refuse(409, fmt::format("{} is not running", name_));
    if (!script_) co_return has_no_script(name_);
    auto read = co_await read_script_in_background("--lua", chosen_.script.path, max_script_file);
    if (!read) co_return std::unexpected(std::move(read.error()));
    if (!script_) co_return refuse(409, fmt::format("{} was stopped", name_));
    co_return co_await script_->replace(std::move(*read));
}

// --- Changes -------------------------------------------------------------------------------------

task<outcome<>> client_runtime::check_restart(settings next, bool /*discards_data*/) {
    auto read = read_config(next);
    if (!read) co_return std::unexpected(std::move(read.error()));
    if (read->script) co_return co_await try_client_script_in_slices(read->script);
    co_return outcome<>();
}

task<outcome<>> client_runtime::hand_over(settings /*next*/, std::shared_ptr<handover> /*to*/,
                                          duration patience) {
    if (tasks_) co_await drain(patience);
    co_return outcome<>();
}

task<std::shared_ptr<inherited_listeners>> client_runtime::hand_over_listeners() {
    if (!tasks_) co_return nullptr;
    EDDY_ASSERT(!has_handed_over_);
    auto made = std::make_shared<inherited_queue>();
    made->messages = waiting_.release();
    // The next instance frames them anew.
    if (has_lines())
        for (std::string& each : made->messages) each.pop_back();
    has_handed_over_ = true;
    co_return made;
}

outcome<> client_runtime::take_back(inherited_listeners& from) {
    has_handed_over_ = false;
    auto messages = std::move(static_cast<inherited_queue&>(from).messages);
    if (messages.empty()) return {};
    if (has_lines())
        for (std::string& each : messages) each += '\n';
    waiting_.restore(std::move(messages));
    drained_.reset();
    filled_.set();
    return {};
}

void client_runtime::queue_inherited() {
    const auto from = std::exchange(inherited_, nullptr);
    if (!from) return;
    std::uint64_t lost = 0;
    for (std::string& each : static_cast<inherited_queue&>(*from).messages) {
        if (!can_carry(each)) {
            ++lost;
            continue;
        }
        const admission made = waiting_.add(framed(std::move(each)));
        lost += made.fate == admission::verdict::refused ? 1 : made.dropped;
    }
    if (!waiting_.empty()) {
        drained_.reset();
        filled_.set();
    }
    if (lost == 0) return;
    counted_.dropped += lost;
    events_.write(fmt::format(
        "{} message{} that waited before the restart {} dropped: the options "
        "do not allow {}",
        lost, lost == 1 ? "" : "s", lost == 1 ? "is" : "are", lost == 1 ? "it" : "them"));
}

task<outcome<bool>> client_runtime::reread() {
    if (has_given_up_) resume_attempts();
    if (script_)
        if (auto loaded = co_await reload_script(); !loaded)
            co_return std::unexpected(std::move(loaded.error()));
    co_return true;
}

outcome<> client_runtime::apply(const settings& changed) {
    auto read = read_config(changed);
    if (!read) return std::unexpected(std::move(read.error()));
    given_ = changed;
    copy_live(option_rows(), *read, chosen_);
    for (outbox* const each : {&waiting_, &greeting_}) each->set_limits(chosen_.queue);
    const bool may_try = !chosen_.reconnect || *chosen_.reconnect > 0;
    if (has_given_up_ && !is_stopping_ && may_try) resume_attempts();
    return {};
}

}  // namespace eddy::runtime::client
