// Stream runtime: start and stop, arrivals, and what is counted of them.
#include "runtime/stream/stream_runtime.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/tcp.hpp>

#include "base/files/descriptors.hpp"
#include "base/files/socket_owner.hpp"
#include "base/rollback.hpp"
#include "handoff/client_check.hpp"
#include "io/posix/sockets.hpp"
#include "io/sockets/linger.hpp"
#include "runtime/listening.hpp"
#include "runtime/serving/inherited_listeners.hpp"
#include "runtime/serving/passed_listeners.hpp"
#include "runtime/serving/reopener.hpp"
#include "runtime/stream/answer.hpp"
#include "runtime/stream/metrics.hpp"
#include "runtime/stream/programs/programs.hpp"
#include "runtime/stream/sources/lua_source.hpp"
#include "runtime/stream/sources/mock_source.hpp"
#include "runtime/stream/sources/relay_source.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <new>
#include <optional>
#include <span>
#include <utility>

namespace eddy::runtime::stream {
namespace {

constexpr metric active_streams{
    .name = "active_streams", .kind = metric_kind::gauge, .help = "Streams that have not ended."};
constexpr metric handoffs_total{.name = "handoffs_total",
                                .kind = metric_kind::counter,
                                .help = "Clients that were handed over."};
constexpr metric handoff_errors_total{.name = "handoff_errors_total",
                                      .kind = metric_kind::counter,
                                      .help = "Handoffs that led to no stream, by reason.",
                                      .labels = {"reason"}};
constexpr metric backend_responses_total{.name = "backend_responses_total",
                                         .kind = metric_kind::counter,
                                         .help = "Responses of the source, by status.",
                                         .labels = {"status"}};
constexpr metric backend_fallbacks_total{
    .name = "backend_fallbacks_total",
    .kind = metric_kind::counter,
    .help = "Requests that went to the next backend, by the one that failed.",
    .labels = {"backend"}};
constexpr metric backend_requests{.name = "backend_requests",
                                  .kind = metric_kind::gauge,
                                  .help = "Requests to the source that have not ended."};
constexpr metric backend_seconds{
    .name = "backend_first_byte_seconds",
    .kind = metric_kind::histogram,
    .help = "Time from a request to the source to the head of its response."};
constexpr metric chunks_sent_total{
    .name = "chunks_sent_total", .kind = metric_kind::counter, .help = "Messages sent to clients."};
constexpr metric streams_total{
    .name = "streams_total", .kind = metric_kind::counter, .help = "Streams that were sent whole."};
constexpr metric resumed_streams{.name = "resumed_streams_total",
                                 .kind = metric_kind::counter,
                                 .help = "Clients that reconnected and got the missed events."};
constexpr metric reset_streams{.name = "reset_streams_total",
                               .kind = metric_kind::counter,
                               .help = "Clients that reconnected and got a new answer."};
constexpr metric detached_streams{.name = "detached_streams",
                                  .kind = metric_kind::gauge,
                                  .help = "Streams that continue without their client."};
constexpr metric replay_bytes{.name = "replay_bytes",
                              .kind = metric_kind::gauge,
                              .help = "Memory of events kept for replay."};
constexpr metric handoff_seconds{
    .name = "handoff_duration_seconds",
    .kind = metric_kind::histogram,
    .help = "Time from a message's receipt to the first bytes of its answer."};
constexpr metric limited_users{
    .name = "limited_users",
    .kind = metric_kind::gauge,
    .help = "Users that count for a limit: with streams, or with events in this minute."};
constexpr metric stream_seconds{.name = "stream_duration_seconds",
                                .kind = metric_kind::histogram,
                                .help = "Length of streams that were sent whole."};

using steady = std::chrono::steady_clock;

/// Clients that linger after their refusal at once, at most, since each has a descriptor. Further
/// ones are closed at once.
constexpr std::size_t max_lingering_refusals = 128;

/// Between two looks at what is pending, while a stop waits for that.
constexpr duration pending_pause = std::chrono::milliseconds(5);
/// The same while the stop of a replaced instance waits for streams that may be continued.
constexpr duration expiry_pause = std::chrono::milliseconds(100);

/// Bytes for a TCP client that the kernel takes before the client's window has room for them. By
/// default it takes megabytes, and no more before a third of them has gone: a client that takes 40
/// KiB/s seems to take nothing for a minute.
constexpr int max_unsent = 128 * 1024;

/// Applies that limit to a client whose source waits for it. Without effect on other sockets.
void limit_unsent(int client, const config& chosen) noexcept {
    const bool waits = chosen.source == source_type::openai || chosen.source == source_type::lua ||
                       chosen.source == source_type::proxy;
    if (waits && chosen.replay_memory == 0)
        static_cast<void>(
            ::setsockopt(client, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &max_unsent, sizeof(max_unsent)));
}

transport::address address_of(const config& chosen) {
    transport::address where;
    where.kind = transport::scheme::unix_socket;
    where.path = chosen.path;
    return where;
}

/// Null for exec.
outcome<std::unique_ptr<source>> make_source(sessions& clients, source::observer& owner,
                                             const config& chosen, std::string_view name,
                                             std::shared_ptr<host> daemon,
                                             serving::journal& lines) {
    switch (chosen.source) {
        case source_type::mock:
            return std::make_unique<mock_source>(clients, owner, chosen.delay, chosen.messages,
                                                 chosen.heartbeat);
        case source_type::openai:
            return std::make_unique<openai_source>(clients, owner, chosen, lines);
        case source_type::lua:
            return make_lua_source(clients, owner, chosen, name, std::move(daemon), lines);
        case source_type::proxy:
            return std::make_unique<proxy_source>(clients, owner, chosen, lines);
        case source_type::exec: return std::unique_ptr<source>();
    }
    EDDY_ASSERT(false);
}

void add_one(labelled<serving::tally>& of, std::string_view reason) noexcept {
    try {
        ++of.at({std::string(reason)});
    } catch (const std::bad_alloc&) {
        // The sum of errors has it.
    }
}

}  // namespace

struct stream_runtime::running {
    running(handoff::receiver::sink& to, serving::journal& events,
            stream_deadlines::observer& owner, worker_share* share) noexcept
        : receiving(to), deadlines(owner), users(share), lost(events) {}

