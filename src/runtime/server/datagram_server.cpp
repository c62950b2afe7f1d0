// The server runtime over UDP: receives datagrams and forwards them to the known peers.
#include "runtime/server/datagram_server.hpp"

#include <eddy/net/udp.hpp>

#include "runtime/clock.hpp"
#include "runtime/logs/message_text.hpp"
#include "runtime/scripting/script_limits.hpp"
#include "runtime/scripting/script_options.hpp"
#include "runtime/server/first_bytes.hpp"
#include "runtime/serving/inherited_listeners.hpp"
#include "runtime/serving/passed_listeners.hpp"
#include "runtime/serving/reopener.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <utility>

namespace eddy::runtime::server {
namespace {

/// After an error of the socket, before the next receive.
constexpr duration error_pause = std::chrono::milliseconds(50);
/// For an address that was closed a moment ago.
constexpr int close_tries = 40;
constexpr duration close_pause = std::chrono::milliseconds(5);

bool is_wildcard(const endpoint& where) {
    const std::string host = where.host();
    return host == "0.0.0.0" || host == "::";
}

rate_limiter limiter_for(std::uint64_t per_second) noexcept {
    const auto rate = static_cast<double>(per_second);
    return rate_limiter(rate, rate, loop::current().now());
}

}  // namespace

struct datagram_server::running {
    running(noted_datagram opened, serving::journal& events)
        : bound(std::move(opened)), lost(events) {}

    noted_datagram bound;
    endpoint address;
    bool is_wildcard = false;
    std::optional<scope> receiving;
    scope logging;
    reopener lost;  // its address
};

/// Way of its script to the peers.
class datagram_server::script_side final : public script_transport {
public:
    explicit script_side(datagram_server& of) noexcept : of_(of) {}

