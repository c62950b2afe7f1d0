// Start, restart and stop of a proxy over UDP, and its counts.
#include "runtime/proxy/datagram_proxy.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>

#include "runtime/proxy/backend_lack.hpp"
#include "runtime/proxy/backend_metrics.hpp"
#include "runtime/proxy/source_watches.hpp"
#include "runtime/serving/passed_listeners.hpp"
#include "runtime/serving/reopener.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <span>
#include <utility>

namespace eddy::runtime::proxy {
namespace {

/// After an error of the socket, before the next receive.
constexpr duration error_pause = std::chrono::milliseconds(50);
/// For an address that was closed a moment ago.
constexpr int close_tries = 40;
constexpr duration close_pause = std::chrono::milliseconds(5);

/// Requests the destination of each datagram from the socket of a wildcard address.
outcome<> report_addresses(datagram& of) {
    const std::string host = of.local().host();
    if (host != "0.0.0.0" && host != "::") return {};
    datagram_options options;
    options.local_address = true;
    const result<> set = of.set(options);
    if (set) return {};
    return refuse(500, fmt::format("the socket cannot report the addresses that datagrams are sent "
                                   "to: {}",
                                   set.error().message()));
}

}  // namespace

struct datagram_proxy::running {
    running(noted_datagram opened, serving::counters& counted, datagram_observer& observer,
            serving::journal& events)
        : bound(std::move(opened)), sessions(bound.socket, counted, observer), lost(events) {}