    handoff::receiver receiving;
    std::unique_ptr<sessions> clients;
    // One of these.
    std::unique_ptr<stream::source> source;
    std::unique_ptr<stream::programs> programs;
    stream_deadlines deadlines;
    user_limits users;

    std::uint64_t streams() const noexcept {
        return clients->active() + (programs ? programs->running() : 0);
    }
    address_note note;
    socket_file file;
    bool is_replaced = false;  // another instance has the socket
    // Handle of this instance for the next ones, once it is replaced.
    std::shared_ptr<inherited_listeners::handoff_predecessor> seen;
    std::weak_ptr<void> successor;
    std::optional<cancel_source> draining;  // while a stop waits for streams
    scope refused;                          // clients that linger after their refusal
    reopener lost;                          // the socket
};

stream_runtime::stream_runtime(creation from)
    : options_(std::move(from.options)),
      name_(std::move(from.name)),
      host_(std::move(from.host)),
      events_(*from.events),
      handoff_faults_(handoff_errors_total),
      losses_(stream_errors_total),
      responses_(backend_responses_total),
      fallbacks_(backend_fallbacks_total),
      log_(events_, counted_.dropped),
      inherited_(std::move(from.listeners)),
      is_held_(from.is_held) {}

stream_runtime::stream_runtime(creation from, worker_place place)
    : stream_runtime(std::move(from)) {
    adopted_.emplace(std::move(place.from));
    share_ = std::make_unique<worker_share>(std::move(place.board), place.number);
}

stream_runtime::~stream_runtime() { EDDY_ASSERT(!running_); }

task<outcome<>> stream_runtime::start() {
    if (running_) co_return eddy::refuse(409, name_ + " runs already");
    outcome<config> read = read_config(options_);
    if (!read) co_return std::unexpected(read.error());
    config_ = std::move(*read);
    auto made =
        std::make_unique<running>(static_cast<handoff::receiver::sink&>(*this), events_,
                                  static_cast<stream_deadlines::observer&>(*this), share_.get());
    session_options keeping;
    keeping.capacity = max_streams;
    keeping.max_queue = config_.max_queue;
    keeping.finish_time = config_.source_timeout;
    keeping.replay_memory = config_.replay_memory;
    keeping.replay_time = config_.replay_time;
    keeping.counts_bytes = !config_.access_log.empty();
    sessions::observer& owner = *this;
    auto clients = sessions::open(keeping, owner);
    if (!clients)
        co_return eddy::refuse(500,
                               fmt::format("cannot keep clients: {}", clients.error().message()));
    made->clients = std::move(*clients);
    auto answering = make_source(*made->clients, *this, config_, name_, host_, events_);
    if (!answering) co_return std::unexpected(answering.error());
    made->source = std::move(*answering);
    if (made->source) {
        auto begun = co_await made->source->start();
        if (!begun) {
            co_await made->source->close();
            co_return begun;
        }
    } else {
        source::observer& observer = *this;
        made->programs =
            std::make_unique<programs>(config_.command, config_.source_timeout, observer, events_);
        if (auto opened = made->programs->open(); !opened)
            co_return eddy::refuse(
                500, fmt::format("cannot start /bin/sh: {}", opened.error().message()));
    }
    if (auto opened = open_log(); !opened) {
        if (made->source) co_await made->source->close();
        co_return opened;
    }
    running_ = std::move(made);
    set_limits();
    const transport::address where = address_of(config_);
    if (is_held_) running_->receiving.pause();
    if (auto opened = open_receiver(receiving_of(config_)); !opened) {
        if (running_->source) co_await running_->source->close();
        co_await close_log();
        running_.reset();
        co_return std::unexpected(explain_receiver_failure(config_, opened.error(), host_.get()));
    }
    running_->note = host_->note_address(where, running_->receiving.local());
    running_->file = socket_file::at(config_.path);
    if (inherited_) {
        predecessor_ = inherited_->predecessor;
        successor_ = std::move(inherited_->successor);
        inherited_->close();
    }
    inherited_.reset();
    if (!share_) warn_of_limit();
    co_return outcome<>();
}

result<> stream_runtime::open_receiver(const handoff::receiver_options& receiving) {
    if (inherited_ && inherited_->senders) {
        auto& its = *inherited_->senders;
        const auto wanted = endpoint::unix_path(config_.path);
        const bool has_owner = config_.owner || config_.group;
        if (wanted && its.from.local == *wanted && its.type == config_.type &&
            its.mode == config_.mode && its.file == socket_file::at(config_.path) &&
            (has_owner || !its.has_owner)) {
            if (has_owner)
                if (auto given = give_socket(config_.path, config_.owner, config_.group); !given)
                    return given;
            auto taken = running_->receiving.take(std::move(its.from), receiving);
            // The note goes with it, after the one that follows.
            running_->note = std::move(its.note);
            inherited_->senders.reset();
            return taken;
        }
        // It stands in the way of one with other permissions or another type.
        if (wanted && its.from.local == *wanted) inherited_->close_senders();
    }
    if (!share_) return running_->receiving.open(config_.path, receiving);
    EDDY_ASSERT(adopted_);
    handoff::handoff_socket from = std::move(*adopted_);
    adopted_.reset();
    return running_->receiving.open(std::move(from), receiving);
}

/// Clients beyond the limit of open files wait in the handoff socket's queue without an answer.
void stream_runtime::warn_of_limit() {
    if (loop::current().kind() != io_backend_kind::epoll) return;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) < 0) return;
    const std::uint64_t most = streams_within(config_, limit.rlim_cur);
    if (config_.max_connections <= most) return;
    events_.write(
        fmt::format("warning: a limit of {} open files is room for about {} streams on epoll; "
                    "further clients wait without an answer, though --max-connections is {}. "
                    "Lower it, raise the limit (ulimit -n, LimitNOFILE=), or run `eddy "
                    "stream-daemon`, which starts as many processes as it needs",
                    limit.rlim_cur, most, config_.max_connections));
}

