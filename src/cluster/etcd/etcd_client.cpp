// Calls of etcd's gateway: choice of the endpoint, authentication, and what failures mean.
#include "cluster/etcd/etcd_client.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/tcp.hpp>

#include "base/files/regular_file.hpp"
#include "base/text/terminal_text.hpp"
#include "cluster/membership.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace eddy::cluster {
namespace {

/// Bytes of etcd's own words in a sentence.
constexpr std::size_t longest_quote = 300;

/// Codes of gRPC.
enum grpc_code : int {
    invalid_argument = 3,
    not_found = 5,
    permission_denied = 7,
    resource_exhausted = 8,
    failed_precondition = 9,
    out_of_range = 11,
    unimplemented = 12,
    unauthenticated = 16,
};

std::unexpected<etcd_problem> problem_of(etcd_fault kind, std::string message) {
    return std::unexpected(etcd_problem{kind, std::move(message)});
}

http::client_pool_options pool_options(const etcd_address& where) {
    http::client_pool_options made;
    made.host_connections = max_etcd_connections;
    made.connections = max_etcd_connections * max_etcd_endpoints;
    made.connect.timeout = etcd_client::connect_time;
    made.connect.socket = tcp::keepalive_after(etcd_client::keepalive_time);
    // Calls have deadlines of their own, and a watch may be silent for ever.
    made.limits.response_time = made.limits.read_time = duration::max();
    made.tls = where.endpoints.front().tls;
    made.proxies = {};
    made.redirects = 0;
    made.decompress = false;
    return made;
}

/// The token is unknown, as after a restart, or there is none.
bool is_about_token(const etcd_failure& failure) {
    return failure.code == unauthenticated || failure.message.contains("invalid auth token") ||
           failure.message.contains("user name is empty") ||
           failure.message.contains("revision of auth store is old");
}

etcd_fault fault_of(const etcd_failure& failure) {
    if (is_about_token(failure) || failure.message.contains("permission denied"))
        return etcd_fault::denied;
    switch (failure.code) {
        case permission_denied: return etcd_fault::denied;
        case not_found: return etcd_fault::missing;
        case out_of_range: return etcd_fault::compacted;
        case invalid_argument:
            return failure.message.contains("too large") ? etcd_fault::too_large
                                                         : etcd_fault::refused;
        case resource_exhausted:
            if (failure.message.contains("space")) return etcd_fault::refused;
            return failure.message.contains("larger than") ? etcd_fault::too_large
                                                           : etcd_fault::unreachable;
        case failed_precondition:
        case unimplemented: return etcd_fault::refused;
        default: return etcd_fault::unreachable;
    }
}

/// The ends of sentences that say what to do; empty for others.
std::string_view advice(std::error_code error) {
    if (error == errc::untrusted_certificate) return "; name the authority that signed it by ca=";
    if (error == errc::certificate_name_mismatch) return "; use a name that it is for";
    if (error == errc::certificate_refused) return "; name one that it accepts by cert= and key=";
    if (error == errc::not_tls) return "; etcd:// is for servers without TLS";
    if (error == errno_code(ECONNREFUSED)) return "; no server listens there";
    return {};
}

/// The first line of the file, in which the password stands.
etcd_result<std::string> read_password(const std::string& path) {
    auto text = read_regular(path, max_etcd_password + 2);
    if (!text)
        return problem_of(etcd_fault::denied, fmt::format("password-file={} cannot be read: {}",
                                                          path, text.error().message()));
    text->resize(std::min(text->find_first_of("\r\n"), text->size()));
    if (text->empty() || text->size() > max_etcd_password)
        return problem_of(etcd_fault::denied,
                          fmt::format("password-file={} has no password of 1 to {} bytes in its "
                                      "first line",
                                      path, max_etcd_password));
    return std::move(*text);
}

}  // namespace

etcd_client::etcd_client(etcd_address where, observer& notes)
    : where_(std::move(where)),
      notes_(notes),
      pool_(pool_options(where_)),
      endpoints_(where_.endpoints.size()) {}

etcd_client::~etcd_client() { EDDY_ASSERT(watches_.empty()); }

