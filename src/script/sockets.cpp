// Connections of scripts: what their functions do, and the ones that are kept.
#include "script/sockets.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/timeout.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/net/udp.hpp>
#include <eddy/net/unix.hpp>
#include <eddy/transport/transport.hpp>

#include "base/sha1.hpp"
#include "base/text/base64.hpp"
#include "script/waiting_bytes.hpp"
#include "transport/digest.hpp"
#include "transport/secure.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

namespace eddy::script {
namespace {

using socket_pointer = std::shared_ptr<script_socket>;

/// Time between two looks at kept connections, while there are some.
constexpr duration look_interval = std::chrono::seconds(1);
constexpr std::string_view unix_prefix = "unix:";
/// Bytes of work that invocation::count() takes as a step.
constexpr std::size_t sha1_bytes_a_step = 4;
constexpr std::size_t md5_bytes_a_step = 8;
constexpr std::size_t base64_bytes_a_step = 8;

/// A failure as OpenResty has it: nil, a word or two, and what had come.
values failed(std::string why, std::string partial) {
    return values_of(value(), std::move(why), std::move(partial));
}
values failed(std::string why) { return values_of(value(), std::move(why)); }

/// The words that drivers compare with, else the system's in lower case.
std::string reason(std::error_code error) {
    if (error == errc::timed_out) return "timeout";
    // Cancelled: by another callback's close(); of a call that ends nothing reads the reason.
    if (error == errc::end_of_stream || error == errc::truncated || error == errc::closed ||
        error == errc::cancelled)
        return "closed";
    std::string text = error.message();
    if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && text[1] >= 'a')
        text[0] = static_cast<char>(text[0] - 'A' + 'a');
    return text;
}

/// Sets a flag while a function waits, so that a second one does not.
class busy_mark {
public:
    explicit busy_mark(bool& of) noexcept : of_(of) {
        EDDY_ASSERT(!of);
        of_ = true;
    }
    busy_mark(const busy_mark&) = delete;
    busy_mark& operator=(const busy_mark&) = delete;
    ~busy_mark() { of_ = false; }

private:
    bool& of_;
};

// --- Connecting
// -----------------------------------------------------------------------------------

task<result<>> open(script_socket& into) {
    EDDY_ASSERT(!into.is_connected && !into.peer && !into.messages);
    if (into.is_datagram) {
        udp::connect_options options;
        options.timeout = into.connect_time;
        auto made = co_await udp::connect(into.host, into.port, options);
        if (!made) co_return fail(made.error());
        into.messages = std::move(*made);
        co_return result<>();
    }
    result<stream> made;
    if (into.host.starts_with(unix_prefix)) {
        made = co_await with_timeout(into.connect_time,
                                     unix_socket::connect(into.host.substr(unix_prefix.size())));
    } else {
        tcp::connect_options options;
        options.timeout = into.connect_time;
        made = co_await tcp::connect(into.host, into.port, options);
    }
    if (!made) co_return fail(made.error());
    into.peer = std::move(*made);
    co_return result<>();
}

/// Lets close() end a wait that has no connection yet, or has none for a while.
class closing_source {
public:
    closing_source(script_socket& of, cancel_source* parent) noexcept : of_(of), source_(parent) {
        EDDY_ASSERT(of.closing == nullptr);
        of.closing = &source_;
    }
    closing_source(const closing_source&) = delete;
    closing_source& operator=(const closing_source&) = delete;
    ~closing_source() { of_.closing = nullptr; }