task<std::shared_ptr<inherited_listeners>> stream_runtime::hand_over_listeners() {
    EDDY_ASSERT(running_ && !share_);
    co_await running_->lost.end();
    running_->is_replaced = true;
    auto given = std::make_shared<inherited_listeners>();
    // Destroyed without effect: the instance owns itself.
    running_->seen = {static_cast<inherited_listeners::handoff_predecessor*>(this), [](auto*) {}};
    given->predecessor = running_->seen;
    given->successor = std::make_shared<char>();
    running_->successor = given->successor;
    // It has none if take_back() has failed.
    if (running_->receiving.native_handle() >= 0)
        given->senders.emplace(co_await running_->receiving.release(), config_.type, config_.mode,
                               running_->file, std::move(running_->note),
                               config_.owner || config_.group);
    if (is_shared_ && given->senders) given->senders->from.socket.file = {};
    co_return given;
}

outcome<std::shared_ptr<passed_listeners>> stream_runtime::share_listeners() {
    EDDY_ASSERT(running_ && !share_);
    auto given = std::make_shared<passed_listeners>();
    if (running_->receiving.native_handle() < 0) return given;
    auto copy = copy_of(running_->receiving.native_handle());
    if (!copy)
        return eddy::refuse(
            503, fmt::format("{} cannot pass on its socket: {}", name_, copy.error().message()));
    passed_listener each;
    each.what = passed_listener::kind::senders;
    each.where = address_of(config_);
    each.file = running_->file;
    each.mode = config_.mode;
    each.is_seqpacket = config_.type == unix_socket::socket_type::seqpacket;
    each.socket = std::move(*copy);
    given->all.push_back(std::move(each));
    is_shared_ = true;
    return given;
}

