// Start, stop, counts and messages of a stream server.
#include "runtime/server/stream_server.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop.hpp>

#include "runtime/clock.hpp"

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
    for (auto& each : *made) {
        auto opened = eddy::http::static_files::open(by.http_root, {});
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

stream_server::stream_server(creation from)
    : served_runtime({.what = "the server", .thread_prefix = "sv-"}, std::move(from)),
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
    context_.emplace(events(), log_.lines(), chosen().threads, chosen().max_queue);
    context_->has_log = log_.is_open();
    global_rate_limit_ = chosen().global_rate_limit;
    context_->pace.set(global_rate_limit_);
    return {};
}

task<outcome<>> stream_server::check(config_pointer next, bool /*discards_data*/) {
    const server::config& wanted = own(*next);
    if (auto files = open_files(wanted, 1); !files) co_return std::unexpected(files.error());
    if (wanted.log_file.empty()) co_return outcome<>();
    co_return line_log::check(wanted.log_file);
}

serving::loop_pool::factory stream_server::worker_factory() {
    return [&context = *context_, by = shared_config(),
            files = std::move(files_)](const serving::worker_place& place) {
        return std::make_unique<server_worker>(place, context, own(*by),
                                               std::move(files->at(place.index)));
    };
}

task<outcome<>> stream_server::begin() {
    log_.begin();
    co_return outcome<>();
}

std::string_view stream_server::refusal() const {
    // A line would corrupt what raw clients talk.
    return chosen().messages == framing::line ? refusal_line : std::string_view();
}

// --- Stop -----------------------------------------------------------------------------------

task<void> stream_server::begin_stop() {
    is_stopping_ = true;
    co_return;
}

task<void> stream_server::accepting_ended(duration /*drain*/) {
    // First what came before goes out on each loop, since that is for the clients of all.
    for (const auto& each : pool().others())
        static_cast<void>(co_await on(each.where, as_worker(*each.its).flush_now()));
}

task<void> stream_server::clients_ended(bool /*has_started*/) {
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
}

task<void> stream_server::end() {
    co_await log_.close();
    context_.reset();
    files_.reset();
}

// --- Counts and changes ---------------------------------------------------------------------

void stream_server::add_counts(metrics& to) const {
    auto latency = std::make_shared<histogram>(latency_);
    std::uint64_t requests = http_requests_;
    for_each_worker([&](const serving::loop_worker& of) {
        latency->merge(as_worker(of).latency());
        requests += as_worker(of).http_requests();
    });
    const std::uint64_t web_clients =
        context_ ? context_->web_clients.load(std::memory_order_relaxed) : 0;
    to.latency = std::move(latency);
    to.add_sample(websocket_clients, static_cast<double>(web_clients));
    to.add_sample(http_requests_total, static_cast<double>(requests));
}

task<outcome<bool>> stream_server::reread_files() {
    auto files = open_files(chosen(), chosen().threads + 1);
    if (!files) co_return std::unexpected(files.error());
    if (auto opened = log_.reopen(); !opened) co_return std::unexpected(opened.error());
    if (chosen().http_root.empty()) co_return true;
    pool().post_to_all([files = std::move(*files)](serving::loop_worker& of) {
        auto& its = as_worker(of);
        its.replace_files(std::move(files->at(its.index())));
    });
    co_return true;
}

void stream_server::apply_live() {
    if (std::exchange(global_rate_limit_, chosen().global_rate_limit) != chosen().global_rate_limit)
        context_->pace.set(chosen().global_rate_limit);
    pool().post_to_all(
        [by = shared_config()](serving::loop_worker& of) { as_worker(of).apply(own(*by)); });
}

// --- Messages -------------------------------------------------------------------------------

task<outcome<std::uint64_t>> stream_server::send(std::string message) {
    if (!is_running())
        co_return refuse(409, fmt::format("{0} is not running; `eddy start {0}` first", name()));
    if (auto ok = may_send(chosen(), name(), true); !ok) co_return std::unexpected(ok.error());
    if (is_stopping_) co_return stopped();
    if (chosen().messages == framing::line && !message.ends_with('\n')) message += '\n';
    if (message.size() > chosen().max_queue / 2) {
        co_return refuse(400, fmt::format("the message has {} bytes; {} takes at most {}, half of "
                                          "--max-queue",
                                          message.size(), name(), chosen().max_queue / 2));
    }
    cancel_source until_stop(co_await current_source());
    const send_under_way noted(*this, until_stop);
    const auto count = static_cast<std::uint64_t>(std::count(message.begin(), message.end(), '\n'));
    byte_buffer bytes;
    bytes.append(message);
    shared_messages what{std::make_shared<const byte_buffer>(std::move(bytes)),
                         std::max<std::uint64_t>(count, 1)};
    co_return co_await send_to_all(std::move(what)).under(until_stop);
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