    bool send(script_client& to, std::string_view text) override {
        peer* const its = static_cast<peer*>(to.peer);
        if (its == nullptr || to.is_dismissed) return false;
        if (!its->is_confirmed) {
            if (text.size() > its->credit) return false;
            its->credit -= text.size();
        }
        return of_.send_to_each(std::span(&its, 1), as_bytes(text)) == 1;
    }
    bool send_to_all(std::string_view text) override {
        of_.send_to_all(as_bytes(text), nullptr);
        return true;
    }
    std::size_t send_to_each(const std::vector<script_client*>& to,
                             std::string_view text) override {
        std::vector<peer*> all;
        for (const script_client* const each : to) {
            auto* const its = static_cast<peer*>(each->peer);
            if (its != nullptr && its->is_confirmed && !each->is_dismissed) all.push_back(its);
        }
        return of_.send_to_each(all, as_bytes(text));
    }
    bool send_elsewhere(script_receivers /*to*/, std::string_view /*text*/) override {
        return false;
    }
    bool has_other_loops() const noexcept override { return false; }
    /// Later: its callback may be running.
    void disconnect(script_client& of) override {
        of.is_dismissed = true;
        of_.dismissed_.set();
    }
    /// It stays known, and is not served.
    void refuse(script_client& of, std::string_view reason) override {
        ++of_.counted_.connections_refused;
        if (!reason.empty()) static_cast<void>(send(of, reason));
    }
    /// There is no master.
    void decide_claim(script_client& /*of*/, bool /*is_granted*/) override {}
    std::string ip_of(const script_client& of) const override {
        const auto* const its = static_cast<const peer*>(of.peer);
        return its == nullptr ? std::string() : its->where.host();
    }
    std::uint64_t connections() const override { return of_.peers_.size(); }
    std::size_t max_message() const override { return udp::max_payload; }

private:
    datagram_server& of_;
};

std::size_t datagram_server::endpoint_hash::operator()(const endpoint& where) const noexcept {
    return std::hash<std::string_view>()(
        std::string_view(reinterpret_cast<const char*>(where.data()), where.size()));
}

datagram_server::datagram_server(creation from)
    : name_(std::move(from.name)),
      options_(std::move(from.options)),
      host_(std::move(from.host)),
      events_(*from.events),
      global_limiter_(0, 0, {}),
      peer_limiter_(0, 0, {}),
      log_(events_, &counted_.dropped),
      inherited_(std::move(from.listeners)),
      is_held_(from.is_held) {}

datagram_server::~datagram_server() {
    for_each_peer([](peer& p) { p.unlink(); });
}

duration datagram_server::expiry() const noexcept {
    return config_.idle_timeout > duration{} ? config_.idle_timeout : default_peer_expiry;
}

void datagram_server::set_pace() {
    global_limiter_ = limiter_for(config_.global_rate_limit);
    peer_limiter_ = limiter_for(config_.rate_limit);
    for_each_peer([&](peer& p) {
        p.limiter = peer_limiter_;
        p.muted_until = {};
    });
}

task<outcome<>> datagram_server::start() {
    if (running_) co_return refuse(409, name_ + " runs already");
    outcome<config> read = read_config(options_);
    if (!read) co_return std::unexpected(read.error());
    config_ = std::move(*read);
    if (!config_.log_file.empty()) {
        if (outcome<> opened = log_.open(config_.log_file); !opened) co_return opened;
    }
    transport::address where = config_.where;
    if (inherited_) where = inherited_->with_chosen_port(std::move(where));
    outcome<noted_datagram> opened = bind_or_take(where);
    // On a ring a closed socket has its address until its last completion.
    for (int i = 0; !opened && inherited_ && inherited_->has_closed && i < close_tries; ++i) {
        if (!co_await loop::current().sleep_for(close_pause)) break;
        opened = bind_datagram_on(where, *host_);
    }
    if (!opened && where != config_.where) opened = bind_datagram_on(config_.where, *host_);
    if (!opened) {
        log_.close();
        co_return std::unexpected(opened.error());
    }
    running_ = std::make_unique<running>(std::move(*opened), events_);
    running_->address = running_->bound.socket.local();
    running_->is_wildcard = is_wildcard(running_->address);
    if (auto set = report_addresses(running_->bound.socket); !set) {
        running_.reset();
        log_.close();
        co_return set;
    }
    set_pace();
    said_full_ = false;
    if (auto begun = co_await start_script(); !begun) {
        co_await end_script(duration{});
        running_.reset();
        log_.close();
        co_return begun;
    }
    know_again(std::exchange(known_before_, {}));
    if (log_.is_open()) running_->logging.spawn(log_.run());
    if (!is_held_) {
        running_->receiving.emplace();
        running_->receiving->spawn(receive_all());
    }
    if (script_) running_->logging.spawn(forget_dismissed());
    if (inherited_) inherited_->close();
    inherited_.reset();
    co_return outcome<>();
}

// --- Its script -------------------------------------------------------------------------------

task<outcome<>> datagram_server::start_script() {
    if (!config_.script) co_return outcome<>();
    to_script_clients_ = std::make_unique<script_side>(*this);
    auto made = server_script::make(
        config_.script,
        {.name = name_, .port = running_->address.port(), .protocol = "udp", .daemon = host_},
        events_, *to_script_clients_);
    if (!made) co_return std::unexpected(made.error());
    script_ = std::move(*made);
    co_return co_await reloads_.run(script_->start());
}

task<void> datagram_server::end_script(duration drain) {
    if (!script_) co_return;
    co_await script_->end(std::min<duration>(drain, script_farewell));
    script_counts_.add(script_->counted());
    script_counts_.forget_gauges();
    script_.reset();
    to_script_clients_.reset();
}

void datagram_server::enter_script(peer& of) {
    if (!script_) return;
    of.script = &script_->enter(of.id, &of);
    script_->connect(*of.script);
}

/// Peers that the script has disconnected.
task<void> datagram_server::forget_dismissed() {
    while (co_await dismissed_.wait()) {
        dismissed_.reset();
        std::vector<peer*> all;
        for_each_peer([&](peer& each) {
            if (each.script != nullptr && each.script->is_dismissed) all.push_back(&each);
        });
        for (peer* const each : all) forget(*each);
    }
}

task<outcome<>> datagram_server::reload_script() { return reloads_.run(read_and_replace_script()); }

task<outcome<>> datagram_server::read_and_replace_script() {
    if (!running_) co_return refuse(409, fmt::format("{} is not running", name_));
    if (!script_) co_return has_no_script(name_);
    auto read = co_await read_script_in_background("--lua", config_.script.path, max_script_file);
    if (!read) co_return std::unexpected(read.error());
    if (!script_) co_return refuse(409, fmt::format("{} was stopped", name_));
    co_return co_await script_->replace(std::move(*read));
}

/// Requests the destination of each datagram from the socket of a wildcard address.
outcome<> datagram_server::report_addresses(datagram& by) const {
    if (!running_->is_wildcard) return {};
    datagram_options options;
    options.local_address = true;
    const result<> set = by.set(options);
    if (set) return {};
    return refuse(500, fmt::format("the socket cannot report the addresses that datagrams are sent "
                                   "to: {}",
                                   set.error().message()));
}

/// The socket of the instance before, where it is at the same address.
outcome<noted_datagram> datagram_server::bind_or_take(const transport::address& where) {
    if (!inherited_ || !inherited_->bound) return bind_datagram_on(where, *host_);
    auto& before = inherited_->bound;
    if (before->where == config_.where) {
        noted_datagram taken = std::move(before->from);
        known_before_ = std::move(before->peers);
        before.reset();
        taken.note = host_->note_address(config_.where, taken.socket.local());
        return taken;
    }
    // Two sockets of one port exclude each other.
    if (before->from.socket.local().port() == where.port) {
        before.reset();
        inherited_->has_closed = true;
    }
    return bind_datagram_on(where, *host_);
}

task<std::shared_ptr<inherited_listeners>> datagram_server::hand_over_listeners() {
    co_await running_->lost.end();
    if (running_->receiving) {
        running_->receiving->cancel();
        co_await running_->receiving->join();
        running_->receiving.reset();
    }
    auto given = std::make_shared<inherited_listeners>();
    if (config_.where.port == 0) given->chosen_port = running_->address.port();
    // It has none if take_back() has failed.
    if (!running_->bound.socket) co_return given;
    given->bound.emplace(config_.where, std::move(running_->bound));
    confirmed_.for_each([&](const peer& each) {
        given->bound->peers.emplace_back(each.where, each.local, each.seen_at);
    });
    co_return given;
}

outcome<std::shared_ptr<passed_listeners>> datagram_server::share_listeners() {
    return share_datagram(config_.where, running_->bound, running_->address.port(), name_);
}

void datagram_server::open() {
    if (!std::exchange(is_held_, false) || !running_ || running_->receiving) return;
    running_->receiving.emplace();
    running_->receiving->spawn(receive_all());
}

outcome<> datagram_server::take_back(inherited_listeners& from) {
    if (running_->bound.socket) return {};
    if (!from.bound) {
        auto bound = bind_again();
        if (!bound) running_->lost.begin(bound.error(), [this] { return bind_again(); });
        return bound;
    }
    running_->bound = std::move(from.bound->from);
    from.bound.reset();
    running_->receiving.emplace();
    running_->receiving->spawn(receive_all());
    return {};
}

/// At the port that clients know.
outcome<> datagram_server::bind_again() {
    transport::address where = config_.where;
    where.port = running_->address.port();
    auto bound = bind_datagram_on(where, *host_);
    if (!bound) return std::unexpected(not_listening(where, bound.error()));
    if (auto set = report_addresses(bound->socket); !set)
        return std::unexpected(not_listening(where, set.error()));
    running_->bound = std::move(*bound);
    running_->receiving.emplace();
    running_->receiving->spawn(receive_all());
    return {};
}

std::string datagram_server::fault() const {
    if (!running_) return {};
    std::string lost = running_->lost.fault();
    return lost.empty() && script_ ? script_->counted().fault(name_) : lost;
}

task<outcome<bool>> datagram_server::reread() {
    if (!running_) co_return false;
    if (log_.is_open()) {
        if (auto opened = log_.reopen(); !opened) co_return std::unexpected(opened.error());
    }
    if (script_)
        if (auto loaded = co_await reload_script(); !loaded)
            co_return std::unexpected(loaded.error());
    co_return true;
}

task<void> datagram_server::stop(duration drain) {
    if (!running_) co_return;
    const time_point until = loop::current().after(drain);
    co_await reloads_.end();
    co_await running_->lost.end();
    if (script_) co_await script_->stop(std::min<duration>(drain, script_farewell));
    if (running_->receiving) {
        running_->receiving->cancel();
        co_await running_->receiving->join();
    }
    loop::current().disarm(*this);
    for (auto* const each : {&confirmed_, &unconfirmed_})
        while (!each->empty()) forget(each->front());
    co_await end_script(std::max(until - loop::current().now(), duration{}));
    running_->bound.socket.close();
    log_.finish();
    if (config_.script) running_->logging.cancel();
    co_await running_->logging.join();
    log_.close();
    running_.reset();
}

metrics datagram_server::count() const {
    metrics copy(counted_);
    copy.latency = std::make_shared<const histogram>(*latency_);
    if (script_) {
        script_tallies all = script_counts_;
        all.add(script_->counted());
        all.add_samples_to(copy);
    }
    return copy;
}

endpoint datagram_server::local() const { return running_ ? running_->address : endpoint(); }

task<outcome<>> datagram_server::check_restart(settings next, bool /*discards_data*/) {
    outcome<config> read = read_config(next);
    if (!read) co_return std::unexpected(read.error());
    if (!read->log_file.empty()) {
        if (outcome<> good = line_log::check(read->log_file); !good) co_return good;
    }
    if (read->script)
        if (auto good = co_await try_server_script_in_slices(read->script); !good) co_return good;
    const endpoint own = local();
    co_return try_address(std::move(read->where), std::span(&own, 1), *host_);
}

outcome<> datagram_server::apply(const settings& changed) {
    outcome<config> read = read_config(changed);
    if (!read) return std::unexpected(read.error());
    const bool new_pace = read->rate_limit != config_.rate_limit ||
                          read->global_rate_limit != config_.global_rate_limit;
    copy_live(option_rows(), *read, config_);
    options_ = changed;
    if (running_) {
        if (new_pace) set_pace();
        loop::current().disarm(*this);
        watch();
    }
    return {};
}

task<outcome<std::uint64_t>> datagram_server::send(std::string message) {
    if (auto ok = may_send(config_, name_, running_ != nullptr); !ok)
        co_return std::unexpected(ok.error());
    if (message.size() > udp::max_payload) {
        co_return refuse(400, fmt::format("the message has {} bytes; a datagram holds at most {}",
                                          message.size(), udp::max_payload));
    }
    if (script_ && script_->takes_sends()) {
        auto asked = co_await script_->send(std::move(message));
        if (!asked) co_return std::unexpected(asked.error());
        if (!*asked) co_return 0;
        if (running_ == nullptr) co_return refuse(409, fmt::format("{} was stopped", name_));
        message = std::move(**asked);
        if (message.size() > udp::max_payload)
            co_return refuse(400, fmt::format("the text of on_send has {} bytes; a datagram holds "
                                              "at most {}",
                                              message.size(), udp::max_payload));
    }
    co_return send_to_all(as_bytes(message), nullptr);
}

task<void> datagram_server::receive_all() {
    for (;;) {
        result<datagram_message> got = co_await running_->bound.socket.receive();
        if (got) {
            take(*got);
            continue;
        }
        if (got.error() == errc::cancelled) co_return;
        ++counted_.errors;
        if (!co_await loop::current().sleep_for(error_pause)) co_return;
    }
}

void datagram_server::take(const datagram_message& message) {
    const time_point now = loop::current().now();
    counted_.bytes_in += message.payload.size();
    // A browser sends STUN (WebRTC) and QUIC to any address for any page, and nothing else before
    // an answer.
    const std::string_view bytes = message.payload.text();
    if (is_own(message.from) ||
        ((begins_stun(bytes) || begins_quic(bytes)) && !peers_.contains(message.from))) {
        ++counted_.dropped;
        return;
    }
    peer* const from = know(message);
    if (!from) return;
    if (message.truncated) {
        ++counted_.errors;
        return;
    }
    if (config_.mode == flow::out) return;
    // The peer's own limit first: one that exceeds it takes nothing from the others' share.
    if (!may_speak(*from) || !global_limiter_.try_take(1, now)) {
        ++counted_.dropped;
        return;
    }
    ++counted_.messages_in;
    const std::string_view text = message.payload.text();
    if (log_.is_open() && !(log_.append(text, 1) && (text.ends_with('\n') || log_.append("\n", 0))))
        ++counted_.dropped;
    if (config_.mode == flow::in || config_.log_traffic)
        journal_messages(events_, from->id, text, false);
    pass_on(*from, message);
}

/// To the script, or to the other peers.
void datagram_server::pass_on(peer& of, const datagram_message& message) {
    const time_point now = loop::current().now();
    peer* const from = &of;
    if (script_ && script_->takes_messages_of(*of.script)) {
        if (!script_->message_later(*of.script, message.payload.text())) ++counted_.dropped;
    } else if (config_.mode == flow::inout) {
        send_to_all(message.payload.bytes(), from);
        latency_->record(
            static_cast<std::uint64_t>(std::max<std::int64_t>((precise_now() - now).count(), 0)));
    }
}

/// True for a datagram that this server has sent to an address of itself: a forged datagram may
/// have made that address a peer's. A wildcard socket has all addresses of this machine: the ones
/// that a socket can be bound to.
bool datagram_server::is_own(const endpoint& from) {
    const endpoint& own = running_->address;
    if (from.port() != own.port()) return false;
    if (!running_->is_wildcard) return from == own;
    endpoint there = from;
    there.set_port(0);
    const result<datagram> bound = loop::current().bind_datagram(there);
    return bound || bound.error() != std::errc::address_not_available;
}

/// Takes one message from the peer's rate limit; false when the limit is reached.
bool datagram_server::may_speak(peer& from) {
    const time_point now = loop::current().now();
    if (now < from.muted_until) return false;
    if (from.limiter.try_take(1, now)) return true;
    from.muted_until = now + mute_time;
    return false;
}

/// The peer that sends a message, a new one if there is room.
datagram_server::peer* datagram_server::know(const datagram_message& message) {
    const endpoint& from = message.from;
    const time_point now = loop::current().now();
    auto found = peers_.find(from);
    if (found == peers_.end()) {
        if (peers_.size() >= config_.max_connections && !make_room()) {
            ++counted_.connections_refused;
            if (!std::exchange(said_full_, true)) {
                events_.write(
                    fmt::format("{} peers, which is the limit; datagrams of others are "
                                "dropped",
                                config_.max_connections));
            }
            return nullptr;
        }
        found = peers_.emplace(from, std::make_unique<peer>(from, ++last_id_, peer_limiter_)).first;
        ++counted_.connections_total;
        counted_.connections_now = peers_.size();
        if (config_.log_traffic) {
            events_.write(
                fmt::format("client {} appeared at {}", found->second->id, from.to_string()));
        }
    }
    peer& known = *found->second;
    known.local = message.to;
    known.seen_at = now;
    const bool is_new = !known.linked();
    known.unlink();
    known.is_confirmed = !is_new;
    if (is_new) known.credit = message.payload.size();
    (is_new ? unconfirmed_ : confirmed_).push_back(known);
    watch();
    if (is_new) enter_script(known);
    return &known;
}

/// Adds the peers of the instance before, the latest ones where there is not room for all.
void datagram_server::know_again(std::span<const inherited_listeners::datagram_peer> before) {
    const auto most = static_cast<std::size_t>(config_.max_connections);
    if (before.size() > most) before = before.last(most);
    for (const auto& each : before) {
        const auto [at, is_new] = peers_.emplace(
            each.where, std::make_unique<peer>(each.where, ++last_id_, peer_limiter_));
        EDDY_ASSERT(is_new);
        at->second->local = each.local;
        at->second->seen_at = each.seen_at;
        at->second->is_confirmed = true;
        confirmed_.push_back(*at->second);
        enter_script(*at->second);
    }
    counted_.connections_now = peers_.size();
    watch();
}

/// At the limit, in the place of the one of the addresses that may be forged that was silent
/// longest.
bool datagram_server::make_room() {
    if (unconfirmed_.empty()) return false;
    forget(unconfirmed_.front());
    return true;
}

void datagram_server::forget(peer& gone) {
    if (config_.log_traffic) events_.write(fmt::format("client {} forgotten", gone.id));
    gone.unlink();
    if (gone.script != nullptr) script_->leave(*std::exchange(gone.script, nullptr));
    const endpoint where = gone.where;
    peers_.erase(where);
    counted_.connections_now = peers_.size();
    said_full_ = false;
}

std::uint64_t datagram_server::send_to_all(const_bytes message, const peer* except) {
    std::array<outgoing_datagram, datagram::max_batch> batch;
    std::size_t count = 0;
    std::uint64_t sent = 0;
    const auto flush = [&] {
        sent += send_batch(std::span(batch).first(count));
        count = 0;
    };
    confirmed_.for_each([&](peer& to) {
        if (&to == except || !is_served(to)) return;
        batch[count++] = {message, &to.where, 0, &to.local};
        if (count == batch.size()) flush();
    });
    if (count > 0) flush();
    counted_.messages_out += sent;
    counted_.bytes_out += sent * message.size();
    return sent;
}

/// False for a peer that the script has not admitted.
bool datagram_server::is_served(const peer& to) noexcept {
    const script_client* const its = to.script;
    return its == nullptr || (its->is_admitted && !its->is_refused && !its->is_dismissed);
}

std::uint64_t datagram_server::send_to_each(std::span<peer* const> to, const_bytes message) {
    std::array<outgoing_datagram, datagram::max_batch> batch;
    std::uint64_t sent = 0;
    while (!to.empty()) {
        const std::size_t count = std::min(to.size(), batch.size());
        for (std::size_t i = 0; i < count; ++i)
            batch[i] = {message, &to[i]->where, 0, &to[i]->local};
        sent += send_batch(std::span(batch).first(count));
        to = to.subspan(count);
    }
    counted_.messages_out += sent;
    counted_.bytes_out += sent * message.size();
    return sent;
}

/// Sends a batch; a datagram that meets an error is dropped, and the rest is sent. Returns the
/// number of datagrams that were sent.
std::uint64_t datagram_server::send_batch(std::span<const outgoing_datagram> batch) {
    std::uint64_t sent = 0;
    while (!batch.empty()) {
        const auto gone = running_->bound.socket.try_send(batch);
        if (!gone) {
            // A peer that has sent to a broadcast address or a group, or to an address that this
            // machine has lost: Linux answers EINVAL or ENETUNREACH.
            endpoint& local = peers_.find(*batch.front().to)->second->local;
            const bool is_full = gone.error() == errno_code(EAGAIN);
            if (!is_full && local.family() != AF_UNSPEC) {
                local = {};
                continue;
            }
            ++counted_.dropped;
        }
        sent += gone.value_or(0);
        batch = batch.subspan(gone.value_or(1));
    }
    return sent;
}

/// Arms the timer for the peer that was silent longest; without peers nothing ticks.
void datagram_server::watch() noexcept {
    if (armed()) return;
    time_point first = time_point::max();
    for (auto* const each : {&confirmed_, &unconfirmed_})
        if (!each->empty()) first = std::min(first, each->front().seen_at);
    if (first != time_point::max()) loop::current().arm(*this, first + expiry());
}

void datagram_server::fire() noexcept {
    const time_point silent_since = loop::current().now() - expiry();
    for (auto* const each : {&confirmed_, &unconfirmed_})
        while (!each->empty() && each->front().seen_at <= silent_since) forget(each->front());
    watch();
}

}  // namespace eddy::runtime::server