void stream_runtime::open() {
    if (!std::exchange(is_held_, false) || !running_) return;
    running_->receiving.own_file();
    running_->receiving.resume();
}

outcome<> stream_runtime::take_back(inherited_listeners& from) {
    EDDY_ASSERT(running_);
    running_->is_replaced = false;
    if (running_->receiving.native_handle() >= 0) return {};
    if (!from.senders) {
        auto opened = open_again();
        if (!opened) running_->lost.begin(opened.error(), [this] { return open_again(); });
        return opened;
    }
    running_->receiving.take_back(std::move(from.senders->from));
    from.senders.reset();
    running_->note = host_->note_address(address_of(config_), running_->receiving.local());
    return {};
}

outcome<> stream_runtime::open_again() {
    const transport::address where = address_of(config_);
    auto opened = handoff::listen_for_handoffs(config_.path, receiving_of(config_));
    if (!opened)
        return std::unexpected(
            not_listening(where, explain_receiver_failure(config_, opened.error(), host_.get())));
    running_->receiving.take_back(std::move(*opened));
    running_->file = socket_file::at(config_.path);
    running_->note = host_->note_address(where, running_->receiving.local());
    return {};
}

std::string stream_runtime::fault() const {
    if (!running_) return {};
    if (std::string lost = running_->lost.fault(); !lost.empty()) return lost;
    const script_tallies* const its =
        running_->source ? running_->source->script_counts() : nullptr;
    return its != nullptr ? its->fault(name_) : std::string();
}

void stream_runtime::end_drain() noexcept {
    if (running_ && running_->draining) running_->draining->request();
}

/// A key that has changed is for the next instance, and so is a socket's file that is not this
/// one's any more.
task<outcome<bool>> stream_runtime::reread() {
    outcome<config> read = read_config(options_);
    if (!read) co_return std::unexpected(read.error());
    if (!running_ || read->key != config_.key || read->backends != config_.backends ||
        socket_file::at(config_.path) != running_->file)
        co_return false;
    if (auto opened = log_.reopen(); !opened) co_return std::unexpected(std::move(opened.error()));
    if (config_.script)
        if (auto loaded = co_await reload_script(); !loaded)
            co_return std::unexpected(std::move(loaded.error()));
    co_return true;
}

