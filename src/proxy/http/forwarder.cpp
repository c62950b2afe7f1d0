// The life of a forwarded request.
#include "proxy/http/forwarder.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/timeout.hpp>

#include "base/files/descriptors.hpp"
#include "base/text/authority.hpp"
#include "http/client/connection.hpp"
#include "proxy/connect.hpp"
#include "proxy/http/max_forwards.hpp"
#include "proxy/http/request_fields.hpp"
#include "transport/secure.hpp"
#include "wire/http1/forwarding.hpp"

#include <algorithm>
#include <limits>
#include <new>

namespace eddy::proxy {
namespace {

/// Content of a response of at most so many bytes, all of which is here, goes out with its head and
/// leaves its connection at once.
constexpr std::size_t whole_content_limit = 16 * 1024;

/// Time for the first piece of a request's content, which goes out with its head, before the head
/// goes alone.
constexpr duration first_piece_time = std::chrono::milliseconds(1);

/// Route of a target that stays as it was sent.
const route as_it_is;

/// Client of a request without a session.
const http::client_address no_client;

std::shared_ptr<const std::string> name_of(const backend_use& of) {
    return {of.shared(), &of->name()};
}

/// Key of the connections to a backend, which views its name.
http::connection_key key_to(const backend& of) noexcept {
    http::connection_key made;
    made.place = of.name();
    return made;
}

/// Why a backend has not answered.
std::string reason_of(std::error_code error) {
    if (error == errc::timed_out) return "did not answer in time";
    if (error == errc::malformed) return "sent a response that is not valid HTTP/1.1";
    if (error == errc::end_of_stream) return "closed the connection without a response";
    return "did not answer: " + error.message();
}

/// True for an error of connecting that means that no server is there.
bool is_absence(std::error_code error) noexcept {
    return error == std::errc::connection_refused || error == std::errc::host_unreachable ||
           error == std::errc::network_unreachable || error == std::errc::no_such_file_or_directory;
}

/// True for a request whose Upgrade a backend gets. One to HTTP/2 would leave the routes and rules
/// of the requests behind it, so it is ignored, as RFC 9110 (7.8) allows.
bool is_upgrade(const http1::request_head& head) noexcept {
    return head.upgrade && head.minor_version > 0 && !head.has_body() &&
           !head.headers.contains_token("Upgrade", "h2c");
}

/// Adds what a connection sends and receives to the counts of its backend.
class traffic_count {
public:
    traffic_count(backend_counters& to, std::shared_ptr<http::client_connection> of)
        : to_(&to), of_(std::move(of)), before_(of_->counted()) {}
    traffic_count(traffic_count&& other) noexcept = default;  // of_ is null then
    traffic_count& operator=(traffic_count&&) = delete;
    ~traffic_count() {
        if (!of_) return;
        to_->bytes_sent += of_->counted().out - before_.out;
        to_->bytes_received += of_->counted().in - before_.in;
    }

private:
    backend_counters* to_;
    std::shared_ptr<http::client_connection> of_;
    http::traffic before_;
};

}  // namespace

/// A request on its way: what stays the same at each backend, and its state at the present one.
struct forwarder::attempt {
    attempt(http::request& from, std::shared_ptr<const rule_set> rules)
        : incoming(from), by(std::move(rules)) {}
    attempt(const attempt&) = delete;
    attempt& operator=(const attempt&) = delete;

    http::request& incoming;
    std::shared_ptr<const rule_set> by;
    std::string_view host;    // as the client has sent it
    std::string_view target;  // as it is forwarded; of the request, or of `own_target`
    std::string own_target;
    const http::client_address* client = &no_client;
    const route* chosen = nullptr;  // of `by`
    bool is_secure = false;
    bool upgrades = false;
    std::optional<std::uint32_t> max_forwards;  // that a backend gets
    time_point begun;
    time_point deadline = time_point::max();
    unsigned tries = 0;
    unsigned sent = 0;  // of them, the ones that a backend has got

    backend_use use;
    std::optional<http::connection_lease> lease;  // of a connection to it, until it is tried
    std::shared_ptr<balancer> from;
    std::optional<traffic_count> count;
    std::shared_ptr<upload> sending;              // null for a request without content
    std::shared_ptr<const held_content> content;  // null: it is streamed
    int status = 502;                             // of the failure
    std::string why;
    bool may_retry = false;
    bool was_sent = false;    // to the present backend
    bool is_relayed = false;  // a backend's response goes to the client
    bool is_cancelled = false;

    backend_counters& counted(std::size_t worker) const { return use->counted_by(worker); }
    bool has_whole_content() const noexcept { return content && content->is_whole; }
};

/// The content of a request, sent beside the wait for its response, which may come before the end.
class forwarder::upload {
public:
    /// `begun` is what was read before; null for none.
    upload(http::body_reader& from, std::shared_ptr<const rule_set> rules,
           std::shared_ptr<http::client_connection> to, bool begins_alone,
           std::shared_ptr<const held_content> begun)
        : from_(from),
          by_(std::move(rules)),
          to_(std::move(to)),
          begun_(std::move(begun)),
          begins_alone_(begins_alone) {}