void etcd_client::close() noexcept { pool_.close(); }

std::string etcd_client::name_of(std::size_t at) const {
    return etcd_endpoint_name(where_.endpoints[at]);
}

// --- Failures ---

etcd_problem etcd_client::failed(std::size_t at, std::error_code error) const {
    const std::string name = name_of(at);
    if (error == errc::cancelled) return {etcd_fault::cancelled, "the call was cancelled"};
    if (error == errc::limit_reached)
        return {etcd_fault::too_large,
                fmt::format("{} answers with over {} bytes", name, max_etcd_response)};
    if (error == errc::timed_out)
        return {etcd_fault::unreachable, fmt::format("{} does not answer in time", name)};
    if (error == errc::end_of_stream || error == errc::truncated ||
        error == errno_code(ECONNRESET) || error == errno_code(EPIPE))
        return {etcd_fault::unreachable, fmt::format("{} closed the connection", name)};
    if (error == errc::malformed)
        return {etcd_fault::unreachable,
                fmt::format("{} does not answer in HTTP; etcds:// is for servers with TLS", name)};
    if (error == errc::unusable_certificate)
        return {etcd_fault::unreachable,
                fmt::format("{}: {}", name,
                            transport::explain(where_.endpoints[at].to_string(), error))};
    return {etcd_fault::unreachable,
            fmt::format("{} cannot be reached: {}{}", name, error.message(), advice(error))};
}

etcd_problem etcd_client::refused(std::size_t at, const etcd_failure& by) const {
    const etcd_fault kind = fault_of(by);
    std::string sentence =
        fmt::format("{} answers: {}", name_of(at), printable(by.message, longest_quote));
    if (kind == etcd_fault::denied)
        sentence += where_.user.empty()
                        ? "; name a user by user= and password-file="
                        : fmt::format(
                              "; the user {} needs the right to read and write keys below "
                              "{}/",
                              printable(where_.user), where_.prefix);
    return {kind, std::move(sentence)};
}

etcd_problem etcd_client::refused(std::size_t at, const answer& refusal) const {
    if (const auto failure = read_etcd_failure(refusal.text)) return refused(at, *failure);
    return {etcd_fault::unreachable,
            fmt::format("{} answers with status {}, and not as etcd's JSON gateway of version 3 "
                        "does: etcd 3.4 or newer is needed, and etcds:// where it has TLS",
                        name_of(at), refusal.status)};
}

void etcd_client::note_failure(std::size_t at) noexcept {
    ++failures_;
    if (current_ == at) current_ = (at + 1) % endpoints_.size();
    for (etcd_watch* const each : watches_)
        if (each->at_ == at) each->cut();
}

etcd_result<> etcd_client::note_cluster(std::size_t at, std::uint64_t id) {
    if (cluster_id_ == 0) cluster_id_ = id;
    endpoint_state& its = endpoints_[at];
    if (id == cluster_id_) {
        its = {};
        return {};
    }
    its.foreign_id = id;
    const auto others = std::ranges::count(endpoints_, id, &endpoint_state::foreign_id);
    if (2 * static_cast<std::size_t>(others) > endpoints_.size()) {
        notes_.note_trouble(
            fmt::format("etcd at {} is the cluster {:x} now, in place of {:x}: it "
                        "was set up anew, and all members join again",
                        name_of(at), id, cluster_id_));
        cluster_id_ = id;
        token_.reset();
        std::ranges::fill(endpoints_, endpoint_state{});
        return {};
    }
    std::string sentence = fmt::format(
        "{} belongs to another cluster of etcd ({:x}) than the "
        "other endpoints ({:x}); it is not used",
        name_of(at), id, cluster_id_);
    if (!std::exchange(its.is_noted, true)) notes_.note_trouble(sentence);
    return problem_of(etcd_fault::unreachable, std::move(sentence));
}

// --- Exchanges ---