    cancel_source& source() noexcept { return source_; }

private:
    script_socket& of_;
    cancel_source source_;
};

task<function_result> connect(socket_pointer socket) {
    const busy_mark mark(socket->is_connecting);
    EDDY_ASSERT(!socket->is_connected);
    closing_source closing(*socket, co_await current_source());
    const auto opened = co_await open(*socket).under(closing.source());
    if (opened && closing.source().requested()) socket->close();
    if (closing.source().requested()) co_return failed("closed");
    if (!opened) co_return failed(reason(opened.error()));
    socket->is_connected = true;
    co_return values_of(1);
}

task<function_result> secure(socket_pointer socket, std::string name, bool verifies) {
    EDDY_ASSERT(socket->is_connected && socket->received.empty());
    const busy_mark mark(socket->is_connecting);
    transport::address where;
    where.kind = transport::scheme::tls;
    where.host = std::move(name);
    where.port = socket->port;
    where.tls.verify = verifies ? "" : "none";
    closing_source closing(*socket, co_await current_source());
    auto made =
        co_await transport::secure(std::move(socket->peer), std::move(where), socket->connect_time)
            .under(closing.source());
    if (!made || closing.source().requested()) {
        socket->close();
        co_return failed(made ? "closed" : reason(made.error()));
    }
    socket->peer = std::move(*made);
    co_return values_of(true);
}

// --- Sending and receiving
// ------------------------------------------------------------------------

task<result<>> write_all(script_socket& to, std::string_view text) {
    co_return co_await to.peer.write_all(as_bytes(text));
}

/// `rest` is what is left of a text of `size` bytes.
task<function_result> send(socket_pointer socket, std::string rest, std::size_t size,
                           std::unique_ptr<waiting_bytes> /*held*/) {
    EDDY_ASSERT(!rest.empty() && rest.size() <= size);
    const busy_mark mark(socket->is_sending);
    const auto written = co_await with_timeout(socket->send_time, write_all(*socket, rest));
    if (written) co_return values_of(size);
    // It is unknown how much went.
    socket->close();
    co_return failed(reason(written.error()));
}

task<result<>> receive_more(script_socket& from) {
    auto got = co_await from.peer.read();
    if (!got) co_return fail(got.error());
    EDDY_ASSERT(got->size() > 0);
    from.received.append(got->text());
    co_return result<>();
}

/// Text that a function waits for, and how it is taken from the received bytes.
struct wanted {
    enum class kind : std::uint8_t { size, any, line, all, until };
    kind what = kind::any;
    std::size_t size = 0;       // of `size` and `any`; of `until`, 0: as much as comes
    std::string pattern = {};   // of `until`
    bool is_inclusive = false;  // of `until`
    std::size_t searched = 0;   // bytes at the start without an end
};

values taken(script_socket& from, std::size_t size, std::size_t dropped = 0) {
    EDDY_ASSERT(size + dropped <= from.received.size());
    std::string text = from.received.substr(0, size);
    from.received.erase(0, size + dropped);
    return values_of(std::move(text));
}

std::optional<values> take_until(script_socket& from, wanted& what) {
    EDDY_ASSERT(!what.pattern.empty());
    const std::size_t found = from.received.find(what.pattern, what.searched);
    if (found == std::string::npos) {
        // A pattern may have begun at the end.
        const std::size_t ready =
            from.received.size() - std::min(from.received.size(), what.pattern.size() - 1);
        what.searched = ready;
        if (what.size == 0 || ready < what.size) return std::nullopt;
        return taken(from, what.size);
    }
    if (what.is_inclusive && (what.size == 0 || found + what.pattern.size() <= what.size))
        return taken(from, found + what.pattern.size());
    if (what.size == 0) return taken(from, found, what.pattern.size());
    if (found > 0) return taken(from, std::min(found, what.size));
    if (what.is_inclusive) return taken(from, what.size);
    from.received.erase(0, what.pattern.size());
    return values_of(value(), value(), value());
}

std::optional<values> take(script_socket& from, wanted& what) {
    std::string& kept = from.received;
    switch (what.what) {
        case wanted::kind::size:
            if (kept.size() < what.size) return std::nullopt;
            return taken(from, what.size);
        case wanted::kind::any:
            if (kept.empty()) return std::nullopt;
            return taken(from, std::min(what.size, kept.size()));
        case wanted::kind::line: {
            const std::size_t end = kept.find('\n', what.searched);
            what.searched = kept.size();
            if (end == std::string::npos) return std::nullopt;
            std::string line = kept.substr(0, end);
            kept.erase(0, end + 1);
            std::erase(line, '\r');
            return values_of(std::move(line));
        }
        case wanted::kind::all: return std::nullopt;
        case wanted::kind::until: return take_until(from, what);
    }
    return std::nullopt;
}

task<function_result> receive(socket_pointer socket, wanted what, std::size_t most,
                              std::unique_ptr<waiting_bytes> held) {
    const busy_mark mark(socket->is_receiving);
    const time_point ends = loop::current().after(socket->receive_time);
    for (;;) {
        if (auto found = take(*socket, what)) co_return std::move(*found);
        if (socket->received.size() > most || !held->set(socket->received.size())) {
            socket->close();
            co_return failed("too large");
        }
        const auto more = co_await with_deadline(ends, receive_more(*socket));
        if (more) continue;
        std::string partial = std::exchange(socket->received, {});
        // After a time-out more may still come.
        if (more.error() != errc::timed_out) socket->close();
        if (what.what == wanted::kind::all && more.error() == errc::end_of_stream)
            co_return values_of(std::move(partial));
        co_return failed(reason(more.error()), std::move(partial));
    }
}

task<result<std::string>> next_message(script_socket& from, std::size_t most) {
    auto got = co_await from.messages.receive();
    if (!got) co_return fail(got.error());
    co_return std::string(got->payload.text().substr(0, most));
}

task<function_result> receive_message(socket_pointer socket, std::size_t most) {
    EDDY_ASSERT(socket->is_datagram && most > 0);
    const busy_mark mark(socket->is_receiving);
    auto got = co_await with_timeout(socket->receive_time, next_message(*socket, most));
    if (!got) co_return failed(reason(got.error()));
    co_return values_of(std::move(*got));
}

duration milliseconds_of(double count, duration usual) noexcept {
    using milliseconds = std::chrono::duration<double, std::milli>;
    constexpr double most = 24.0 * 3600 * 1000;
    if (!(count > 0)) return usual;
    return std::chrono::duration_cast<duration>(milliseconds(std::min(count, most)));
}

std::size_t size_of(double number, std::size_t most) noexcept {
    if (!(number > 0)) return 0;
    return number >= static_cast<double>(most) ? most : static_cast<std::size_t>(number);
}

}  // namespace