    static task<void> run(std::shared_ptr<upload> self) {
        cancel_source stop(co_await current_source());
        self->stop_ = &stop;
        co_await self->send().under(stop);
        self->stop_ = nullptr;
        self->end_.set();
    }
    /// Ends it, so that the content can be sent elsewhere.
    static task<void> stop(std::shared_ptr<upload> self) {
        if (self->stop_ != nullptr) self->stop_->request();
        static_cast<void>(co_await self->end_.wait());
    }

    event& end() noexcept { return end_; }
    bool has_ended() const noexcept { return end_.is_set(); }
    /// The client has not sent it whole.
    bool has_failed() const noexcept { return has_failed_; }
    /// The backend takes no more of it.
    bool is_stuck() const noexcept { return is_stuck_; }
    /// Requests this source when it fails; null for none.
    void set_waiting(cancel_source* response) noexcept { waiting_ = response; }

private:
    task<void> send() {
        result<> sent;
        const bool is_whole = begun_ && begun_->is_whole;
        result<std::string_view> piece = fail(errc::timed_out);
        if (begun_)
            sent = co_await send_begun();
        else if (!begins_alone_)
            piece = co_await with_timeout(first_piece_time, from_.read());
        if (sent && is_whole) {
            sent = co_await finish();
        } else if (sent && !piece && piece.error() == errc::timed_out) {
            sent = co_await to_->flush();
            if (sent) piece = co_await from_.read();
        }
        while (sent && !is_whole) {
            if (!piece) {
                has_failed_ = piece.error() != errc::end_of_stream;
                if (!has_failed_) sent = co_await finish();
                break;
            }
            sent = co_await to_->content().write(*piece);
            if (sent) piece = co_await from_.read();
        }
        is_stuck_ = !sent && sent.error() == errc::timed_out;
        if (!to_->is_sent()) to_->give_up_sending();
        if ((has_failed_ || is_stuck_) && waiting_ != nullptr) waiting_->request();
    }

    task<result<>> finish() {
        const http1::header_list trailers = request_trailers(*by_->rules, from_.trailers());
        co_return co_await to_->finish(trailers);
    }

    task<result<>> send_begun() {
        result<> sent;
        std::string_view rest = begun_->bytes.text();
        while (sent && !rest.empty()) {
            const std::string_view piece = rest.substr(0, most_a_write);
            sent = co_await to_->content().write(piece);
            rest.remove_prefix(piece.size());
        }
        begun_.reset();
        co_return sent;
    }

    http::body_reader& from_;
    const std::shared_ptr<const rule_set> by_;
    const std::shared_ptr<http::client_connection> to_;
    std::shared_ptr<const held_content> begun_;  // until it is sent
    const bool begins_alone_;                    // the head: the client waits for a response to it
    bool has_failed_ = false;
    bool is_stuck_ = false;
    cancel_source* waiting_ = nullptr;
    cancel_source* stop_ = nullptr;
    event end_;
};

/// Content of a response that is passed on as it comes.
class forwarder::relayed_body final : public http::body_producer {
public:
    relayed_body(forwarder& by, attempt& at, http::connection_lease lease,
                 std::shared_ptr<http::client_connection> over, std::string begun)
        : by_(by),
          rules_(at.by),
          lease_(std::move(lease)),
          over_(std::move(over)),
          use_(std::move(at.use)),
          from_(at.from),
          count_(std::move(at.count)),
          sending_(at.sending && !at.sending->has_ended() ? at.sending : nullptr),
          deadline_(at.deadline),
          most_ahead_(at.by->rules->buffered_response),
          begun_(std::move(begun)),
          begins_at_once_(!begun_.empty() || over_->has_waiting()) {}

    bool begins_at_once() const noexcept override { return begins_at_once_; }
    bool is_finite() const noexcept override { return true; }

    task<result<>> produce(http::body_writer& to) override {
        return deadline_ == time_point::max() ? send_all(to) : send_in_time(to);
    }

private:
    task<result<>> send_in_time(http::body_writer& to) {
        const result<> sent = co_await with_deadline(deadline_, send_all(to));
        const bool is_late = !sent && sent.error() == errc::timed_out;
        if (is_late && use_ && loop::current().now() >= deadline_)
            by_.observer_.note_failed_backend(
                *use_, "its response was cut: the time for the whole request was over");
        co_return sent;
    }

    task<result<>> send_all(http::body_writer& to) {
        return most_ahead_ == 0 ? send(to) : send_ahead(to);
    }