task<outcome<>> stream_runtime::reload_script() { return reloads_.run(read_and_replace_script()); }

task<outcome<>> stream_runtime::read_and_replace_script() {
    if (!running_) co_return eddy::refuse(409, name_ + " is not running");
    if (!config_.script) co_return has_no_script(name_);
    auto read = co_await read_script_in_background("--lua", config_.script.path, max_script_file);
    if (!read) co_return std::unexpected(std::move(read.error()));
    if (!running_) co_return eddy::refuse(409, name_ + " was stopped");
    co_return co_await running_->source->replace_script(std::move(*read));
}

task<void> stream_runtime::stop(duration drain) {
    if (!running_) co_return;
    co_await reloads_.end();
    // A replaced instance passes clients on to those before it while it is passed any.
    if (!running_->is_replaced) successor_.reset();
    co_await running_->lost.end();
    loop& here = loop::current();
    const time_point until = here.after(drain);
    running_->draining.emplace(co_await current_source());
    // Where another instance has the socket, messages that are under way are this one's.
    while (running_->is_replaced && running_->receiving.pending() > 0 && here.now() < until &&
           !running_->draining->requested())
        if (!co_await here.sleep_for(pending_pause)) break;
    co_await running_->receiving.close();
    // The next instance passes on clients that continue a stream, as long as its log is kept.
    while (!running_->successor.expired() && has_streams_to_continue() && here.now() < until &&
           !running_->draining->requested())
        if (!co_await here.sleep_for(expiry_pause)) break;
    running_->seen.reset();
    successor_.reset();
    static_cast<void>(
        co_await with_deadline(until, running_->clients->all_closed()).under(*running_->draining));
    cut_ = running_->clients->unsent();
    if (running_->source) {
        running_->deadlines.set(duration::max());
        co_await running_->source->close();
    }
    if (running_->programs) {
        const std::uint64_t before = killed_;
        co_await running_->programs->close(until - here.now()).under(*running_->draining);
        cut_ += killed_ - before;
    }
    running_->refused.cancel();
    co_await running_->refused.join();
    if (cut_ > 0) events_.write(fmt::format("{} streams were cut off", cut_));
    if (running_->source) {
        messages_before_ += running_->source->messages_sent();
        if (const script_tallies* const its = running_->source->script_counts()) {
            script_counts_.add(*its);
            script_counts_.forget_gauges();
        }
    }
    running_->source.reset();
    co_await close_log();
    co_await running_->clients->close();
    bytes_before_ += running_->clients->bytes_sent();
    running_.reset();
    if (share_)
        share_->give_all_back();
    else
        events_.write(fmt::format("Peak concurrent streams: {}", peak_));
}

std::string stream_runtime::lost() const {
    return cut_ > 0 ? fmt::format("{} streams that had not ended", cut_) : std::string();
}

metrics stream_runtime::count() const {
    metrics copy(counted_);
    std::uint64_t messages = messages_before_;
    std::uint64_t bytes = bytes_before_;
    std::uint64_t active = 0;
    if (running_) {
        if (running_->source) messages += running_->source->messages_sent();
        bytes += running_->clients->bytes_sent();
        active = running_->streams();
    }
    copy.connections_now = active;
    copy.messages_out = messages;
    copy.bytes_out = bytes;
    copy.add_sample(active_streams, static_cast<double>(active));
    copy.add_sample(peak_streams_metric, static_cast<double>(peak_));
    copy.add_sample(handoffs_total, static_cast<double>(handoffs_));
    copy.add_sample(streams_total, static_cast<double>(ended_));
    copy.add_sample(chunks_sent_total, static_cast<double>(messages));
    copy.add_sample(resumed_streams, static_cast<double>(resumed_));
    copy.add_sample(reset_streams, static_cast<double>(reset_));
    copy.add_sample(detached_streams,
                    running_ ? static_cast<double>(running_->clients->detached()) : 0);
    copy.add_sample(replay_bytes,
                    running_ ? static_cast<double>(running_->clients->replay_bytes()) : 0);
    if (config_.script) {
        script_tallies scripts = script_counts_;
        if (running_ && running_->source && running_->source->script_counts() != nullptr)
            scripts.add(*running_->source->script_counts());
        scripts.add_samples_to(copy);
    }
    copy.add_sample(limited_users, running_ ? static_cast<double>(running_->users.users()) : 0);
    copy.add_samples(handoff_faults_);
    copy.add_samples(losses_);
    copy.add_samples(responses_);
    copy.add_samples(fallbacks_);
    copy.add_sample(backend_requests,
                    running_ && running_->source
                        ? static_cast<double>(running_->source->requests_under_way())
                        : 0);
    copy.add_sample(backend_seconds, std::make_shared<histogram>(backend_time_));
    copy.add_sample(handoff_seconds, std::make_shared<histogram>(handoff_time_));
    copy.add_sample(stream_seconds, std::make_shared<histogram>(stream_time_));
    return copy;
}

