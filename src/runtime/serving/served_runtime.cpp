// Frame of a runtime that serves streams: start, stop, restart and live changes.
#include "runtime/serving/served_runtime.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/io/loop.hpp>

#include "runtime/serving/passed_listeners.hpp"
#include "runtime/serving/reopener.hpp"
#include "runtime/serving/shm_options.hpp"
#include "runtime/serving/threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

namespace eddy::runtime {

namespace {

/// For an address that was closed a moment ago.
constexpr int close_tries = 40;
constexpr duration close_pause = std::chrono::milliseconds(5);
/// Between two checks whether accepting has ended.
constexpr duration accept_pause = std::chrono::milliseconds(1);

}  // namespace

struct served_runtime::running {
    running(listeners opened, serving::journal& events, serving::admission* checked)
        : listening(std::move(opened)), pool(events), lost(events) {
        accepting.emplace(pool, checked);
    }

    listeners listening;
    endpoint address;
    serving::loop_pool pool;
    std::optional<serving::acceptor> accepting;  // one from each opening to clients on
    bool is_open = false;                        // to clients
    bool is_paused = false;                      // by end_accepting()
    reopener lost;                               // addresses
};

served_runtime::served_runtime(const served_type& constants, creation from)
    : type_(constants),
      name_(std::move(from.name)),
      options_(std::move(from.options)),
      host_(std::move(from.host)),
      events_(*from.events),
      inherited_(std::move(from.listeners)),
      is_held_(from.is_held) {
    EDDY_ASSERT(host_ != nullptr);
}

served_runtime::~served_runtime() { EDDY_ASSERT(!running_); }

serving::loop_pool& served_runtime::pool() const noexcept {
    EDDY_ASSERT(running_);
    return running_->pool;
}

serving::acceptor& served_runtime::acceptor() const noexcept {
    EDDY_ASSERT(running_);
    return *running_->accepting;
}

listeners& served_runtime::listening() const noexcept {
    EDDY_ASSERT(running_);
    return running_->listening;
}

std::size_t served_runtime::listener_threads(const serving_config& of) const noexcept {
    constexpr std::size_t in_parts = 2;
    return type_.listens_in_parts ? std::max(of.threads, in_parts) : of.threads;
}

// --- Start ----------------------------------------------------------------------------------

task<outcome<>> served_runtime::start() {
    if (running_) co_return refuse(409, name_ + " runs already");
    auto chosen = read(options_);
    if (!chosen) co_return std::unexpected(chosen.error());
    config_ = std::move(*chosen);
    if (auto good = check_certificates(*config_); !good) co_return good;
    if (auto prepared = prepare(); !prepared) co_return prepared;
    listener_addresses where = config_->addresses();
    if (inherited_) where.first = inherited_->with_chosen_port(std::move(where.first));
    const auto open = [&] {
        return open_listeners(where, *host_, listener_threads(*config_), inherited_.get());
    };
    auto opened = open();
    // On a ring a closed socket has its address until its last completion.
    for (int i = 0; !opened && inherited_ && inherited_->has_closed && i < close_tries; ++i) {
        if (!co_await loop::current().sleep_for(close_pause)) break;
        opened = open();
    }
    if (!opened && where.first.port != config_->where.port) {
        where.first.port = config_->where.port;
        opened = open();
    }
    if (!opened) {
        co_await end();
        co_return std::unexpected(opened.error());
    }
    running_ = std::make_unique<running>(std::move(*opened), events_, connection_check());
    running_->address = running_->listening.first.socket.local();
    auto served = co_await serve();
    if (!served) co_return co_await give_up(std::move(served));
    // Closes inherited listeners at addresses that are not wanted any more.
    if (inherited_) inherited_->close();
    inherited_.reset();
    co_return outcome<>();
}

/// Makes the workers, and has clients accepted.
task<outcome<>> served_runtime::serve() {
    serving::loop_pool& pool = running_->pool;
    auto started =
        start_threads(pool, config_->threads, std::string(type_.thread_prefix) + name_, type_.what);
    if (!started) co_return started;
    auto made = co_await make_workers(pool, worker_factory());
    if (!made) co_return made;
    if (pool.assigned_workers() > 0)
        events_.write(fmt::format("{} threads serve its clients", pool.assigned_workers()));
    auto begun = co_await begin();
    if (!begun) co_return begun;
    if (!running_->is_open) open_to_clients();
    co_return outcome<>();
}

void served_runtime::open_to_clients() {
    EDDY_ASSERT(running_ && !running_->is_open);
    if (is_held_) return;
    running_->is_open = true;
    // One that take_back() could not open is closed.
    accept_from(running_->listening.are_open());
}

void served_runtime::accept_from(const std::array<bool, 3>& which) {
    listeners& from = running_->listening;
    serving::acceptor& to = *running_->accepting;
    const std::string_view line = refusal();
    const auto [first, secure, shared] = which;
    if (first) to.open(from.first, line, is_secure(config_->where));
    if (secure) to.open(*from.secure, line, true);
    if (shared) to.open(*from.shared, {}, true);
}

/// Leaves nothing of a start that has failed.
task<outcome<>> served_runtime::give_up(outcome<> why) {
    EDDY_ASSERT(running_ && !why);
    co_await running_->accepting->close();
    if (inherited_) runtime::hand_over(running_->listening, real_addresses(), *inherited_);
    running_->listening.close();
    co_await running_->pool.drain(duration::zero());
    co_await clients_ended(false);
    co_await end_workers();
    co_return why;
}

task<outcome<>> served_runtime::on_each_worker(
    std::function<task<outcome<>>(serving::loop_worker&)> what) {
    struct place {
        executor where;
        serving::loop_worker* its;
    };
    std::vector<place> all;
    for (const auto& each : pool().others()) all.push_back({each.where, each.its.get()});
    if (all.empty()) all.push_back({executor::current(), pool().here()});
    for (const place& each : all) {
        if (each.where.is_current()) {
            auto done = co_await what(*each.its);
            if (!done) co_return done;
            continue;
        }
        auto done = co_await resume_on(each.where, what(*each.its));
        if (!done)
            co_return refuse(500,
                             fmt::format("a thread of {}: {}", name(), done.error().message()));
        if (!*done) co_return *done;
    }
    co_return outcome<>();
}

task<outcome<>> served_runtime::on_each_worker_together(
    std::function<task<outcome<>>(serving::loop_worker&)> prepare,
    std::function<void(serving::loop_worker&)> adopt,
    std::function<void(serving::loop_worker&)> discard) {
    if (is_changing_)
        co_return refuse(503, fmt::format("{} is being changed; try again later", name()));
    struct changing {
        bool& is;
        explicit changing(bool& it) noexcept : is(it) { is = true; }
        ~changing() { is = false; }
    } const here(is_changing_);
    outcome<> done = co_await on_each_worker(std::move(prepare));
    if (!running_) co_return done;
    if (!done) {
        pool().post_to_all(discard);
        co_return done;
    }
    done = co_await on_each_worker([&adopt](serving::loop_worker& of) -> task<outcome<>> {
        adopt(of);
        co_return outcome<>();
    });
    // A request that is given up leaves no two versions, either.
    if (!done && running_) pool().post_to_all(adopt);
    co_return done;
}

// --- Stop -----------------------------------------------------------------------------------

task<void> served_runtime::stop(duration drain) {
    if (!running_) co_return;
    co_await running_->lost.end();
    co_await begin_stop();
    const time_point begun = loop::current().now();
    co_await running_->accepting->close();
    running_->listening.close();
    co_await accepting_ended(drain);
    co_await running_->pool.drain(drain - std::min(drain, loop::current().now() - begun));
    co_await clients_ended(true);
    co_await end_workers();
}

void served_runtime::end_drain() noexcept {
    if (running_) running_->pool.end_drain();
}

task<void> served_runtime::end_workers() {
    co_await running_->pool.end([this](const serving::loop_worker& last) {
        counted_.add(last.counted());
        counted_.connections_now = 0;
        retire(last);
    });
    co_await end();
    running_.reset();
}

// --- Restart --------------------------------------------------------------------------------

std::vector<endpoint> served_runtime::own_addresses() const {
    if (!running_) return {};
    return running_->listening.addresses();
}

/// With the port that clients know in place of one that the kernel has chosen.
listener_addresses served_runtime::real_addresses() const {
    listener_addresses where = config_->addresses();
    if (where.first.port == 0) where.first.port = running_->address.port();
    return where;
}

task<outcome<>> served_runtime::check_restart(settings next, bool discards_data) {
    auto wanted = read(next);
    if (!wanted) co_return std::unexpected(wanted.error());
    if (auto good = check_certificates(**wanted); !good) co_return good;
    if (auto good = co_await check(*wanted, discards_data); !good) co_return good;
    co_return try_addresses((*wanted)->addresses(), own_addresses(), *host_);
}

task<std::shared_ptr<inherited_listeners>> served_runtime::hand_over_listeners() {
    EDDY_ASSERT(running_);
    co_await running_->lost.end();
    co_await running_->accepting->close();
    running_->is_open = false;
    running_->pool.limits().is_replaced = true;
    auto given = std::make_shared<inherited_listeners>();
    if (config_->where.port == 0) given->chosen_port = running_->address.port();
    runtime::hand_over(running_->listening, real_addresses(), *given);
    co_return given;
}

outcome<> served_runtime::take_back(inherited_listeners& from) {
    EDDY_ASSERT(running_);
    if (running_->is_open) return {};
    running_->pool.limits().is_replaced = false;
    auto taken = runtime::take_back(running_->listening, real_addresses(), *host_,
                                    listener_threads(*config_), from);
    running_->accepting.emplace(running_->pool, connection_check());
    open_to_clients();
    if (!taken) running_->lost.begin(taken.error(), [this] { return reopen(); });
    return taken;
}

outcome<std::shared_ptr<passed_listeners>> served_runtime::share_listeners() {
    EDDY_ASSERT(running_);
    auto given = std::make_shared<passed_listeners>();
    if (config_->where.port == 0) given->chosen_port = running_->address.port();
    const auto add = [&](const transport::address& at, const noted_listener& from) -> outcome<> {
        if (!from.socket) return {};
        auto copy = copy_of(from.socket.native_handle());
        if (!copy)
            return refuse(503, fmt::format("{} cannot pass on its socket: {}", name_,
                                           copy.error().message()));
        passed_listener each;
        each.where = at;
        each.port = from.socket.local().port();
        each.file = from.file;
        each.socket = std::move(*copy);
        given->all.push_back(std::move(each));
        return {};
    };
    const listeners& of = running_->listening;
    const listener_addresses where = real_addresses();
    outcome<> added = add(where.first, of.first);
    if (added && where.secure && of.secure) added = add(*where.secure, *of.secure);
    if (added && where.shared && of.shared)
        added = add(shm_address(*where.shared, of.first.socket.local().port()), *of.shared);
    if (!added) return std::unexpected(std::move(added.error()));
    for_each_listener([](const listener& each) { share(each); });
    return given;
}

void served_runtime::unshare_listeners() noexcept {
    if (!running_) return;
    for_each_listener([](const listener& each) { take_possession(each); });
    if (std::exchange(running_->is_paused, false) && running_->accepting->is_idle())
        accept_from(running_->listening.are_open());
}

task<void> served_runtime::end_accepting() {
    if (!running_ || !running_->is_open) co_return;
    running_->is_paused = true;
    for_each_listener([](const listener& each) { each.driver().pause(); });
    // Connections that the loop has taken from the kernel's queue are accepted.
    while (running_ && running_->is_paused && !running_->accepting->is_idle())
        if (!co_await loop::current().sleep_for(accept_pause)) break;
}

task<std::vector<passed_client>> served_runtime::hand_over_clients() {
    if (!running_) co_return std::vector<passed_client>();
    co_return co_await running_->pool.move_clients();
}

void served_runtime::take_clients(std::vector<passed_client> from) {
    if (!running_) return;
    if (!is_held_) return running_->pool.assign(std::move(from));
    std::ranges::move(from, std::back_inserter(moved_));
}

void served_runtime::open() {
    if (!std::exchange(is_held_, false) || !running_) return;
    for_each_listener([](const listener& each) { take_possession(each); });
    // They were here first.
    take_clients(std::exchange(moved_, {}));
    open_to_clients();
}

/// Opens, and accepts from, what take_back() could not open.
outcome<> served_runtime::reopen() {
    inherited_listeners none;
    std::array<bool, 3> fresh = running_->listening.are_open();
    auto opened = runtime::take_back(running_->listening, real_addresses(), *host_,
                                     listener_threads(*config_), none);
    std::ranges::transform(running_->listening.are_open(), fresh, fresh.begin(),
                           [](bool is, bool was) { return is && !was; });
    accept_from(fresh);
    return opened;
}

std::string served_runtime::fault() const {
    if (!running_) return {};
    return running_->lost.fault().empty() ? lack() : running_->lost.fault();
}

// --- Counts and live changes ----------------------------------------------------------------

metrics served_runtime::count() const {
    metrics copy(counted_);
    for_each_worker([&copy](const serving::loop_worker& of) { copy.add(of.counted()); });
    add_counts(copy);
    return copy;
}

client_counts served_runtime::count_clients() const {
    client_counts sum{counted_.connections_now, counted_.handshakes_now};
    for_each_worker([&sum](const serving::loop_worker& of) {
        sum.connections += of.counted().connections_now;
        sum.handshakes += of.counted().handshakes_now;
    });
    return sum;
}

endpoint served_runtime::local() const { return running_ ? running_->address : endpoint(); }

task<outcome<bool>> served_runtime::reread() {
    if (!running_) co_return false;
    if (auto good = check_certificates(*config_); !good) co_return std::unexpected(good.error());
    if (!running_->listening.have_files()) co_return false;
    // All that may fail comes before what has an effect, as far as files are concerned.
    auto again = co_await reread_files();
    if (!again || !*again) co_return again;
    auto renewed = renew_certificates(running_->listening, config_->addresses());
    if (!renewed) co_return std::unexpected(renewed.error());
    co_return true;
}

outcome<> served_runtime::apply(const settings& changed) {
    auto next = read(changed);
    if (!next) return std::unexpected(next.error());
    // Others than live options are the same.
    set_config(std::move(*next), changed);
    if (!running_) return {};
    running_->listening.set_rules(config_->rules);
    apply_live();
    return {};
}

}  // namespace eddy::runtime