    task<result<>> send(http::body_writer& to) {
        result<> sent;
        if (!begun_.empty()) {
            sent = co_await to.write(begun_);
            begun_ = {};
        }
        http::body_reader& content = over_->response_body();
        while (sent) {
            auto piece = over_->try_read();
            if (!piece) piece = co_await content.read();
            if (!*piece) {
                const std::error_code end = piece->error();
                note_end(end);
                if (end == errc::end_of_stream) break;
                co_return fail(end);
            }
            sent = co_await to.write(**piece);
        }
        if (!sent) co_return sent;
        http1::header_list trailers = response_trailers(*rules_->rules, content.trailers());
        if (!trailers.empty()) to.set_trailers(std::move(trailers));
        // A backend may answer before it has read everything that it wants.
        if (sending_) co_return co_await sending_->end().wait();
        co_return result<>();
    }

    /// The same with a queue between the backend and the client.
    task<result<>> send_ahead(http::body_writer& to) {
        result<> sent;
        content_queue between(most_ahead_, by_.budget_);
        co_await with_scope([&](scope& backend) -> task<void> {
            backend.spawn(take_ahead(between));
            if (!begun_.empty()) sent = co_await to.write(begun_);
            begun_ = {};
            if (sent) sent = co_await between.drain(to);
        });
        if (!sent) co_return sent;
        if (!trailers_.empty()) to.set_trailers(std::move(trailers_));
        if (sending_) co_return co_await sending_->end().wait();
        co_return result<>();
    }

    /// The side of the backend, whose connection is free for others when its response has ended.
    task<void> take_ahead(content_queue& between) {
        std::error_code end = std::make_error_code(std::errc::not_enough_memory);
        try {
            end = co_await between.fill(*over_);
            if (end == errc::end_of_stream) {
                trailers_ = response_trailers(*rules_->rules, over_->response_body().trailers());
            }
        } catch (const std::bad_alloc&) {
            by_.observer_.note_no_memory();
        }
        note_end(end);
        if (end == errc::end_of_stream && !sending_) {
            count_.reset();
            over_.reset();
            use_ = {};
            lease_.reset();
        }
        between.end(end);
    }

    void note_end(std::error_code end) {
        if (end == errc::cancelled) return;
        if (end == errc::end_of_stream) return use_->note_whole();
        ++use_->counted_by(by_.worker_).failed_answers;
        if (from_->note_cut(*use_, loop::current().now())) by_.observer_.note_ejected(*use_);
        by_.observer_.note_failed_backend(*use_, "its response broke off");
    }