endpoint stream_runtime::local() const {
    return running_ ? running_->receiving.local() : endpoint();
}

outcome<> stream_runtime::apply(const settings& changed) {
    outcome<config> read = read_config(changed);
    if (!read) return std::unexpected(read.error());
    const bool is_larger = read->max_connections > config_.max_connections;
    copy_live(option_rows(), *read, config_);
    options_ = changed;
    if (running_) set_limits();
    if (running_ && is_larger) warn_of_limit();
    return {};
}

task<outcome<>> stream_runtime::check_restart(settings next, bool /*discards_data*/) {
    outcome<config> read = read_config(next);
    if (!read) co_return std::unexpected(read.error());
    if (read->source == source_type::lua)
        if (auto good = co_await try_stream_script_in_slices(read->script); !good) co_return good;
    if (!read->access_log.empty())
        if (auto good = line_log::check(read->access_log); !good) co_return good;
    const endpoint own = local();
    co_return try_address(address_of(*read), std::span(&own, 1), *host_);
}

void stream_runtime::arrive(handoff::arrival what) {
    const auto begun = steady::now();
    ++handoffs_;
    ++counted_.connections_total;
    ++counted_.messages_in;
    counted_.bytes_in += what.message.size();
    if (const std::string_view fault = handoff::find_fault(what.client.get()); !fault.empty())
        return count_fault(fault);
    if (config_.keepalive.count() > 0)
        static_cast<void>(tcp::apply(what.client.get(), tcp::keepalive_after(config_.keepalive)));
    limit_unsent(what.client.get(), config_);
    if (what.is_too_large) {
        return refuse_by("message_too_large", std::move(what.client), 413,
                         "the web server's message is too large",
                         read_response_terms(what.message));
    }
    auto wanted = read_request(what.message);
    if (!wanted) {
        return refuse_by("malformed_message", std::move(what.client), 400,
                         "the web server's message is malformed",
                         read_response_terms(what.message));
    }
    if (!wanted->last_event_id.empty())
        if (const auto before = predecessor_.lock(); before && before->take(what)) return;
    if (running_->source && !running_->source->has_backend(*wanted))
        return refuse_by("unknown_backend", std::move(what.client), 400, "there is no such backend",
                         *wanted);
    if (answer_without_stream(what.client, *wanted)) return;
    // One that is to be replayed was admitted before.
    if (!running_->clients->has_missed(*wanted) && refuse_by_user(what.client, *wanted)) return;
    const rollback admission([this] { running_->users.drop(loop::current().now()); });
    const bool is_full = running_->programs && !running_->programs->has_room();
    const bool is_counted = !is_full && running_->clients->continues_stream(*wanted);
    if (is_full || (!is_counted && !admit())) {
        ++counted_.connections_refused;
        return refuse_by("too_many_streams", std::move(what.client), 503, "too many streams",
                         *wanted);
    }
    if (running_->programs)
        start_program(std::move(what.client), *wanted);
    else
        begin(std::move(what.client), std::move(*wanted), is_counted);
    peak_ = share_ ? share_->peak_streams() : std::max(peak_, running_->streams());
    handoff_time_.record(static_cast<std::uint64_t>((steady::now() - begun).count()));
}

