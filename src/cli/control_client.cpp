// One exchange with the daemon.
#include "cli/control_client.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/endpoint.hpp>
#include <eddy/net/unix.hpp>
#include <eddy/wire/http1.hpp>

#include "base/private_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace eddy::cli {
namespace {

/// The folder of a socket's file; of an abstract name, which is in none, empty.
std::string folder_of(const std::string& socket) {
    if (socket.starts_with('@')) return {};
    return std::filesystem::absolute(socket).lexically_normal().parent_path().string();
}

}  // namespace

std::expected<control_answer, unreachable> control_client::ask(control_request request) {
    return follow(std::move(request), nullptr);
}

std::expected<loop*, unreachable> control_client::own_loop() {
    if (loop_) return loop_.get();
    // A short command needs none of io_uring's speed and all of epoll's quick start.
    loop_options options;
    options.kind = backend_kind::epoll;
    auto made = loop::create(options);
    if (!made)
        return std::unexpected(
            unreachable{fmt::format("could not make an event loop: {}", made.error().message())});
    loop_ = std::move(*made);
    return loop_.get();
}

std::expected<control_answer, unreachable> control_client::follow(control_request request,
                                                                  body_sink sink) {
    auto here = own_loop();
    if (!here) return std::unexpected(std::move(here.error()));
    auto answer = (*here)->run(exchange(std::move(request), std::move(sink)));
    if (!answer) return std::unexpected(unreachable{explain(answer.error())});
    return std::move(*answer);
}

task<result<control_answer>> control_client::exchange(control_request request, body_sink sink) {
    const auto address = endpoint::unix_path(socket_path_);
    if (!address) co_return fail(address.error());
    const std::string folder = own_folder_in_tmp();
    if ((folder_of(socket_path_) + "/").starts_with(folder + "/")) {
        if (const std::string fault = private_folder_fault(folder); !fault.empty()) {
            distrust_ = fmt::format(
                "the folder {} {}, so the socket in it may be another user's trap. Remove it, or "
                "name the daemon's socket with --socket or EDDY_SOCKET",
                folder, fault);
            co_return fail(errno_code(EPERM));
        }
    }
    auto connected = co_await loop::current().connect(*address);
    if (!connected) co_return fail(connected.error());
    stream daemon = std::move(*connected);
    if (!is_trusted(daemon)) co_return fail(errno_code(EPERM));

    byte_buffer out;
    http1::head_writer writer(out);
    writer.request(request.method, request.target).field("Host", "eddy");
    writer.field("Connection", "close");
    if (!request.body.empty()) writer.field("Content-Type", request.content_type);
    const auto written = writer.end(request.body.empty() && request.method == "GET"
                                        ? http1::body_framing::none()
                                        : http1::body_framing::sized(request.body.size()));
    if (!written) co_return fail(written.error());
    out.append(request.body);
    // A daemon that refuses a request early closes before it has read all of it; its answer is
    // there to read all the same.
    const auto sent = co_await daemon.write_all(out.bytes());

    http1::limits limits;
    limits.body = UINT64_MAX;
    http1::response_parser parser(limits);
    parser.expect_response_to(request.method);
    control_answer answer;
    byte_buffer in;
    for (;;) {
        const http1::step step = parser.parse(in.text());
        if (step.what == http1::event::body) {
            const bool streamed = sink && answer.status / 100 == 2;
            if (streamed && !sink(step.body)) co_return answer;
            if (!streamed && answer.body.size() + step.body.size() > answer_limit)
                co_return fail(errc::limit_reached);
            if (!streamed) answer.body += step.body;
        }
        if (step.what == http1::event::head) answer.status = parser.head().status;
        in.consume(step.consumed);
        if (step.what == http1::event::error) co_return fail(errc::malformed);
        if (step.what == http1::event::end) {
            if (answer.status >= 200) co_return answer;
            answer = {};
        }
        if (step.what != http1::event::need_more) continue;

        auto received = co_await daemon.read();
        if (received) {
            in.append(received->bytes());
            continue;
        }
        if (received.error() == errc::end_of_stream && parser.finish() == http1::event::end)
            co_return answer;
        if (!sent) co_return fail(sent.error());
        co_return fail(received.error());
    }
}

bool control_client::is_trusted(const stream& daemon) {
    const auto peer = unix_socket::peer_credentials(daemon);
    const uid_t own = ::geteuid();
    if (peer && (peer->uid == own || peer->uid == 0)) return true;
    struct stat folder{};
    if (peer && own == 0 && ::stat(folder_of(socket_path_).c_str(), &folder) == 0 &&
        folder.st_uid == peer->uid)
        return true;
    distrust_ = fmt::format(
        "what listens on {} runs as {}, not as you (user id {}) or root{}: nothing was sent to it. "
        "Run this as its user, or name the socket of your own daemon with --socket or EDDY_SOCKET",
        socket_path_, peer ? fmt::format("user id {}", peer->uid) : "an unknown user", own,
        own == 0 ? ", nor as the owner of the folder" : "");
    return false;
}

std::string control_client::explain(std::error_code error) const {
    if (error == std::errc::operation_not_permitted && !distrust_.empty()) return distrust_;
    if (error == std::errc::no_such_file_or_directory || error == std::errc::connection_refused)
        return fmt::format("the daemon is not running at {}. Start it with: eddy daemon",
                           socket_path_);
    if (error == std::errc::permission_denied)
        return fmt::format(
            "no permission to use the daemon's socket {}. Run this as the user who "
            "started the daemon, or as root",
            socket_path_);
    if (error == errc::bad_address)
        return fmt::format("\"{}\" cannot be a socket's path: use at most 107 bytes", socket_path_);
    if (error == errc::malformed)
        return fmt::format("what listens on {} is not an Eddy daemon: it does not speak HTTP",
                           socket_path_);
    if (error == errc::limit_reached)
        return fmt::format(
            "the answer of what listens on {} is over {} bytes; is it an Eddy daemon?",
            socket_path_, answer_limit);
    if (error == errc::end_of_stream || error == std::errc::connection_reset ||
        error == std::errc::broken_pipe)
        return fmt::format(
            "the daemon at {} closed the connection before it answered; its log may "
            "say why",
            socket_path_);
    return fmt::format("could not talk to the daemon at {}: {}", socket_path_, error.message());
}

}  // namespace eddy::cli