void script_socket::close() noexcept {
    if (closing != nullptr && !closing->requested()) closing->request();
    peer.close();
    messages.close();
    is_connected = false;
    received = {};
}

/// The rows' code. `id` is their first argument.
struct socket_functions {
    static sockets& of(const invocation& from) noexcept { return from.context<sockets>(); }
    static socket_pointer found(const invocation& from) noexcept {
        return of(from).find(from.number(1));
    }

    static std::unique_ptr<waiting_bytes> hold(const invocation& from) {
        sockets& all = of(from);
        return std::make_unique<waiting_bytes>(all.waiting_, all.limits_.waiting);
    }

    static answer make(invocation& from) {
        sockets& all = of(from);
        if (all.count() >= all.limits_.sockets && !all.kept_.empty()) all.kept_.pop_front();
        if (all.count() >= all.limits_.sockets) return failed("too many sockets");
        auto made = std::make_shared<script_socket>(all.limits_.timeout);
        made->is_datagram = from.boolean(1);
        made->owner = from.caller();
        all.open_.emplace(++all.last_id_, std::move(made));
        return values_of(all.last_id_);
    }

    static answer begin_connect(invocation& from) {
        const socket_pointer socket = found(from);
        if (!socket) return failed("closed");
        if (is_busy(*socket)) return failed("socket busy");
        const double port = from.has(3) ? from.number(3) : 0;
        if (!(port >= 0 && port <= 65535)) return failed("bad port number");
        socket->close();
        socket->owner = from.caller();
        socket->host = from.text(2);
        socket->port = static_cast<std::uint16_t>(port);
        socket->uses = 0;
        socket->name = from.has(4) ? std::string(from.text(4))
                                   : socket->host + ":" + std::to_string(socket->port);
        if (!socket->is_datagram && of(from).take_kept(*socket)) return values_of(1);
        return connect(socket);
    }

    static answer begin_secure(invocation& from) {
        const socket_pointer socket = found(from);
        if (!socket || !socket->is_connected || socket->is_datagram) return failed("closed");
        if (is_busy(*socket)) return failed("socket busy");
        if (!socket->received.empty()) return failed("unread data in buffer");
        if (transport::is_secure(socket->peer)) return values_of(true);
        std::string name(from.has(2) ? from.text(2) : socket->host);
        return secure(socket, std::move(name), from.boolean(3));
    }