http::pool_request etcd_client::make_request(std::size_t at, std::string_view path,
                                             std::string body, std::string_view token) const {
    transport::address plain;
    plain.host = where_.endpoints[at].host;
    plain.port = where_.endpoints[at].port;
    const std::string uri = plain.to_string();
    const bool is_secure = where_.endpoints[at].kind == transport::scheme::tls;
    http::pool_request made;
    made.method = "POST";
    made.url =
        fmt::format("{}{}/v3/{}", is_secure ? "https" : "http", uri.substr(uri.find(':')), path);
    made.body = std::move(body);
    made.may_repeat = true;
    const auto add = [&made](std::string_view name, std::string_view value) {
        static_cast<void>(made.headers.add(name, value));
    };
    add("Content-Type", "application/json");
    // A server without a leader says so at once, and ends its watches.
    add("Grpc-Metadata-Hasleader", "true");
    if (!token.empty()) add("Authorization", token);
    return made;
}

task<result<etcd_client::answer>> etcd_client::exchange(http::pool_request request) {
    auto got = co_await pool_.send(std::move(request));
    if (!got) co_return fail(got.error());
    auto text = co_await got->body().whole(max_etcd_response);
    if (!text) co_return fail(text.error());
    answer made;
    made.status = got->status;
    made.text = std::move(*text);
    co_return made;
}

task<etcd_result<>> etcd_client::log_in(std::size_t at, time_point deadline) {
    const auto password = read_password(where_.password_file);
    if (!password) co_return std::unexpected(password.error());
    http::pool_request request =
        make_request(at, "auth/authenticate", write_etcd_authenticate(where_.user, *password), {});
    const auto got = co_await with_deadline(deadline, exchange(std::move(request)));
    if (!got) co_return std::unexpected(failed(at, got.error()));
    if (got->status == 200) {
        auto token = read_etcd_token(got->text);
        if (!token) co_return std::unexpected(refused(at, *got));
        token_ = std::move(token->token);
        co_return etcd_result<>();
    }
    const auto failure = read_etcd_failure(got->text);
    if (failure && failure->code == failed_precondition) {
        token_ = std::string();  // authentication is off
        co_return etcd_result<>();
    }
    etcd_problem problem = refused(at, *got);
    if (failure && failure->code == invalid_argument)
        problem = {etcd_fault::denied,
                   fmt::format("{} answers: {}; see user= and password-file=", name_of(at),
                               printable(failure->message, longest_quote))};
    co_return std::unexpected(std::move(problem));
}

task<etcd_result<>> etcd_client::ensure_token(std::size_t at, time_point deadline) {
    if (where_.user.empty() || token_) co_return etcd_result<>();
    co_return co_await log_in(at, deadline);
}

/// True if a request that was refused with this token is worth another one.
bool etcd_client::drops_token(const answer& refusal,
                              const std::optional<std::string>& used) noexcept {
    if (where_.user.empty()) return false;
    const auto failure = read_etcd_failure(refusal.text);
    if (!failure || !is_about_token(*failure)) return false;
    if (token_ == used) token_.reset();  // unless another call has a new one
    return true;
}

task<etcd_result<std::string>> etcd_client::ask_text(std::size_t at, std::string path,
                                                     std::string body, time_point deadline) {
    for (bool is_repeated = false;; is_repeated = true) {
        const auto has_token = co_await ensure_token(at, deadline);
        if (!has_token) co_return std::unexpected(has_token.error());
        const std::optional<std::string> used = token_;
        http::pool_request request = make_request(at, path, body, used.value_or(""));
        auto got = co_await with_deadline(deadline, exchange(std::move(request)));
        if (!got) co_return std::unexpected(failed(at, got.error()));
        if (got->status == 200) co_return std::move(got->text);
        if (!drops_token(*got, used) || is_repeated) co_return std::unexpected(refused(at, *got));
    }
}

template <class Reply>
task<etcd_result<Reply>> etcd_client::ask(std::size_t at, std::string path, std::string body,
                                          reader<Reply> read, time_point deadline) {
    const auto text = co_await ask_text(at, std::move(path), std::move(body), deadline);
    if (!text) co_return std::unexpected(text.error());
    auto reply = read(*text);
    if (!reply) {
        if (const auto failure = read_etcd_failure(*text))
            co_return std::unexpected(refused(at, *failure));
        co_return problem_of(etcd_fault::unreachable,
                             fmt::format("{} does not answer as etcd does", name_of(at)));
    }
    auto same = note_cluster(at, reply->header.cluster_id);
    if (!same) co_return std::unexpected(std::move(same.error()));
    co_return std::move(*reply);
}