bool stream_runtime::take(handoff::arrival& what) {
    const auto wanted = read_request(what.message);
    EDDY_ASSERT(wanted && running_);
    const sessions& own = *running_->clients;
    if (!own.has_missed(*wanted) && !own.has_whole(*wanted)) {
        const auto before = predecessor_.lock();
        return before && before->take(what);
    }
    arrive(std::move(what));
    return true;
}

bool stream_runtime::has_streams_to_continue() const noexcept {
    const sessions& own = *running_->clients;
    return own.has_replay() && (own.active() > 0 || own.replay_bytes() > 0);
}

/// True for a request whose response has no content, which is sent: of a client that has its whole
/// stream, and HEAD, where the head does not depend on a source.
bool stream_runtime::answer_without_stream(unique_fd& client, const stream_request& from) {
    std::string head;
    if (running_->clients->has_whole(from))
        head = no_content(from);
    else if (running_->source && from.is_head)
        head = running_->source->opening(from);
    if (head.empty()) return false;
    send_and_close(std::move(client), head);
    return true;
}

/// Refuses a client whose user is beyond a limit; else its stream counts as the user's.
bool stream_runtime::refuse_by_user(unique_fd& client, const stream_request& from) {
    const time_point now = loop::current().now();
    const user_limits::verdict found = running_->users.admit(from.user_id, now);
    if (found == user_limits::verdict::fits) return false;
    ++counted_.connections_refused;
    if (found == user_limits::verdict::too_many_streams)
        refuse_by("too_many_user_streams", std::move(client), 429, "too many streams of this user",
                  from);
    else
        refuse_by("too_many_user_events", std::move(client), 429,
                  "too many events of this user in this minute", from,
                  user_limits::until_next_minute(now));
    return true;
}

void stream_runtime::set_limits() noexcept {
    running_->deadlines.set(config_.max_stream_time);
    running_->users.set(
        {.streams = config_.max_streams_per_user, .events = config_.events_per_minute});
}

void stream_runtime::watch(std::uint32_t stream) {
    running_->users.begin(stream);
    running_->deadlines.begin(stream);
}

void stream_runtime::end_stream(std::uint32_t stream, std::string_view reason) noexcept {
    end_log(stream, reason);
    running_->deadlines.end(stream);
    running_->users.end(stream, loop::current().now());
    release();
}

bool stream_runtime::admit() noexcept {
    if (share_) return share_->take(config_.max_connections);
    return running_->streams() < config_.max_connections;
}

void stream_runtime::release() noexcept {
    if (share_) share_->give_back();
}

void stream_runtime::begin(unique_fd client, stream_request from, bool is_counted) {
    stream::source& source = *running_->source;
    rollback admission([this, is_counted] {
        if (!is_counted) release();
    });
    const endpoint peer = log_.is_open() ? peer_endpoint(client.get()) : endpoint();
    const result<sessions::beginning> begun = running_->clients->begin(
        std::move(client), from, source.opening(from), source.first_event(from));
    if (!begun) return count_fault("client_failed");
    admission.keep();
    if (begun->is_reset) ++reset_;
    if (!begun->is_new) {
        ++resumed_;
        return;
    }
    try {
        log_.begin(begun->stream, from, peer);
        watch(begun->stream);
        source.begin(begun->stream, std::move(from));
    } catch (const std::bad_alloc&) {
        running_->clients->abandon(begun->stream);
        on_fault(begun->stream, "no_memory");
    }
}

void stream_runtime::start_program(unique_fd client, const stream_request& from) {
    const endpoint peer = log_.is_open() ? peer_endpoint(client.get()) : endpoint();
    if (const auto number = running_->programs->start(client, from)) {
        log_.begin(*number, from, peer);
        try {
            watch(*number);
        } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): it has no limits
        }
        return;
    }
    release();
    refuse_by("program_not_started", std::move(client), 502, "the program could not be started",
              from);
}

void stream_runtime::refuse_by(std::string_view fault, unique_fd client, int status,
                               std::string_view reason, const stream_request& to,
                               std::chrono::seconds retry_after) {
    count_fault(fault);
    if (log_.is_open()) log_.note_refusal(to, peer_endpoint(client.get()), status, fault);
    refuse(std::move(client), status, reason, to, retry_after);
}