    static answer begin_send(invocation& from) {
        const socket_pointer socket = found(from);
        if (!socket || !socket->is_connected) return failed("closed");
        if (socket->is_sending) return failed("socket busy writing");
        const std::string_view text = from.text(2);
        if (socket->is_datagram) return send_message(*socket, text);
        const auto sent = socket->peer.try_write(as_bytes(text));
        if (!sent) {
            socket->close();
            return failed(reason(sent.error()));
        }
        if (*sent == text.size()) return values_of(text.size());
        const std::string_view rest = text.substr(*sent);
        auto held = hold(from);
        if (!held->set(rest.size())) {
            socket->close();
            return failed("too much waits to be sent");
        }
        return send(socket, std::string(rest), text.size(), std::move(held));
    }

    static answer send_message(script_socket& to, std::string_view text) {
        const auto sent = to.messages.send_to(as_bytes(text), endpoint());
        if (!sent) return failed(reason(sent.error()));
        return values_of(text.size());
    }

    /// receive(id, size or "*l" or "*a"), receive_any(id, size), receive_until(id, pattern,
    /// inclusive, size).
    static answer begin_receive(const invocation& from, wanted what) {
        const socket_pointer socket = found(from);
        if (!socket || !socket->is_connected) return failed("closed");
        if (socket->is_receiving) return failed("socket busy reading");
        if (auto there = take(*socket, what)) return std::move(*there);
        return receive(socket, std::move(what), of(from).limits_.received, hold(from));
    }
    static answer begin_line(invocation& from) {
        return begin_receive(from, {.what = wanted::kind::line});
    }
    static answer begin_all(invocation& from) {
        return begin_receive(from, {.what = wanted::kind::all});
    }
    static answer begin_size(invocation& from) {
        const double size = from.number(2);
        if (!(size >= 0 && size <= static_cast<double>(of(from).limits_.received)))
            return answer::misused("a size is from 0 to " +
                                   std::to_string(of(from).limits_.received));
        return begin_receive(from,
                             {.what = wanted::kind::size, .size = static_cast<std::size_t>(size)});
    }
    static answer begin_any(invocation& from) {
        const std::size_t most = std::max<std::size_t>(1, size_of(from.number(2), 1 << 20));
        const socket_pointer socket = found(from);
        if (!socket || !socket->is_datagram)
            return begin_receive(from, {.what = wanted::kind::any, .size = most});
        if (!socket->is_connected) return failed("closed");
        if (socket->is_receiving) return failed("socket busy reading");
        return receive_message(socket, most);
    }
    static answer begin_until(invocation& from) {
        if (from.text(2).empty()) return answer::misused("a pattern is not empty");
        return begin_receive(from, {.what = wanted::kind::until,
                                    .size = from.has(4) ? size_of(from.number(4), 1 << 20) : 0,
                                    .pattern = std::string(from.text(2)),
                                    .is_inclusive = from.boolean(3)});
    }

    static answer set_timeouts(invocation& from) {
        const socket_pointer socket = found(from);
        if (!socket) return {};
        const duration usual = of(from).limits_.timeout;
        socket->connect_time = milliseconds_of(from.number(2), usual);
        socket->send_time = milliseconds_of(from.number(3), usual);
        socket->receive_time = milliseconds_of(from.number(4), usual);
        return {};
    }

    static answer set_keepalive(invocation& from) {
        const socket_pointer socket = found(from);
        if (!socket || !socket->is_connected || socket->is_datagram) return failed("closed");
        if (is_busy(*socket)) return failed("socket busy");
        if (!socket->received.empty()) return failed("unread data in buffer");
        sockets& all = of(from);
        const double time = from.has(2) ? from.number(2) : 0;
        const std::size_t most = from.has(3) ? size_of(from.number(3), all.limits_.sockets) : 0;
        all.keep(socket, milliseconds_of(time, all.limits_.timeout),
                 most == 0 ? all.limits_.kept : most);
        return values_of(1);
    }

    static answer count_uses(invocation& from) {
        const socket_pointer socket = found(from);
        if (!socket || !socket->is_connected) return failed("closed");
        return values_of(socket->uses);
    }

    static answer close(invocation& from) {
        const socket_pointer socket = found(from);
        if (!socket || (!socket->is_connected && !socket->is_connecting)) return failed("closed");
        socket->close();
        return values_of(1);
    }
    static answer forget(invocation& from) {
        const socket_pointer socket = found(from);
        if (!socket) return {};
        socket->close();
        of(from).open_.erase(static_cast<std::uint64_t>(from.number(1)));
        return {};
    }