template <class Reply>
task<etcd_result<Reply>> etcd_client::call(std::string path, std::string body, reader<Reply> read,
                                           etcd_patience patience) {
    const time_point end = loop::current().after(patience.round);
    std::string reasons;
    for (std::size_t tried = 1;; ++tried) {
        const std::size_t at = current_;
        const time_point deadline = loop::current().after(patience.attempt);
        auto got = co_await ask(at, path, body, read, deadline);
        if (got || got.error().kind != etcd_fault::unreachable) co_return got;
        note_failure(at);
        reasons += (reasons.empty() ? "" : "; ") + got.error().message;
        if (tried == endpoints_.size() || loop::current().now() >= end)
            co_return problem_of(etcd_fault::unreachable, std::move(reasons));
    }
}

// --- Calls ---

task<etcd_result<etcd_range_reply>> etcd_client::range(etcd_range keys, etcd_patience patience) {
    return call("kv/range", write_etcd_range(keys), read_etcd_range, patience);
}

task<etcd_result<etcd_write_reply>> etcd_client::write(std::string key, std::string value,
                                                       std::int64_t lease, etcd_condition on,
                                                       etcd_patience patience) {
    return call("kv/txn", write_etcd_write(key, value, lease, on), read_etcd_write, patience);
}

task<etcd_result<etcd_lease_reply>> etcd_client::grant(std::chrono::seconds time,
                                                       etcd_patience patience) {
    return call("lease/grant", write_etcd_grant(time.count()), read_etcd_grant, patience);
}

task<etcd_result<etcd_lease_reply>> etcd_client::keep_alive(std::int64_t lease,
                                                            etcd_patience patience) {
    return call("lease/keepalive", write_etcd_lease(lease), read_etcd_keep_alive, patience);
}

task<etcd_result<etcd_lease_reply>> etcd_client::time_to_live(std::int64_t lease,
                                                              etcd_patience patience) {
    return call("lease/timetolive", write_etcd_lease(lease), read_etcd_time_to_live, patience);
}

task<etcd_result<etcd_plain_reply>> etcd_client::revoke(std::int64_t lease,
                                                        etcd_patience patience) {
    return call("lease/revoke", write_etcd_lease(lease), read_etcd_plain, patience);
}

// --- Watches ---

task<etcd_client::watch_result> etcd_client::watch(etcd_range keys, etcd_patience patience) {
    const std::string body = write_etcd_watch(keys);
    const time_point end = loop::current().after(patience.round);
    std::string reasons;
    for (std::size_t tried = 1;; ++tried) {
        const std::size_t at = current_;
        const time_point deadline = loop::current().after(patience.attempt);
        auto got = co_await open_watch(at, body, deadline);
        if (got || got.error().kind != etcd_fault::unreachable) co_return got;
        note_failure(at);
        reasons += (reasons.empty() ? "" : "; ") + got.error().message;
        if (tried == endpoints_.size() || loop::current().now() >= end)
            co_return problem_of(etcd_fault::unreachable, std::move(reasons));
    }
}

task<etcd_client::watch_result> etcd_client::open_watch(std::size_t at, std::string body,
                                                        time_point deadline) {
    for (bool is_repeated = false;; is_repeated = true) {
        const auto has_token = co_await ensure_token(at, deadline);
        if (!has_token) co_return std::unexpected(has_token.error());
        const std::optional<std::string> used = token_;
        http::pool_request request = make_request(at, "watch", body, used.value_or(""));
        auto got = co_await with_deadline(deadline, pool_.send(std::move(request)));
        if (!got) co_return std::unexpected(failed(at, got.error()));
        if (got->status == 200) co_return co_await begin_watch(at, std::move(*got), deadline);
        auto text = co_await with_deadline(deadline, got->body().whole(max_etcd_response));
        if (!text) co_return std::unexpected(failed(at, text.error()));
        answer refusal;
        refusal.status = got->status;
        refusal.text = std::move(*text);
        if (!drops_token(refusal, used) || is_repeated)
            co_return std::unexpected(refused(at, refusal));
    }
}