    noted_datagram bound;
    endpoint address;
    eddy::proxy::datagram_sessions sessions;
    std::optional<scope> receiving;
    std::optional<source_watches> watches;
    reopener lost;  // its address
};

datagram_proxy::datagram_proxy(creation from)
    : name_(std::move(from.name)),
      options_(std::move(from.options)),
      host_(std::move(from.host)),
      events_(*from.events),
      inherited_(std::move(from.listeners)),
      is_held_(from.is_held) {
    EDDY_ASSERT(host_ != nullptr);
}

datagram_proxy::~datagram_proxy() { EDDY_ASSERT(!running_); }

// ---- start and stop

task<outcome<>> datagram_proxy::start() {
    if (running_) co_return refuse(409, name_ + " runs already");
    outcome<config> read = read_config(options_);
    if (!read) co_return std::unexpected(read.error());
    config_ = std::move(*read);
    transport::address where = config_.where;
    if (inherited_) where = inherited_->with_chosen_port(std::move(where));
    outcome<noted_datagram> opened = bind_or_take(where);
    // On a ring a closed socket has its address until its last completion.
    for (int i = 0; !opened && inherited_ && inherited_->has_closed && i < close_tries; ++i) {
        if (!co_await loop::current().sleep_for(close_pause)) break;
        opened = bind_datagram_on(where, *host_);
    }
    if (!opened && where != config_.where) opened = bind_datagram_on(config_.where, *host_);
    if (!opened) co_return std::unexpected(opened.error());
    if (auto set = report_addresses(opened->socket); !set) co_return set;
    datagram_observer& observer = *this;
    running_ = std::make_unique<running>(std::move(*opened), counted_, observer, events_);
    running_->address = running_->bound.socket.local();
    update_sessions();
    running_->watches.emplace(*host_, events_, [this] { update_sessions(); });
    running_->watches->follow(config_.all_backends(), config_.name_servers);
    // Before the first datagram, for a short time.
    co_await running_->watches->wait();
    if (!is_held_) begin_receiving();
    if (inherited_) inherited_->close();
    inherited_.reset();
    co_return outcome<>();
}

task<void> datagram_proxy::stop(duration) {
    if (!running_) co_return;
    co_await running_->lost.end();
    co_await end_receiving();
    co_await running_->watches->end();
    co_await running_->sessions.end();
    running_.reset();
    for (report* const each : {&failed_backends_, &dropped_}) *each = {};
}

void datagram_proxy::begin_receiving() {
    running_->receiving.emplace();
    running_->receiving->spawn(receive_all());
}

task<void> datagram_proxy::end_receiving() {
    if (!running_->receiving) co_return;
    running_->receiving->cancel();
    co_await running_->receiving->join();
    running_->receiving.reset();
}

task<void> datagram_proxy::receive_all() {
    for (;;) {
        result<datagram_message> got = co_await running_->bound.socket.receive();
        if (got) {
            try {
                running_->sessions.take(*got);
            } catch (const std::bad_alloc&) {
                ++counted_.errors;
            }
            continue;
        }
        if (got.error() == errc::cancelled || got.error() == errc::closed) co_return;
        ++counted_.errors;
        if (!co_await loop::current().sleep_for(error_pause)) co_return;
    }
}

// ---- restart

/// The socket of the instance before, where it is at the same address.
outcome<noted_datagram> datagram_proxy::bind_or_take(const transport::address& where) {
    if (!inherited_ || !inherited_->bound) return bind_datagram_on(where, *host_);
    auto& before = inherited_->bound;
    if (before->where == config_.where) {
        noted_datagram taken = std::move(before->from);
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

task<std::shared_ptr<inherited_listeners>> datagram_proxy::hand_over_listeners() {
    co_await running_->lost.end();
    co_await end_receiving();
    auto given = std::make_shared<inherited_listeners>();
    if (config_.where.port == 0) given->chosen_port = running_->address.port();
    // It has none if take_back() has failed.
    if (running_->bound.socket) given->bound.emplace(config_.where, std::move(running_->bound));
    co_return given;
}

outcome<std::shared_ptr<passed_listeners>> datagram_proxy::share_listeners() {
    return share_datagram(config_.where, running_->bound, running_->address.port(), name_);
}

void datagram_proxy::open() {
    if (!std::exchange(is_held_, false) || !running_ || running_->receiving) return;
    begin_receiving();
}

outcome<> datagram_proxy::take_back(inherited_listeners& from) {
    if (running_->bound.socket) return {};
    if (!from.bound) {
        auto bound = bind_again();
        if (!bound) running_->lost.begin(bound.error(), [this] { return bind_again(); });
        return bound;
    }
    running_->bound = std::move(from.bound->from);
    from.bound.reset();
    begin_receiving();
    return {};
}

/// At the port that clients know.
outcome<> datagram_proxy::bind_again() {
    transport::address where = config_.where;
    where.port = running_->address.port();
    auto bound = bind_datagram_on(where, *host_);
    if (!bound) return std::unexpected(not_listening(where, bound.error()));
    if (auto set = report_addresses(bound->socket); !set)
        return std::unexpected(not_listening(where, set.error()));
    running_->bound = std::move(*bound);
    begin_receiving();
    return {};
}

std::string datagram_proxy::fault() const {
    if (!running_) return {};
    if (!running_->lost.fault().empty()) return running_->lost.fault();
    const std::string why = lack_of(backends_, config_.balance.ejection);
    return why.empty() ? why : fmt::format("no backend of --backend serves: {}", why);
}

task<outcome<bool>> datagram_proxy::reread() { co_return running_ != nullptr; }

task<outcome<>> datagram_proxy::check_restart(settings next, bool /*discards_data*/) {
    outcome<config> read = read_config(next);
    if (!read) co_return std::unexpected(read.error());
    const endpoint own = local();
    co_return try_address(std::move(read->where), std::span(&own, 1), *host_);
}

// ---- live changes

outcome<> datagram_proxy::apply(const settings& changed) {
    outcome<config> read = read_config(changed);
    if (!read) return std::unexpected(read.error());
    // Others than live options are the same.
    config_ = std::move(*read);
    options_ = changed;
    if (!running_) return {};
    running_->watches->follow(config_.all_backends(), config_.name_servers);
    if (!running_->watches->is_waiting()) update_sessions();
    return {};
}

void datagram_proxy::update_sessions() {
    backends_ = eddy::proxy::update_backends(
        backends_,
        resolve(config_.all_backends(), *host_, {},
                running_->watches ? running_->watches->known() : followed_addresses(),
                config_.drained, config_.is_local_first, config_.carrier()),
        1);
    running_->sessions.set({static_cast<std::size_t>(config_.max_connections), config_.idle_timeout,
                            config_.connect_timeout},
                           std::make_shared<eddy::proxy::balancer>(config_.balance, backends_));
}

// ---- counts and journal

metrics datagram_proxy::count() const {
    metrics copy(counted_);
    add_backend_metrics(copy, backends_);
    return copy;
}

endpoint datagram_proxy::local() const { return running_ ? running_->address : endpoint(); }

void datagram_proxy::note_failed_backend(const eddy::proxy::backend& which,
                                         std::error_code why) noexcept {
    try {
        write(failed_backends_, "a backend failed: ", which.name() + " " + why.message());
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
}

void datagram_proxy::note_dropped(std::string_view why) noexcept {
    write(dropped_, "a datagram was dropped: ", why);
}

/// Writes a failure at most once per report_interval, with the number of those before.
void datagram_proxy::write(report& of, std::string_view kind, std::string_view why) noexcept {
    const time_point now = loop::current().now();
    if (of.written_at && now - *of.written_at < report_interval) {
        ++of.unreported;
        return;
    }
    of.written_at = now;
    try {
        std::string line = fmt::format("{}{}", kind, why);
        if (const auto more = std::exchange(of.unreported, 0); more > 0)
            line += fmt::format("; {} more times since the last report", more);
        events_.write(line);
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it is counted
    }
}

}  // namespace eddy::runtime::proxy