    static answer sha1_of(invocation& from) {
        from.count(from.text(1).size() / sha1_bytes_a_step);
        const sha1_digest digest = sha1(from.text(1));
        return values_of(std::string(digest.begin(), digest.end()));
    }
    static answer base64_of(invocation& from) {
        from.count(from.text(1).size() / base64_bytes_a_step);
        return values_of(base64(from.text(1)));
    }
    static answer bytes_of(invocation& from) {
        from.count(from.text(1).size() / base64_bytes_a_step);
        if (auto bytes = bytes_of_base64(from.text(1))) return values_of(std::move(*bytes));
        return values_of(value());
    }
    static answer md5_of(invocation& from) {
        from.count(from.text(1).size() / md5_bytes_a_step);
        if (auto digest = transport::md5(from.text(1))) return values_of(std::move(*digest));
        return answer::failed("there is no MD5 here: it needs a build with TLS, by OpenSSL");
    }
    static answer now(invocation&) {
        const auto time = std::chrono::system_clock::now().time_since_epoch();
        return values_of(std::chrono::duration<double>(time).count());
    }

    static bool is_busy(const script_socket& of) noexcept {
        return of.is_connecting || of.is_sending || of.is_receiving;
    }
};

namespace {

using code = socket_functions;
constexpr argument socket_number{.name = "socket", .kind = argument_kind::number};
constexpr argument some_text{.name = "text", .kind = argument_kind::text};
constexpr argument some_size{.name = "size", .kind = argument_kind::number};

constexpr argument optional(std::string_view called, argument_kind kind) {
    return {.name = called, .kind = kind, .is_optional = true};
}

constexpr auto flag = argument_kind::boolean;
constexpr auto number = argument_kind::number;

constexpr library_function rows[] = {
    {.name = "make",
     .arguments = {{optional("is_datagram", flag)}},
     .takes = "whether it is for UDP",
     .help = "Makes a socket, and returns its number.",
     .run = code::make},
    {.name = "connect",
     .arguments = {{socket_number,
                    {.name = "host", .kind = argument_kind::text},
                    optional("port", number),
                    optional("name", argument_kind::text)}},
     .takes = "a socket, a host and a port, and the name of a pool",
     .help = "Connects, or takes a kept connection.",
     .waits = true,
     .run = code::begin_connect},
    {.name = "secure",
     .arguments = {{socket_number, optional("name", argument_kind::text),
                    optional("verify", flag)}},
     .takes = "a socket, the name of the server, and whether it is verified",
     .help = "Makes the handshake of TLS.",
     .waits = true,
     .run = code::begin_secure},
    {.name = "send",
     .arguments = {{socket_number, some_text}},
     .takes = "a socket and a text",
     .help = "Sends the text.",
     .waits = true,
     .run = code::begin_send},
    {.name = "receive_line",
     .arguments = {{socket_number}},
     .takes = "a socket",
     .help = "Receives a line.",
     .waits = true,
     .run = code::begin_line},
    {.name = "receive_all",
     .arguments = {{socket_number}},
     .takes = "a socket",
     .help = "Receives all until the peer ends.",
     .waits = true,
     .run = code::begin_all},
    {.name = "receive_size",
     .arguments = {{socket_number, some_size}},
     .takes = "a socket and a size",
     .help = "Receives so many bytes.",
     .waits = true,
     .run = code::begin_size},
    {.name = "receive_any",
     .arguments = {{socket_number, some_size}},
     .takes = "a socket and a size",
     .help = "Receives what comes, at most so many bytes.",
     .waits = true,
     .run = code::begin_any},
    {.name = "receive_until",
     .arguments = {{socket_number, some_text, optional("inclusive", flag),
                    optional("size", number)}},
     .takes = "a socket, a text, whether it is part of the result, and a size",
     .help = "Receives up to a text.",
     .waits = true,
     .run = code::begin_until},
    {.name = "set_timeouts",
     .arguments = {{socket_number,
                    {.name = "connect", .kind = number},
                    {.name = "send", .kind = number},
                    {.name = "receive", .kind = number}}},
     .takes = "a socket and three times in milliseconds",
     .help = "Sets how long functions wait.",
     .run = code::set_timeouts},
    {.name = "set_keepalive",
     .arguments = {{socket_number, optional("time", number), optional("most", number)}},
     .takes = "a socket, a time in milliseconds, and a number of connections",
     .help = "Keeps the connection for a later connect().",
     .run = code::set_keepalive},
    {.name = "uses",
     .arguments = {{socket_number}},
     .takes = "a socket",
     .help = "How often its connection was kept before.",
     .run = code::count_uses},
    {.name = "close",
     .arguments = {{socket_number}},
     .takes = "a socket",
     .help = "Closes its connection; what waits for it fails.",
     .run = code::close},
    {.name = "forget",
     .arguments = {{socket_number}},
     .takes = "a socket",
     .help = "Frees the socket.",
     .run = code::forget},
    {.name = "sha1",
     .arguments = {{some_text}},
     .takes = "a text",
     .help = "The text's SHA-1, 20 bytes.",
     .run = code::sha1_of},
    {.name = "base64",
     .arguments = {{some_text}},
     .takes = "a text",
     .help = "The text in base64.",
     .run = code::base64_of},
    {.name = "unbase64",
     .arguments = {{some_text}},
     .takes = "a text",
     .help = "The bytes of a text in base64, or nil.",
     .run = code::bytes_of},
    {.name = "md5",
     .arguments = {{some_text}},
     .takes = "a text",
     .help = "The text's MD5, 16 bytes.",
     .run = code::md5_of},
    {.name = "now", .help = "Seconds since 1970.", .run = code::now},
};

}  // namespace