/// Awaits the line that says that the watch is made.
task<etcd_client::watch_result> etcd_client::begin_watch(std::size_t at, http::pool_response from,
                                                         time_point deadline) {
    std::unique_ptr<etcd_watch> made(new etcd_watch(*this, at, std::move(from)));
    deadline_source limit(co_await current_source(), deadline);
    auto line = co_await made->next().under(limit.source());
    if (!line && line.error().kind == etcd_fault::cancelled && limit.expired())
        co_return std::unexpected(failed(at, errc::timed_out));
    if (!line) {
        // etcd says so, too, where the token was unknown.
        if (line.error().kind == etcd_fault::denied) token_.reset();
        co_return std::unexpected(std::move(line.error()));
    }
    if (!line->is_created)
        co_return problem_of(etcd_fault::unreachable,
                             fmt::format("{} does not make the watch", name_of(at)));
    made->created_ = line->header;
    co_return std::move(made);
}

etcd_watch::etcd_watch(etcd_client& of, std::size_t at, http::pool_response from)
    : client_(of), at_(at), from_(std::move(from)) {
    client_.watches_.push_back(this);
}

etcd_watch::~etcd_watch() { std::erase(client_.watches_, this); }

void etcd_watch::cut() noexcept {
    is_cut_ = true;
    if (wait_ != nullptr) wait_->request();
}

/// Keeps the lines that end within `piece`.
etcd_result<> etcd_watch::take(std::string_view piece) {
    bool is_too_long = false;
    splitter_.take(piece, max_etcd_response, [&](std::string_view line, bool is_cut) {
        is_too_long |= is_cut;
        if (!line.empty() && !is_too_long) lines_.emplace_back(line);
    });
    if (is_too_long || splitter_.begun() > max_etcd_response + 1)
        return std::unexpected(client_.failed(at_, errc::limit_reached));
    return {};
}

task<etcd_result<std::string>> etcd_watch::next_line() {
    while (lines_.empty()) {
        cancel_source wait(co_await current_source());
        if (is_cut_) wait.request();
        wait_ = &wait;
        const auto piece = co_await from_.body().read().under(wait);
        wait_ = nullptr;
        if (!piece && piece.error() == errc::cancelled && is_cut_)
            co_return problem_of(etcd_fault::unreachable,
                                 fmt::format("{} does not answer in time", client_.name_of(at_)));
        if (!piece) co_return std::unexpected(client_.failed(at_, piece.error()));
        auto taken = take(*piece);
        if (!taken) co_return std::unexpected(std::move(taken.error()));
    }
    std::string line = std::move(lines_.front());
    lines_.pop_front();
    co_return line;
}

task<etcd_result<etcd_watch_line>> etcd_watch::next() {
    const auto text = co_await next_line();
    if (!text) {
        if (text.error().kind == etcd_fault::unreachable) client_.note_failure(at_);
        co_return std::unexpected(text.error());
    }
    auto line = read_etcd_watch_line(*text);
    if (line && line->is_canceled) {
        const bool is_denied = line->cancel_reason.contains("permission denied");
        const std::string why =
            line->cancel_reason.empty() ? "" : ": " + printable(line->cancel_reason, 300);
        co_return problem_of(is_denied ? etcd_fault::denied : etcd_fault::compacted,
                             fmt::format("{} ended the watch{}", client_.name_of(at_), why));
    }
    if (line) {
        auto same = client_.note_cluster(at_, line->header.cluster_id);
        if (!same) co_return std::unexpected(std::move(same.error()));
        co_return std::move(*line);
    }
    if (const auto failure = read_etcd_failure(*text)) {
        etcd_problem problem = client_.refused(at_, *failure);
        if (problem.kind == etcd_fault::unreachable) client_.note_failure(at_);
        co_return std::unexpected(std::move(problem));
    }
    client_.note_failure(at_);
    co_return problem_of(etcd_fault::unreachable,
                         fmt::format("{} sends a watch that cannot be read", client_.name_of(at_)));
}

}  // namespace eddy::cluster