    // A response that was taken whole has no backend any more.
    forwarder& by_;
    const std::shared_ptr<const rule_set> rules_;
    std::optional<http::connection_lease> lease_;
    std::shared_ptr<http::client_connection> over_;
    backend_use use_;
    const std::shared_ptr<balancer> from_;
    std::optional<traffic_count> count_;
    std::shared_ptr<upload> sending_;  // while it runs
    const time_point deadline_;
    const std::size_t most_ahead_;  // bytes; 0: none
    http1::header_list trailers_;
    std::string begun_;
    const bool begins_at_once_;
};

/// A connection after HTTP: a tunnel to its backend.
class forwarder::upgraded final : public http::connection_takeover,
                                  public tunnel_owner,
                                  private timer {
public:
    upgraded(forwarder& by, attempt& at, http::connection_lease lease,
             http::client_connection::taken backend)
        : by_(by),
          rules_(at.by),
          lease_(std::move(lease)),
          use_(std::move(at.use)),
          backend_(std::move(backend)) {
        at.count.reset();
    }
    ~upgraded() override {
        if (armed()) loop::current().disarm(*this);
    }

    task<void> run(stream peer, byte_buffer received) override {
        cancel_source stop(co_await current_source());
        stop_ = &stop;
        arm(touch());
        backend_counters& counted = use_->counted_by(by_.worker_);
        tunnel through(peer, backend_.peer, *this, by_.buffers_,
                       {by_.counted_.bytes_in, counted.bytes_sent, counted.bytes_received,
                        by_.counted_.bytes_out});
        co_await through.run(stop, std::move(received), std::move(backend_.received)).under(stop);
        stop_ = nullptr;
    }

    time_point touch() noexcept override { return touched_at_ = loop::current().now(); }
    bool may_linger() noexcept override { return true; }
    void note_no_memory() noexcept override { by_.observer_.note_no_memory(); }

private:
    duration idle_time() const noexcept { return rules_->rules->tunnel_idle_time; }
    void arm(time_point from) noexcept {
        if (idle_time() > duration{}) loop::current().arm(*this, from + idle_time());
    }
    void fire() noexcept override {
        if (loop::current().now() - touched_at_ < idle_time()) return arm(touched_at_);
        if (stop_ != nullptr) stop_->request();
    }

    forwarder& by_;
    const std::shared_ptr<const rule_set> rules_;
    http::connection_lease lease_;
    backend_use use_;
    http::client_connection::taken backend_;
    cancel_source* stop_ = nullptr;
    time_point touched_at_{};
};

forwarder::forwarder(std::size_t worker, serving::counters& counted, forwarding_observer& observer,
                     std::shared_ptr<buffer_budget> budget)
    : worker_(worker),
      counted_(counted),
      observer_(observer),
      budget_(budget ? std::move(budget) : std::make_shared<buffer_budget>()) {}

forwarder::~forwarder() = default;

void forwarder::set_rules(std::shared_ptr<const forwarding_rules> rules,
                          std::shared_ptr<const route_table> routes,
                          std::shared_ptr<const named_routes> named) {
    auto made = std::make_shared<rule_set>();
    // Connections keep the limits that they were made with.
    if (in_force_ && in_force_->rules->limits == rules->limits)
        made->limits = in_force_->limits;
    else
        made->limits = std::shared_ptr<const http::client_limits>(rules, &rules->limits);
    const http::connection_pool::limits bounds{.of_upstream = rules->backend_connections,
                                               .of_all = std::numeric_limits<std::size_t>::max(),
                                               .waiting = rules->queue,
                                               .waiting_time = rules->queue_time,
                                               .idle_time = rules->limits.keep_time};
    // One for all rules: requests may wait in it.
    if (pool_)
        pool_->set_limits(bounds);
    else
        pool_ = std::make_shared<http::connection_pool>(bounds);
    made->rules = std::move(rules);
    made->routes = std::move(routes);
    made->named = std::move(named);
    in_force_ = std::move(made);
}

void forwarder::close() noexcept {
    if (pool_) pool_->close();
}

// Also of what a session finds at fault.
http::response forwarder::reject(int status, std::string_view what) {
    observer_.note_unanswered(status, what);
    return own_answer(status, what);
}

http::response forwarder::own_answer(int status, std::string_view what) {
    std::optional<http::response> page = pages_ ? pages_->answer(status) : std::nullopt;
    std::string text;
    if (!page) {
        text = std::to_string(status);
        text.append(" ").append(http1::reason_phrase(status)).append("\n");
        if (status < 500) text.append(what).append("\n");
    }
    http::response made =
        page ? std::move(*page)
             : http::response(status, "text/plain; charset=utf-8", std::move(text));
    if (status == 503) made.add("Retry-After", "1");
    return made;
}

/// The response to a request that no backend has answered. Its client gets no details of them.
http::response forwarder::refuse(attempt& at) {
    ++counted_.errors;
    observer_.note_unanswered(at.status, at.why);
    return own_answer(at.status, at.why);
}

http::response forwarder::redirect(std::string to, int status, const attempt& at) {
    constexpr std::string_view variable = "$host";
    if (const std::size_t place = to.find(variable); place != std::string::npos) {
        const std::string host = host_of(at.host);
        // The path would be the host.
        if (host.empty()) return reject(400, "the redirection needs a host");
        to.replace(place, variable.size(), host);
    }
    const http1::target_parts& parts = at.incoming.parts();
    if (to.ends_with('/')) to.pop_back();
    to += parts.path.empty() ? std::string_view("/") : parts.path;
    if (!parts.query.empty()) to.append("?").append(parts.query);
    http::response made = http::redirect(to, status);
    for (const field_setting& each : at.by->rules->response_fields)
        if (!each.value.empty()) static_cast<void>(made.headers.set(each.name, each.value));
    return made;
}

selection_key forwarder::key_of(const rule_set& by, const http::request& incoming) {
    selection_key made;
    const forwarding_rules& rules = *by.rules;
    if (!rules.sticky_cookie.empty())
        made.sticky = incoming.cookie(rules.sticky_cookie).value_or("");
    std::string_view key;
    switch (rules.hashed_by.of) {
        case hash_source::kind::client:
            if (incoming.session() != nullptr) key = incoming.session()->client().host;
            break;
        case hash_source::kind::path: key = incoming.path(); break;
        case hash_source::kind::field:
            key = incoming.headers().find(rules.hashed_by.name).value_or("");
            break;
        case hash_source::kind::cookie:
            key = incoming.cookie(rules.hashed_by.name).value_or("");
            break;
    }
    // Without a key any backend will do.
    made.hash = key.empty() ? ++unkeyed_ : hash_key(key);
    return made;
}

task<http::response> forwarder::handle(http::request& incoming) {
    attempt at(incoming, in_force_);
    note_client(at);
    if (chooser_ != nullptr && chooser_->chooses())
        if (auto answer = co_await consult(at)) co_return std::move(*answer);
    if (auto answer = answer_itself(at)) co_return std::move(*answer);
    if (chooser_ != nullptr && chooser_->edits_requests())
        if (auto answer = co_await edit_request(at)) co_return std::move(*answer);
    const bool is_edited = chooser_ != nullptr && chooser_->edits_responses();
    const duration limit = at.by->rules->total_time;
    if (limit == duration::max()) co_return co_await (is_edited ? forward_edited(at) : forward(at));
    at.deadline = at.begun + limit;
    deadline_source whole(co_await current_source(), at.deadline);
    http::response answer =
        co_await (is_edited ? forward_edited(at) : forward(at)).under(whole.source());
    if (!whole.expired() || !at.is_cancelled) co_return answer;
    constexpr const char* why =
        "the time for the whole request was over before a response had come";
    at.status = 504;
    at.why = why;
    // A client that has not sent all of its content may be the slow one.
    if (at.use && at.was_sent && (!at.sending || at.sending->has_ended())) {
        ++at.counted(worker_).failed_answers;
        note_failure(at, *at.use, 504, why);
    }
    co_return refuse(at);
}

void forwarder::note_client(attempt& at) {
    const http::request& incoming = at.incoming;
    const http1::target_parts& parts = incoming.parts();
    using form = http1::target_form;
    const bool has_authority = parts.form == form::absolute || parts.form == form::authority;
    // The target's authority counts (RFC 9112, 3.2.2).
    at.host = has_authority ? parts.authority : incoming.headers().find("Host").value_or("");
    if (incoming.session() != nullptr) at.client = &incoming.session()->client();
    if (incoming.connection() != nullptr)
        at.is_secure = transport::is_secure(*incoming.connection());
}

/// Sets at.chosen by the chooser. The answer to a request that it refuses.
task<std::optional<http::response>> forwarder::consult(attempt& at) {
    at.begun = loop::current().now();
    const duration limit = at.by->rules->total_time;
    const std::string host = host_of(at.host);
    auto asked = chooser_->choose(at.incoming, host, at.client->host, at.is_secure);
    const auto made = limit == duration::max()
                          ? co_await std::move(asked)
                          : co_await with_deadline(at.begun + limit, std::move(asked));
    if (!made) {
        // The response to a request that was cancelled is no answer.
        at.status = 504;
        at.why = "no route was chosen in time";
        if (made.error() == errc::timed_out) co_return refuse(at);
        co_return http::response(503);
    }
    if (made->status >= 400) co_return reject(made->status, made->why);
    if (made->status != 0) co_return http::response(made->status);
    if (made->name.empty()) co_return std::nullopt;
    const named_routes* const named = at.by->named.get();
    const auto found = named == nullptr ? named_routes::const_iterator() : named->find(made->name);
    if (named == nullptr || found == named->end()) {
        at.status = 500;
        at.why = "the script has chosen \"" + made->name + "\", which is no backend or route";
        co_return refuse(at);
    }
    at.chosen = &found->second;
    co_return std::nullopt;
}

/// The answer to a request whose edit has failed: nothing is forwarded without it.
std::optional<http::response> forwarder::answer_unedited(attempt& at, std::error_code why) {
    at.status = 504;
    at.why = "the script has not ended in time";
    if (why == errc::timed_out) return refuse(at);
    // The response to a request that was cancelled is no answer.
    return http::response(503);
}

/// Rules with the changes of the chooser, for this request alone. The answer to a request that it
/// refuses.
task<std::optional<http::response>> forwarder::edit_request(attempt& at) {
    const duration limit = at.by->rules->total_time;
    const std::string host = host_of(at.host);
    auto asked = chooser_->edit_request(at.incoming, host, at.client->host, at.is_secure);
    const auto made = limit == duration::max()
                          ? co_await std::move(asked)
                          : co_await with_deadline(at.begun + limit, std::move(asked));
    if (!made) co_return answer_unedited(at, made.error());
    if (made->status >= 400) co_return reject(made->status, made->why);
    if (made->status != 0) co_return http::response(made->status);
    if (made->fields.empty()) co_return std::nullopt;
    auto rules = std::make_shared<forwarding_rules>(*at.by->rules);
    for (const field_setting& each : made->fields) {
        std::erase_if(rules->request_fields, [&](const field_setting& one) {
            return http1::equal_ignoring_case(one.name, each.name);
        });
        rules->request_fields.push_back(each);
    }
    auto changed = std::make_shared<rule_set>(*at.by);
    changed->rules = std::move(rules);
    at.by = std::move(changed);
    co_return std::nullopt;
}

task<http::response> forwarder::forward_edited(attempt& at) {
    http::response answer = co_await forward(at);
    if (!at.is_relayed) co_return answer;
    const auto made = co_await chooser_->edit_response(at.incoming, answer);
    if (!made) {
        at.is_cancelled = true;
        co_return http::response(503);
    }
    if (made->status != 0) co_return reject(made->status, made->why);
    if (made->new_status != 0) answer.status = made->new_status;
    for (const field_setting& each : made->fields) {
        if (each.value.empty())
            answer.headers.remove(each.name);
        else
            static_cast<void>(answer.headers.set(each.name, each.value));  // they are checked
    }
    co_return answer;
}

/// Finds the route of the request, and what a backend gets in the place of its target. The answer
/// to one that no backend gets.
std::optional<http::response> forwarder::answer_itself(attempt& at) {
    const http::request& incoming = at.incoming;
    const rule_set& by = *at.by;
    const auto hops = max_forwards_of(incoming.head());
    if (!hops) return reject(400, "Max-Forwards is not one number");
    if (*hops == 0U) return answer_as_recipient(incoming.head());
    if (*hops) at.max_forwards = **hops - 1;
    const http1::target_parts& parts = incoming.parts();
    using form = http1::target_form;
    const bool leaves = !at.is_secure && !by.rules->https.empty();
    const route* const to =
        at.chosen != nullptr ? at.chosen : by.routes->find(at.host, incoming.path());
    if (to == nullptr && leaves) return redirect(by.rules->https, 308, at);
    if (to == nullptr) {
        at.status = 404;
        at.why = "no route is for this host and path";
        return refuse(at);
    }
    if (!to->redirect.empty()) return redirect(to->redirect, to->redirect_status, at);
    if (leaves) return redirect(by.rules->https, 308, at);
    at.target = incoming.target();
    const bool is_moved = to->prefix && (at.chosen == nullptr || is_below(*to, parts.path));
    if (parts.form == form::absolute || (parts.form == form::origin && is_moved)) {
        auto made = forwarded_target(is_moved ? *to : as_it_is, parts.path, parts.query);
        if (!made) return reject(400, "the path leaves its route by dot segments");
        at.own_target = std::move(*made);
        at.target = at.own_target;
    }
    if (incoming.method() == "CONNECT" && !by.rules->connects) {
        http::response refused = reject(405, "CONNECT is not passed on; see --allow-connect");
        refused.add("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE");
        return refused;
    }
    at.upgrades = is_upgrade(incoming.head());
    if (at.begun == time_point()) at.begun = loop::current().now();
    at.from = to->to;
    return std::nullopt;
}

/// Sends the request to backends until one answers. What it yields for a request that was cancelled
/// is no answer.
task<http::response> forwarder::forward(attempt& at) {
    const rule_set& by = *at.by;
    const bool has_come = co_await buffer(at);
    if (!has_come) co_return http::response(400);
    retries_.note_request();
    const bool has_key = !by.rules->sticky_cookie.empty() || at.from->hashes();
    balancer::selection order =
        at.from->select(has_key ? key_of(by, at.incoming) : selection_key{});
    std::vector<backend_use> full;
    std::shared_ptr<backend> failed;
    for (;;) {
        next_backend(at, order, full);
        if (!at.use && at.tries == 0) {
            at.status = 503;
            at.why = "no backend takes requests";
        }
        if (!at.use) break;
        const bool has_connection = at.lease || co_await await_connection(at, full);
        if (!has_connection && at.is_cancelled) co_return http::response(at.status);
        if (!has_connection) break;
        ++at.tries;
        if (failed) ++failed->counted_by(worker_).retries;
        auto answer = co_await try_backend(at);
        if (answer) co_return std::move(*answer);
        failed = at.use.shared();
        if (at.is_cancelled) co_return http::response(at.status);
        at.use = {};
        if (!at.may_retry) break;
        // A request that no backend has got costs none of them anything.
        if (at.was_sent && (++at.sent >= by.rules->tries || !retries_.take())) break;
    }
    co_return refuse(at);
}

/// Reads content that is to be buffered. False: that has failed, and the session answers.
task<bool> forwarder::buffer(attempt& at) {
    const http1::request_head& head = at.incoming.head();
    const std::size_t most = at.by->rules->buffered_request;
    if (most == 0 || !head.has_body() || head.content_length.value_or(0) > most) co_return true;
    auto held = co_await hold_content(at.incoming.body(), most, budget_);
    at.is_cancelled = !held && held.error() == errc::cancelled;
    if (held) at.content = std::move(*held);
    co_return held.has_value();
}

/// Chooses at.use, none after the last one, and takes at.lease, a connection to it. There is none
/// for a backend at its limit, whose queue the request waits in: one of `full`, after all others,
/// or the one that a client sticks to.
void forwarder::next_backend(attempt& at, balancer::selection& order,
                             std::vector<backend_use>& full) {
    for (;;) {
        at.use = order.next(loop::current().now());
        if (!at.use) break;
        if (http::pool_connection* const through = pool_->try_take(key_to(*at.use)))
            at.lease.emplace(pool_, *through);
        if (at.lease || order.is_sticky()) return;
        full.push_back(std::move(at.use));
    }
    if (full.empty()) return;
    at.use = std::move(full.back());
    full.pop_back();
}

/// Awaits at.lease, a connection to a backend that is at its limit: to at.use, or to the one of
/// `full` that has one first, which becomes at.use. None of them is tried again. False without one.
task<bool> forwarder::await_connection(attempt& at, std::vector<backend_use>& full) {
    full.push_back(std::move(at.use));
    std::vector<http::connection_key> keys;
    for (const backend_use& each : full) keys.push_back(key_to(*each));
    const auto waited = co_await pool_->take_any(keys);
    if (waited) at.lease.emplace(pool_, **waited);
    std::size_t index = 0;
    while (waited && keys[index] != (*waited)->of.key) ++index;
    EDDY_ASSERT(index < full.size());
    at.use = std::move(full[index]);
    full.clear();
    if (waited) co_return true;
    at.is_cancelled = waited.error() == errc::cancelled;
    at.status = 503;
    at.why = "no connection to " + at.use->name() + " came free: " + waited.error().message();
    co_return false;
}

/// One backend, over at.lease; none if it has not answered.
task<std::optional<http::response>> forwarder::try_backend(attempt& at) {
    http::connection_lease through(std::move(*at.lease));
    at.lease.reset();
    // One under older limits, one that the backend has closed, or on which it has sent what answers
    // no request.
    if (through->through && &through->through->limits() != at.by->limits.get())
        through->through.reset();
    if (through->through && through->through->may_have_input() &&
        !co_await through->through->is_quiet())
        through->through.reset();
    for (;;) {
        const bool is_kept = through->through != nullptr;
        if (!is_kept) {
            const bool is_made = co_await connect(at, *through);
            if (!is_made) co_return std::nullopt;
        }
        const std::shared_ptr<http::client_connection> over = through->through;
        const bool is_answered = co_await exchange(at, over);
        if (is_answered) co_return relay(at, std::move(through), over);
        through->through.reset();
        if (at.sending && at.has_whole_content()) co_await upload::stop(at.sending);
        // It may have been closed while the request was on its way: that is no fault.
        if (is_kept && at.may_retry && over->was_closed_unanswered()) {
            ++at.counted(worker_).retries;
            continue;
        }
        if (!at.is_cancelled) {
            ++at.counted(worker_).failed_answers;
            note_failure(at, *at.use, at.status, std::move(at.why));
        }
        co_return std::nullopt;
    }
}

void forwarder::note_failure(attempt& at, backend& of, int status, std::string why) {
    const time_point now = loop::current().now();
    at.status = status;
    at.why = of.name() + " " + why;
    at.incoming.set_upstream({name_of(at.use), at.tries, now - at.begun});
    if (at.from->note_failure(of, now)) observer_.note_ejected(of);
    observer_.note_failed_backend(of, why);
}

task<bool> forwarder::connect(attempt& at, http::pool_connection& through) {
    const forwarding_rules& rules = *at.by->rules;
    if (!descriptors::has_room(descriptors::use::client)) {
        at.may_retry = false;
        at.status = 503;
        at.why =
            "no descriptor is free for a backend; raise the limit of open files (ulimit -n) or "
            "lower --max-connections";
        co_return false;
    }
    at.was_sent = false;
    auto made = co_await proxy::connect(*at.use, rules.connect_timeout, rules.keepalive);
    if (!made) {
        at.is_cancelled = made.error() == errc::cancelled;
        if (at.is_cancelled) co_return false;
        ++at.counted(worker_).failures;
        at.may_retry = true;
        const int status = made.error() == errc::timed_out            ? 504
                           : at.sent == 0 && is_absence(made.error()) ? 503
                                                                      : 502;
        note_failure(at, *at.use, status, "accepts no connection: " + made.error().message());
        co_return false;
    }
    ++at.counted(worker_).connections;
    through.through = std::make_shared<http::client_connection>(std::move(*made), at.by->limits);
    co_return true;
}

/// Writes the head of the request.
result<> forwarder::begin(const attempt& at, http::client_connection& over) const {
    const http1::request_head& head = at.incoming.head();
    http1::body_framing framing;
    if (head.chunked)
        framing = http1::body_framing::chunked();
    else if (head.content_length)
        framing = http1::body_framing::sized(*head.content_length);
    const std::string spare = at.host.empty() ? authority_of(*at.use) : std::string();
    const forwarded_request what{head,        *at.by->rules,   at.host,
                                 spare,       *at.client,      at.is_secure,
                                 at.upgrades, at.max_forwards, at.content != nullptr};
    return over.begin(head.method, at.target, framing,
                      [&what](http1::head_writer& to) { write_request_fields(what, to); });
}

/// Sends the request and awaits the final head of its response; false without one.
task<bool> forwarder::exchange(attempt& at, const std::shared_ptr<http::client_connection>& over) {
    const http1::request_head& head = at.incoming.head();
    at.may_retry = false;
    const result<> begun = begin(at, *over);
    if (!begun) {
        at.status = 400;
        at.why = "could not be sent the request: it has a part that cannot be forwarded";
        co_return false;
    }
    at.was_sent = true;
    ++at.counted(worker_).requests;
    at.count.emplace(at.counted(worker_), over);
    const time_point sent_at = loop::current().now();
    cancel_source waiting(co_await current_source());
    if (!head.has_body()) {
        // A failure shows in the wait for the response, which may be here all the same.
        static_cast<void>(co_await over->finish());
    } else {
        // Content that has come was not waited for.
        const bool is_awaited = head.expect_continue && !at.content;
        if (is_awaited) at.incoming.session()->take_expectation();
        at.sending =
            std::make_shared<upload>(at.incoming.body(), at.by, over, is_awaited, at.content);
        at.sending->set_waiting(&waiting);
        at.incoming.session()->background().spawn(upload::run(at.sending));
    }
    result<> received;
    for (;;) {
        received = co_await over->read_head().under(waiting);
        if (!received || over->has_final_head()) break;
        http1::header_list fields = std::move(over->head().headers);
        edit_interim_fields(*at.by->rules, fields);
        if (at.incoming.session() == nullptr) continue;
        static_cast<void>(
            co_await at.incoming.session()->send_interim(over->head().status, std::move(fields)));
    }
    if (at.sending) at.sending->set_waiting(nullptr);
    if (received && over->head().status == 101 && !at.upgrades) received = fail(errc::malformed);
    const time_point now = loop::current().now();
    if (received) {
        at.use->note_latency(now - sent_at);
        // The time of an upload is the client's.
        if (!head.has_body())
            if (const auto slow = at.from->note_response_time(*at.use, now - sent_at, now))
                observer_.note_slow(*slow);
        if (over->head().status >= 500) ++at.counted(worker_).server_errors;
        if (at.from->note_success(*at.use, now)) observer_.note_returned(*at.use);
        at.incoming.set_upstream({name_of(at.use), at.tries, now - at.begun});
        co_return true;
    }
    const std::error_code error = received.error();
    const bool is_stuck = at.sending && at.sending->is_stuck();
    at.is_cancelled =
        !is_stuck && (error == errc::cancelled || (at.sending && at.sending->has_failed()));
    at.incoming.set_upstream({name_of(at.use), at.tries, now - at.begun});
    if (at.is_cancelled) co_return false;
    at.may_retry = (!at.sending || at.has_whole_content()) && !over->has_received() &&
                   http1::is_idempotent(at.incoming.method());
    at.status = is_stuck || error == errc::timed_out ? 504 : 502;
    at.why = is_stuck ? "took no more of the request in time" : reason_of(error);
    co_return false;
}

http::response forwarder::switch_protocols(attempt& at, http::connection_lease lease,
                                           http::client_connection& over) {
    http::response answer(over.head().status);
    answer.headers = std::move(over.head().headers);
    std::string protocol(answer.headers.find("Upgrade").value_or(""));
    edit_response_fields(*at.by->rules, answer.headers);
    if (answer.status == 101) {
        answer.add("Connection", "upgrade");
        if (!protocol.empty()) answer.add("Upgrade", protocol);
    }
    answer.takeover = std::make_unique<upgraded>(*this, at, std::move(lease), over.take_over());
    return answer;
}

/// The response, with what has come of its content.
http::response forwarder::relay(attempt& at, http::connection_lease lease,
                                const std::shared_ptr<http::client_connection>& over) {
    const http1::response_head& head = over->head();
    const int status = head.status;
    const bool is_tunnel =
        status == 101 || (at.incoming.method() == "CONNECT" && status >= 200 && status < 300);
    const forwarding_rules& rules = *at.by->rules;
    const std::string cookie =
        rules.sticky_cookie.empty() ||
                at.incoming.cookie(rules.sticky_cookie).value_or("") == sticky_id(at.use->name())
            ? std::string()
            : rules.sticky_cookie + "=" + sticky_id(at.use->name()) + "; Path=/; HttpOnly" +
                  (at.is_secure ? "; Secure" : "");
    if (is_tunnel) {
        http::response switched = switch_protocols(at, std::move(lease), *over);
        if (!cookie.empty()) switched.add("Set-Cookie", cookie);
        return switched;
    }
    at.is_relayed = true;
    const std::optional<std::uint64_t> length = head.content_length;
    const bool is_chunked = head.chunked;
    http::response answer(status);
    answer.headers = std::move(over->head().headers);
    edit_response_fields(rules, answer.headers);
    if (!cookie.empty()) answer.add("Set-Cookie", cookie);

    const auto stream = [&](std::string begun, std::optional<std::uint64_t> size) {
        answer.body = http::body(
            std::make_unique<relayed_body>(*this, at, std::move(lease), over, std::move(begun)),
            size);
    };
    if (at.incoming.method() == "HEAD" || status == 204 || status == 304) {
        // Its length, of a body that is not sent.
        stream({}, length);
        return answer;
    }
    const bool is_sending = at.sending && !at.sending->has_ended();
    // A refusal ends the upload; it continues beside another response.
    const bool may_be_whole =
        (!is_sending || status >= 400) &&
        (is_chunked || length.value_or(whole_content_limit + 1) <= whole_content_limit);
    if (!may_be_whole) {
        stream({}, length);
        return answer;
    }
    std::string content;
    bool is_whole = false;
    while (content.size() <= whole_content_limit) {
        const auto piece = over->try_read();
        if (!piece) break;
        is_whole = !*piece && piece->error() == errc::end_of_stream;
        if (!*piece) break;  // a failure comes again
        content += **piece;
    }
    if (!is_whole || !over->response_body().trailers().empty()) {
        stream(std::move(content), length);
        return answer;
    }
    at.use->note_whole();
    answer.body = http::body(std::move(content));
    return answer;
}

}  // namespace eddy::proxy