outcome<> stream_runtime::open_log() {
    return config_.access_log.empty() ? outcome<>() : log_.open(config_.access_log);
}

void stream_runtime::end_log(std::uint32_t stream, std::string_view reason) noexcept {
    if (!log_.is_open()) return;
    log_.end(stream, reason, running_->programs ? std::nullopt : running_->clients->sent(stream));
}

/// Writes what there is, also of streams that a stop has cut.
task<void> stream_runtime::close_log() {
    if (!log_.is_open()) co_return;
    log_.for_each([this](std::uint32_t stream) { end_log(stream, "stopped"); });
    co_await log_.close();
}

void stream_runtime::refuse(unique_fd client, int status, std::string_view reason,
                            const stream_request& to, std::chrono::seconds retry_after) {
    const std::string text = refusal(status, reason, to, retry_after);
    const bool may_linger = running_->refused.children() < max_lingering_refusals &&
                            descriptors::has_room(descriptors::use::client);
    if (!may_linger) return send_and_close(std::move(client), text);
    result<eddy::stream> peer = loop::current().adopt(std::move(client));
    if (!peer) return;
    // A refusal fits into the socket's buffer, unless its peer has never read: then it has no use.
    static_cast<void>(peer->try_write(as_bytes(text)));
    if (peer->shutdown_write()) running_->refused.spawn(linger_and_close(std::move(*peer)));
}

void stream_runtime::fail_handoff(handoff::fault why) noexcept { count_fault(to_string(why)); }

void stream_runtime::end_group() noexcept { running_->clients->flush(); }

bool stream_runtime::prefers_others() const noexcept { return share_ && share_->is_ahead(); }

void stream_runtime::on_loss(std::uint32_t stream, handoff::loss why) noexcept {
    end_stream(stream, to_string(why));
    running_->source->forget(stream);
    count_loss(to_string(why));
}

void stream_runtime::on_detach(std::uint32_t stream, std::string_view why) noexcept {
    running_->source->on_idle(stream);
    count_loss(why);
}

void stream_runtime::on_unsent() noexcept { count_loss(to_string(handoff::loss::too_slow)); }

void stream_runtime::on_expiry(std::uint32_t stream) noexcept {
    end_stream(stream, "client_gone");
    running_->source->forget(stream);
}

void stream_runtime::on_idle(std::uint32_t stream) noexcept { running_->source->on_idle(stream); }

void stream_runtime::on_end(std::uint32_t stream, duration since_begin) noexcept {
    end_stream(stream, "done");
    ++ended_;
    stream_time_.record(static_cast<std::uint64_t>(since_begin.count()));
}

void stream_runtime::on_fault(std::uint32_t stream, std::string_view reason) noexcept {
    end_stream(stream, reason);
    if (reason == "program_killed") ++killed_;
    count_loss(reason);
}

void stream_runtime::on_response(std::uint32_t stream, const backend_answer& by) noexcept {
    backend_time_.record(static_cast<std::uint64_t>(by.time.count()));
    log_.note_answer(stream, by);
    try {
        ++responses_.at({std::to_string(by.status)});
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): a count alone is lost
    }
}

void stream_runtime::on_fallback(std::string_view backend) noexcept {
    add_one(fallbacks_, backend);
}

void stream_runtime::on_events(std::uint32_t stream, std::uint32_t count) noexcept {
    if (running_->users.limits_events())
        running_->users.note_events(stream, count, loop::current().now());
}

void stream_runtime::on_overdue(std::uint32_t stream) noexcept {
    if (running_->programs) return running_->programs->end_overdue(stream);
    running_->source->end_overdue(stream);
    running_->clients->flush();
}

void stream_runtime::count_fault(std::string_view reason) noexcept {
    ++counted_.errors;
    add_one(handoff_faults_, reason);
}

void stream_runtime::count_loss(std::string_view reason) noexcept {
    ++counted_.errors;
    add_one(losses_, reason);
}

}  // namespace eddy::runtime::stream
