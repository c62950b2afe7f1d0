// Start, stop, counts and messages of a stream server.
#include "runtime/server/stream_server.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop.hpp>

#include "runtime/clock.hpp"
#include "runtime/server/page_client.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <utility>

namespace eddy::runtime::server {
namespace {

/// Longest wait of `eddy send` for slow readers under --slow-reader wait.
constexpr duration send_patience = std::chrono::seconds(5);

/// Time for what waits for servers of --upstream to be sent, at a stop.
constexpr duration upstream_farewell = std::chrono::seconds(1);

constexpr std::string_view refusal_line = "error: the server is full; try again later\n";

server_worker& as_worker(serving::loop_worker& of) noexcept {
    return static_cast<server_worker&>(of);
}
const server_worker& as_worker(const serving::loop_worker& of) noexcept {
    return static_cast<const server_worker&>(of);
}

const config& own(const serving_config& of) noexcept { return static_cast<const config&>(of); }

using file_list = std::vector<std::optional<eddy::http::static_files>>;

outcome<std::shared_ptr<file_list>> open_files(const config& by, std::size_t count) {
    auto made = std::make_shared<file_list>(count);
    if (by.http_root.empty()) return made;
    eddy::http::static_options options;
    if (by.injects_client) options.html_insertion = page_client_tag;
    if (by.caches_files) options.cache_bytes = http_cache_bytes;
    for (auto& each : *made) {
        auto opened = eddy::http::static_files::open(by.http_root, options);
        if (!opened)
            return refuse(400, fmt::format("--http {} cannot be served: {}", by.http_root,
                                           opened.error().message()));
        each.emplace(std::move(*opened));
    }
    return made;
}

constexpr metric websocket_clients{
    .name = "websocket_clients", .kind = metric_kind::gauge, .help = "WebSocket clients."};
constexpr metric http_requests_total{.name = "http_requests_total",
                                     .kind = metric_kind::counter,
                                     .help = "HTTP requests, including those for a WebSocket."};

constexpr metric master{
    .name = "master", .kind = metric_kind::gauge, .help = "1 while a client is the master."};
constexpr metric master_claims_total{.name = "master_claims_total",
                                     .kind = metric_kind::counter,
                                     .help = "Claims of the master that were granted."};
constexpr metric master_claims_refused_total{.name = "master_claims_refused_total",
                                             .kind = metric_kind::counter,
                                             .help = "Claims of the master that were refused."};
constexpr metric cache_commands_total{.name = "cache_commands_total",
                                      .kind = metric_kind::counter,
                                      .help = "Commands of clients to the cache."};
constexpr metric cache_failures_total{
    .name = "cache_failures_total",
    .kind = metric_kind::counter,
    .help = "Commands that the cache has not answered, such as while it is stopped."};

/// Awaits a worker's task on its loop.
template <class T>
task<result<T>> on(executor where, task<result<T>> work) {
    if (where.is_current()) co_return co_await std::move(work);
    co_return co_await resume_on(std::move(where), std::move(work));
}

}  // namespace

/// Noted as long as it lives, so that a stop can cancel and await it.
class stream_server::send_under_way {
public:
    send_under_way(stream_server& of, cancel_source& its) : of_(of), its_(its) {
        of.sends_.push_back(&its);
    }
    ~send_under_way() {
        std::erase(of_.sends_, &its_);
        of_.send_ended_.set();
    }
    send_under_way(const send_under_way&) = delete;
    send_under_way& operator=(const send_under_way&) = delete;

private:
    stream_server& of_;
    cancel_source& its_;
};

stream_server::stream_server(creation from, kept_client_factory connect)
    : served_runtime({.what = "the server", .thread_prefix = "sv-"}, std::move(from)),
      connect_(connect),
      log_(events(), counted().dropped) {}

const config& stream_server::chosen() const noexcept { return own(common()); }

server_worker& stream_server::here() const noexcept { return as_worker(*pool().here()); }

// --- Start ----------------------------------------------------------------------------------

outcome<served_runtime::config_pointer> stream_server::read(const settings& options) const {
    return shared(read_config(options));
}

outcome<> stream_server::prepare() {
    // One for each worker; that of the loop that accepts may serve nothing.
    auto files = open_files(chosen(), chosen().threads + 1);
    if (!files) return std::unexpected(files.error());
    if (auto opened = log_.open(chosen().log_file, chosen().threads > 1); !opened) return opened;
    files_ = std::move(*files);
    is_stopping_ = false;
    context_.emplace(name(), *daemon(), events(), log_.lines(), chosen().threads,
                     chosen().max_queue);
    context_->claim.set_password(chosen().secret);
    context_->has_log = log_.is_open();
    if (!chosen().upstreams.empty())
        context_->upstream_links = std::make_shared<upstreams>(
            chosen(), name(), events(), connect_,
            [this](upstream_event what) { return take_upstream(std::move(what)); });
    global_rate_limit_ = chosen().global_rate_limit;
    context_->pace.set(global_rate_limit_);
    return {};
}

task<outcome<>> stream_server::check(config_pointer next, bool /*discards_data*/) {
    const server::config& wanted = own(*next);
    if (auto files = open_files(wanted, 1); !files) co_return std::unexpected(files.error());
    if (wanted.script)
        if (auto good = co_await try_server_script_in_slices(wanted.script); !good) co_return good;
    if (wanted.log_file.empty()) co_return outcome<>();
    co_return line_log::check(wanted.log_file);
}

serving::loop_pool::factory stream_server::worker_factory() {
    context_->identity = {
        .name = name(), .port = local().port(), .protocol = "tcp", .daemon = daemon()};
    return [&context = *context_, by = shared_config(),
            files = std::move(files_)](const serving::worker_place& place) {
        return std::make_unique<server_worker>(place, context, own(*by),
                                               std::move(files->at(place.index)));
    };
}

task<outcome<>> stream_server::begin() {
    {
        const std::lock_guard lock(context_->script_guard);
        if (!context_->script_fault.empty()) co_return refuse(400, context_->script_fault);
    }
    log_.begin();
    if (chosen().script) {
        auto begun = co_await reloads_.run(
            on_each_worker([](serving::loop_worker& of) { return as_worker(of).start_script(); }));
        if (!begun) co_return begun;
    }
    if (context_->upstream_links) co_return co_await context_->upstream_links->start();
    co_return outcome<>();
}

task<outcome<>> stream_server::reload_script() { return reloads_.run(read_and_replace_script()); }

task<outcome<>> stream_server::read_and_replace_script() {
    if (!is_running()) co_return refuse(409, fmt::format("{} is not running", name()));
    if (!chosen().script) co_return has_no_script(name());
    auto read = co_await read_script_in_background("--lua", chosen().script.path, max_script_file);
    if (!read) co_return std::unexpected(read.error());
    if (!is_running() || is_stopping_) co_return stopped();
    co_return co_await on_each_worker_together(
        [&file = *read](serving::loop_worker& of) { return as_worker(of).prepare_script(file); },
        [](serving::loop_worker& of) { as_worker(of).adopt_script(); },
        [](serving::loop_worker& of) { as_worker(of).discard_script(); });
}

std::string_view stream_server::refusal() const {
    // A line would corrupt what raw clients talk.
    return chosen().messages == framing::line ? refusal_line : std::string_view();
}

// --- Stop -----------------------------------------------------------------------------------

task<void> stream_server::begin_stop() {
    is_stopping_ = true;
    co_await reloads_.end();
    if (context_->upstream_links) co_await context_->upstream_links->mute();
}

task<void> stream_server::accepting_ended(duration /*drain*/) {
    // First what came before goes out on each loop, since that is for the clients of all.
    for (const auto& each : pool().others())
        static_cast<void>(co_await on(each.where, as_worker(*each.its).flush_now()));
}

task<void> stream_server::clients_ended(bool has_started) {
    if (context_ && context_->upstream_links) {
        co_await context_->upstream_links->mute();
        co_await context_->upstream_links->stop(has_started ? upstream_farewell : duration{});
    }
    const std::vector<cancel_source*> sends = sends_;
    for (cancel_source* const each : sends) each->request();
    while (!sends_.empty()) {
        send_ended_.reset();
        // Also a stop that is cancelled waits for them.
        if (!co_await send_ended_.wait()) co_await loop::current().yield();
    }
}

void stream_server::retire(const serving::loop_worker& last) {
    latency_.merge(as_worker(last).latency());
    http_requests_ += as_worker(last).http_requests();
    if (const script_tallies* const its = as_worker(last).script_counts()) {
        script_counts_.add(*its);
        script_counts_.forget_gauges();
    }
    cache_commands_ += as_worker(last).cache().commands();
    cache_failures_ += as_worker(last).cache().failures();
}

task<void> stream_server::end() {
    co_await log_.close();
    claims_ += context_->claim.granted();
    claims_refused_ += context_->claim.refused();
    context_.reset();
    files_.reset();
}

// --- Counts and changes ---------------------------------------------------------------------

void stream_server::add_counts(metrics& to) const {
    auto latency = std::make_shared<histogram>(latency_);
    std::uint64_t requests = http_requests_;
    std::uint64_t commands = cache_commands_;
    std::uint64_t failures = cache_failures_;
    for_each_worker([&](const serving::loop_worker& of) {
        latency->merge(as_worker(of).latency());
        requests += as_worker(of).http_requests();
        commands += as_worker(of).cache().commands();
        failures += as_worker(of).cache().failures();
    });
    const std::uint64_t web_clients =
        context_ ? context_->web_clients.load(std::memory_order_relaxed) : 0;
    to.latency = std::move(latency);
    to.add_sample(websocket_clients, static_cast<double>(web_clients));
    to.add_sample(http_requests_total, static_cast<double>(requests));
    if (is_running() && chosen().script) script_counts().add_samples_to(to);
    to.add_sample(cache_commands_total, static_cast<double>(commands));
    to.add_sample(cache_failures_total, static_cast<double>(failures));
    add_claims(to);
    if (context_ && context_->upstream_links) context_->upstream_links->add_counts(to);
}

/// Sum of all threads, and of starts before this one.
script_tallies stream_server::script_counts() const {
    script_tallies all = script_counts_;
    for_each_worker([&](const serving::loop_worker& of) {
        if (const script_tallies* const its = as_worker(of).script_counts()) all.add(*its);
    });
    return all;
}

std::string stream_server::lack() const {
    std::string its = script_counts().fault(name());
    if (its.empty() && context_ && context_->upstream_links)
        its = context_->upstream_links->fault();
    return its;
}

void stream_server::add_claims(metrics& to) const {
    const master_claim* const now = context_ ? &context_->claim : nullptr;
    const std::uint64_t granted = claims_ + (now != nullptr ? now->granted() : 0);
    const std::uint64_t refused = claims_refused_ + (now != nullptr ? now->refused() : 0);
    to.add_sample(master, now != nullptr && now->has_master() ? 1 : 0);
    to.add_sample(master_claims_total, static_cast<double>(granted));
    to.add_sample(master_claims_refused_total, static_cast<double>(refused));
}

task<outcome<bool>> stream_server::reread_files() {
    if (chosen().script)
        if (auto loaded = co_await reload_script(); !loaded)
            co_return std::unexpected(loaded.error());
    auto files = open_files(chosen(), chosen().threads + 1);
    if (!files) co_return std::unexpected(files.error());
    // With the password of --master-password-file as it is now.
    auto again = read_config(options());
    if (!again) co_return std::unexpected(again.error());
    if (auto opened = log_.reopen(); !opened) co_return std::unexpected(opened.error());
    set_master(*again);
    apply_live_to_workers();
    if (chosen().http_root.empty()) co_return true;
    pool().post_to_all([files = std::move(*files)](serving::loop_worker& of) {
        auto& its = as_worker(of);
        its.replace_files(std::move(files->at(its.index())));
    });
    co_return true;
}

void stream_server::apply_live() {
    set_master(chosen());
    if (std::exchange(global_rate_limit_, chosen().global_rate_limit) != chosen().global_rate_limit)
        context_->pace.set(chosen().global_rate_limit);
    apply_live_to_workers();
}

void stream_server::apply_live_to_workers() {
    pool().post_to_all(
        [by = shared_config()](serving::loop_worker& of) { as_worker(of).apply(own(*by)); });
}

/// Another password, or another mode, ends the claim; workers notify the client.
void stream_server::set_master(const server::config& by) {
    context_->claim.set_password(by.secret);
}

// --- Messages -------------------------------------------------------------------------------

task<outcome<std::uint64_t>> stream_server::send(std::string message) {
    if (!is_running())
        co_return refuse(409, fmt::format("{0} is not running; `eddy start {0}` first", name()));
    if (auto ok = may_send(chosen(), name(), true); !ok) co_return std::unexpected(ok.error());
    if (is_stopping_) co_return stopped();
    cancel_source until_stop(co_await current_source());
    const send_under_way noted(*this, until_stop);
    if (chosen().script) {
        auto asked = co_await ask_script(std::move(message)).under(until_stop);
        if (!asked) co_return std::unexpected(asked.error());
        if (!*asked) co_return 0;
        message = std::move(**asked);
    }
    co_return co_await send_text(std::move(message)).under(until_stop);
}

/// The message as it is, to the clients of all loops. stop() awaits the end.
task<outcome<std::uint64_t>> stream_server::send_text(std::string message) {
    if (is_stopping_) co_return stopped();
    if (chosen().messages == framing::line && !message.ends_with('\n')) message += '\n';
    if (message.size() > chosen().max_queue / 2) {
        co_return refuse(400, fmt::format("the message has {} bytes; {} takes at most {}, half of "
                                          "--max-queue",
                                          message.size(), name(), chosen().max_queue / 2));
    }
    const auto count = static_cast<std::uint64_t>(std::count(message.begin(), message.end(), '\n'));
    byte_buffer bytes;
    bytes.append(message);
    shared_messages what{std::make_shared<const byte_buffer>(std::move(bytes)),
                         std::max<std::uint64_t>(count, 1)};
    co_return co_await send_to_all(std::move(what));
}

/// A script takes events of --upstream on one loop; without it messages go to all clients.
task<outcome<>> stream_server::take_upstream(upstream_event what) {
    if (chosen().script) {
        const auto& others = pool().others();
        const executor where = others.empty() ? executor::current() : others.front().where;
        server_worker& of = others.empty() ? here() : as_worker(*others.front().its);
        const auto taken = co_await on(where, of.take_upstream(what));
        if (!taken || *taken) co_return outcome<>();
    }
    if (what.what != upstream_event::kind::message) co_return outcome<>();
    auto sent = co_await send_text(std::move(what.text));
    if (!sent) co_return std::unexpected(std::move(sent.error()));
    co_return outcome<>();
}

/// The text as on_send of a loop's script has it; none where it is dropped.
task<outcome<std::optional<std::string>>> stream_server::ask_script(std::string text) {
    const auto& others = pool().others();
    const executor where = others.empty() ? executor::current() : others.front().where;
    server_worker& of = others.empty() ? here() : as_worker(*others.front().its);
    auto asked = co_await on(where, of.ask_script(std::move(text)));
    if (!asked) co_return stopped();
    co_return std::move(*asked);
}

/// Sends on the loop of each worker that has clients. stop() awaits the end.
task<outcome<std::uint64_t>> stream_server::send_to_all(shared_messages what) {
    struct destination {
        executor where;
        server_worker* its;
    };
    std::vector<destination> all;
    for (const auto& each : pool().others()) all.push_back({each.where, &as_worker(*each.its)});
    if (all.empty()) all.push_back({executor::current(), &here()});
    const time_point arrived = precise_now();
    const time_point until = loop::current().now() + send_patience;
    const bool waits = chosen().slow_reader == slow_reader_policy::wait;
    // While a reader is slow no client gets it.
    for (const destination& each : all) {
        if (!waits) break;
        const result<> ready = co_await on(each.where, each.its->wait_for_readers(until));
        if (is_stopping_) co_return stopped();
        if (!ready) co_return too_slow(0);
    }
    std::uint64_t reached = 0;
    bool is_whole = true;
    for (const destination& each : all) {
        // Counted once.
        const std::optional<time_point> first =
            &each == all.data() ? std::optional(arrived) : std::nullopt;
        const auto took = co_await on(each.where, each.its->send_here(what, first, until));
        if (took)
            reached += *took;
        else
            is_whole = false;
    }
    if (!is_whole) {
        if (is_stopping_) co_return stopped();
        co_return too_slow(reached);
    }
    co_return reached;
}

std::unexpected<problem> stream_server::stopped() const {
    return refuse(409, fmt::format("{} was stopped", name()));
}

std::unexpected<problem> stream_server::too_slow(std::uint64_t reached) const {
    const std::string some = reached == 0 ? "" : fmt::format("; {} clients have got it", reached);
    return refuse(503, fmt::format("a client of {} reads too slowly and the others wait for it "
                                   "(--slow-reader wait); try again later{}",
                                   name(), some));
}

}  // namespace eddy::runtime::server
