// Requests of a pool: their route, fields and redirects, and the responses.
#include <eddy/http/client_pool.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/http/cookie_jar.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "http/agent/exchange.hpp"
#include "http/agent/proxies.hpp"
#include "http/agent/url.hpp"
#include "http/alpn.hpp"
#include "http/client/connection_pool.hpp"
#include "http/client/plan.hpp"
#include "http/codings/decoding_reader.hpp"
#include "http/fields/content_coding.hpp"
#include "http/fields/http_date.hpp"
#include "transport/secure.hpp"

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {
namespace {

/// Path to a URL's server: the first hop, the proxy, the server itself.
struct path_to {
    transport::address first;  // tcp or unix
    std::optional<url> proxy;
    url server;
    std::string variant;  // the rest of another first address, by which connections differ

    bool is_forwarded() const noexcept { return proxy && !server.is_secure; }
    /// Key of the connections along this path; a view of it.
    connection_key key() const {
        connection_key made;
        made.kind = first.kind;
        made.place = first.path.empty() ? first.host : first.path;
        made.port = first.port;
        made.variant = variant;
        if (proxy) {
            made.through =
                proxy->is_secure ? connection_key::proxy::https : connection_key::proxy::http;
            made.proxy_user = proxy->user;
        }
        made.is_secure = server.is_secure;
        if (server.is_secure) {
            made.server = server.host;
            made.server_port = server.port;
        }
        return made;
    }
};

transport::address address_of(const url& server) {
    transport::address made;
    made.host = server.host;
    made.port = server.port;
    return made;
}

/// The same with TLS.
transport::address secure_address_of(const url& server, transport::tls_parameters files) {
    transport::address made = address_of(server);
    made.kind = transport::scheme::tls;
    made.tls = std::move(files);
    offer_by_alpn(made);
    return made;
}

task<result<stream>> open_path(path_to path, std::shared_ptr<const client_pool_options> options) {
    auto opened = co_await transport::connect(path.first, options->connect);
    if (!opened) co_return opened;
    if (path.proxy && path.proxy->is_secure) {
        opened = co_await transport::secure(std::move(*opened),
                                            secure_address_of(*path.proxy, options->tls),
                                            options->handshake_time);
        if (!opened) co_return opened;
    }
    if (!path.server.is_secure) co_return opened;
    if (path.proxy) {
        const auto tunnel = co_await with_timeout(
            options->handshake_time, open_tunnel(*opened, path.server, path.proxy->user));
        if (!tunnel) co_return fail(tunnel.error());
    }
    co_return co_await transport::secure(
        std::move(*opened), secure_address_of(path.server, options->tls), options->handshake_time);
}

bool is_redirect(int status) noexcept {
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

void remove_all(http1::header_list& from, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) from.remove(name);
}

/// Changes a request, and its URL, to what a redirect of this status asks for.
void follow_redirect(pool_request& request, url& at, url onward, int status) {
    const bool becomes_get =
        (status == 303 && request.method != "GET" && request.method != "HEAD") ||
        (status < 303 && request.method == "POST");
    if (becomes_get) {
        request.method = "GET";
        request.body = {};
        remove_all(request.headers, {"Content-Type", "Content-Encoding", "Content-Language",
                                     "Content-Location", "Expect"});
    }
    if (onward.has_origin_of(at)) {
        if (onward.user.empty()) onward.user = at.user;
    } else {
        remove_all(request.headers, {"Authorization", "Cookie", "Proxy-Authorization", "Host"});
        request.connect_to.reset();
    }
    at = std::move(onward);
}

/// As with_deadline(), but without a task that waits beside `work` where there is no deadline.
template <class T>
task<result<T>> within(time_point deadline, task<result<T>> work) {
    if (deadline == time_point::max()) return work;
    return with_deadline(deadline, std::move(work));
}

}  // namespace

/// Source of a response: its connection and decoded content. It is also the body's reader, with the
/// limit of the total time.
struct detail::pool_exchange final : body_reader {
    pool_exchange(connection_lease connection, client_response answered, time_point last) noexcept
        : held(std::move(connection)), answer(std::move(answered)), deadline(last) {}

    body_reader& from() const noexcept {
        if (decoded.empty()) return answer.body();
        return *decoded.back();
    }
    task<result<std::string_view>> read() override { return within(deadline, from().read()); }
    task<result<std::string>> whole(std::size_t limit) override {
        return within(deadline, from().whole(limit));
    }
    void set_limit(std::uint64_t bytes) noexcept override { from().set_limit(bytes); }
    std::uint64_t limit() const noexcept override { return from().limit(); }
    bool ended() const noexcept override { return from().ended(); }
    const http1::header_list& trailers() const noexcept override { return from().trailers(); }

    connection_lease held;
    client_response answer;
    std::vector<std::unique_ptr<decoding_reader>> decoded;  // each reads the one before
    time_point deadline;
};

struct detail::pool_state {
    explicit pool_state(client_pool_options given)
        : options(std::make_shared<const client_pool_options>(std::move(given))),
          connections(std::make_shared<connection_pool>(connection_pool::limits{
              options->host_connections, options->connections, options->waiting,
              options->waiting_time, options->limits.keep_time})) {}

    result<path_to> find_path(const url& to, const std::optional<transport::address>& fixed) const;
    client_request make_request(const pool_request& from, const path_to& path);
    void keep_cookies(const client_response& from, const url& of);
    task<result<connection_lease>> take(const url& to,
                                        const std::optional<transport::address>& fixed);
    task<result<client_response>> ask(const connection_lease& through, const url& at,
                                      std::unique_ptr<pool_request>& request);
    std::shared_ptr<const client_plan> make_plan(path_to path) const;
    result<pool_response> finish(connection_lease held, client_response answered, const url& of,
                                 bool decodes, time_point deadline) const;
    task<result<pool_response>> send(std::unique_ptr<pool_request> request);
    std::optional<url> next_url(const client_response& answered, const url& from,
                                const pool_request& request) const;

    std::shared_ptr<const client_pool_options> options;
    std::shared_ptr<connection_pool> connections;
    cookie_jar cookies;
};

result<path_to> detail::pool_state::find_path(
    const url& to, const std::optional<transport::address>& fixed) const {
    path_to path{{}, std::nullopt, to, {}};
    if (fixed) {
        path.first = *fixed;
        const auto kind = fixed->kind;
        if (kind != transport::scheme::tcp && kind != transport::scheme::unix_socket)
            path.variant = fixed->to_string();
        return path;
    }
    auto proxy = proxy_for(options->proxies, to);
    if (!proxy) return fail(proxy.error());
    path.proxy = std::move(*proxy);
    path.first = address_of(path.proxy ? *path.proxy : to);
    return path;
}

client_request detail::pool_state::make_request(const pool_request& from, const path_to& path) {
    const url& to = path.server;
    client_request made;
    made.method = from.method;
    made.target = path.is_forwarded() ? to.absolute_form() : to.target;
    made.headers = from.headers;
    made.may_repeat = from.may_repeat;
    const auto add = [&made](std::string_view name, const std::string& value) {
        if (!made.headers.contains(name)) static_cast<void>(made.headers.add(name, value));
    };
    add("Host", to.authority());
    if (!to.user.empty()) add("Authorization", basic_credentials(to.user));
    if (path.is_forwarded() && !path.proxy->user.empty())
        add("Proxy-Authorization", basic_credentials(path.proxy->user));
    if (options->decompress) add("Accept-Encoding", "gzip, deflate, br, zstd");
    if (options->cookies) {
        const std::string value =
            cookies.value_for(to.host, to.path(), to.is_secure, wall_clock_seconds());
        if (!value.empty()) add("Cookie", value);
    }
    return made;
}

void detail::pool_state::keep_cookies(const client_response& from, const url& of) {
    if (!options->cookies) return;
    for (const http1::header each : from.headers)
        if (http1::equal_ignoring_case(each.name, "Set-Cookie"))
            cookies.store(each.value, of.host, of.path(), of.is_secure, wall_clock_seconds());
}

task<result<connection_lease>> detail::pool_state::take(
    const url& to, const std::optional<transport::address>& fixed) {
    auto path = find_path(to, fixed);
    if (!path) co_return fail(path.error());
    pool_connection* taken = connections->try_take(path->key());
    if (taken == nullptr) {
        const auto waited = co_await connections->take(path->key());
        if (!waited) co_return fail(waited.error());
        taken = *waited;
    }
    connection_lease held(connections, *taken);
    if (!held->of.plan) held->of.plan = make_plan(std::move(*path));
    co_return std::move(held);
}

/// Plan of the connections along a path.
std::shared_ptr<const detail::client_plan> detail::pool_state::make_plan(path_to path) const {
    client_options each;
    each.limits = options->limits;
    // Target and user belong to one request, not to the path that later requests share.
    path.server.target = "/";
    path.server.user.clear();
    transport::address first = path.first;
    each.connector = [path = std::move(path), all = options] { return open_path(path, all); };
    return std::make_shared<const client_plan>(std::move(first), std::move(each));
}

/// The URL of the next request; none where the response is to be returned.
std::optional<url> detail::pool_state::next_url(const client_response& answered, const url& from,
                                                const pool_request& request) const {
    if (!is_redirect(answered.status)) return std::nullopt;
    const auto location = answered.headers.find("Location");
    if (!location) return std::nullopt;
    auto next = from.resolve(*location);
    if (!next) return std::nullopt;
    if (from.is_secure && !next->is_secure && !options->insecure_redirects) return std::nullopt;
    if (request.body.producer() && answered.status != 303) return std::nullopt;
    return std::move(*next);
}

result<pool_response> detail::pool_state::finish(connection_lease held, client_response answered,
                                                 const url& of, bool decodes,
                                                 time_point deadline) const {
    pool_response made;
    made.status = answered.status;
    made.headers = std::move(answered.headers);
    made.url = of.to_string();
    made.exchange_ =
        std::make_unique<pool_exchange>(std::move(held), std::move(answered), deadline);
    body_reader& plain = made.exchange_->answer.body();
    const coding_list codings = codings_of(made.headers);
    if (!decodes || !codings.is_known || codings.count == 0 || plain.ended()) return made;
    if (codings.count > most_stacked_codings) return fail(errc::unsupported);
    // The one that was applied last is removed first.
    auto& readers = made.exchange_->decoded;
    for (std::size_t left = codings.count; left > 0; --left) {
        auto by = decoder::make(codings.all[left - 1]);
        if (!by) return fail(by.error());
        readers.push_back(
            readers.empty()
                ? std::make_unique<decoding_reader>(plain, std::move(*by), options->expansion)
                : std::make_unique<decoding_reader>(*readers.back(), *readers.front(),
                                                    std::move(*by), options->expansion));
    }
    remove_all(made.headers, {"Content-Encoding", "Content-Length"});
    return made;
}

/// Sends a request, and frees what is not needed for a redirect. It is no coroutine: what it makes
/// is the task's that it returns, and goes with that.
task<result<client_response>> detail::pool_state::ask(const connection_lease& through,
                                                      const url& at,
                                                      std::unique_ptr<pool_request>& request) {
    // It was found before, to take the connection.
    const auto path = find_path(at, request->connect_to);
    EDDY_ASSERT(path);
    client_request next = make_request(*request, *path);
    if (request->body.producer() || options->redirects == 0)
        next.body = std::exchange(request->body, {});
    else
        next.body = request->body.text();
    if (options->redirects == 0) request.reset();
    return client_exchange::send(through->through, through->of.plan, std::move(next));
}

/// Its frame is there until the head of the response comes, for which a server may take long: it
/// holds little.
task<result<pool_response>> detail::pool_state::send(std::unique_ptr<pool_request> request) {
    const time_point deadline = loop::current().after(options->total_time);
    auto at = url::parse(request->url);
    if (!at) co_return fail(at.error());
    const bool decodes = options->decompress && !request->headers.contains("Accept-Encoding");
    const bool has_producer = request->body.producer() != nullptr;
    for (std::size_t followed = 0;;) {
        auto held = co_await within(deadline, take(*at, request->connect_to));
        if (!held) co_return fail(held.error());
        auto answered = co_await within(deadline, ask(*held, *at, request));
        if (!answered) co_return fail(answered.error());
        keep_cookies(*answered, *at);

        auto onward = request ? next_url(*answered, *at, *request) : std::nullopt;
        if (!onward || (has_producer && followed == 0 && answered->status != 303))
            co_return finish(std::move(*held), std::move(*answered), *at, decodes, deadline);
        if (++followed > options->redirects) co_return fail(errc::limit_reached);
        follow_redirect(*request, *at, std::move(*onward), answered->status);
    }
}

pool_response::pool_response() = default;
pool_response::pool_response(pool_response&&) noexcept = default;
pool_response& pool_response::operator=(pool_response&&) noexcept = default;
pool_response::~pool_response() = default;

body_reader& pool_response::body() const noexcept {
    EDDY_PRECONDITION(exchange_, "body() of a response that was moved from");
    return *exchange_;
}

client_pool::client_pool(client_pool_options options)
    : state_(std::make_shared<detail::pool_state>(std::move(options))) {}

client_pool::~client_pool() { close(); }

task<result<pool_response>> client_pool::send(pool_request request) {
    return state_->send(std::make_unique<pool_request>(std::move(request)));
}

task<result<pool_response>> client_pool::get(std::string url) {
    pool_request request;
    request.url = std::move(url);
    return send(std::move(request));
}

void client_pool::close() noexcept { state_->connections->close(); }

std::size_t client_pool::connections() const noexcept { return state_->connections->size(); }
std::size_t client_pool::idle_connections() const noexcept { return state_->connections->idle(); }
std::size_t client_pool::waiting() const noexcept { return state_->connections->waiting(); }

}  // namespace eddy::http