sockets::~sockets() {
    if (armed()) loop::current().disarm(*this);
    for (auto& each : open_) each.second->close();
}

library sockets::functions() noexcept {
    return {.name = "sockets",
            .functions = rows,
            .context = this,
            .ended = [](void* self, const call& of) noexcept {
                static_cast<sockets*>(self)->close_of(of);
            }};
}

sockets::socket_pointer sockets::find(double id) const noexcept {
    if (!(id >= 1 && id <= static_cast<double>(last_id_))) return nullptr;
    const auto at = open_.find(static_cast<std::uint64_t>(id));
    return at == open_.end() ? nullptr : at->second;
}

bool sockets::has_ended(const kept_socket& which) noexcept {
    const stream& peer = which.socket->peer;
    if (which.shows_input) return peer.may_have_input();
    if (peer.native_handle() < 0 || transport::is_secure(peer)) return false;
    char byte = 0;
    const ssize_t got = ::recv(peer.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got >= 0 || (errno != EAGAIN && errno != EINTR);
}

/// The one of that name that was kept last.
bool sockets::take_kept(script_socket& into) {
    EDDY_ASSERT(!into.is_connected && !into.is_datagram);
    for (auto at = kept_.end(); at != kept_.begin();) {
        --at;
        if (at->socket->name != into.name) continue;
        const bool is_over = at->ends <= loop::current().now() || has_ended(*at);
        if (!is_over) {
            into.peer = std::move(at->socket->peer);
            into.uses = at->socket->uses + 1;
            into.is_connected = true;
        }
        at = kept_.erase(at);
        if (!is_over) return true;
    }
    return false;
}

void sockets::keep(const socket_pointer& which, duration time, std::size_t most) {
    EDDY_ASSERT(which->is_connected && which->received.empty() && most > 0);
    const auto is_named = [&](const kept_socket& each) { return each.socket->name == which->name; };
    if (static_cast<std::size_t>(std::ranges::count_if(kept_, is_named)) >= most)
        kept_.erase(std::ranges::find_if(kept_, is_named));
    auto kept = std::make_shared<script_socket>(limits_.timeout);
    kept->name = which->name;
    kept->uses = which->uses;
    kept->peer = std::move(which->peer);
    const bool shows_input = !kept->peer.may_have_input();
    kept_.push_back({std::move(kept), loop::current().after(time), shows_input});
    which->close();
    arm();
}

void sockets::close_of(const call& of) noexcept {
    if (open_.empty()) return;
    std::erase_if(open_, [&of](const auto& each) {
        if (each.second->owner != &of) return false;
        each.second->close();
        return true;
    });
}

void sockets::arm() noexcept {
    if (!armed() && !kept_.empty())
        loop::current().arm(*this, loop::current().after(look_interval));
}

void sockets::fire() noexcept {
    EDDY_ASSERT(!armed());
    const time_point now = loop::current().now();
    kept_.remove_if([now](const kept_socket& each) { return each.ends <= now || has_ended(each); });
    arm();
}

}  // namespace eddy::script
