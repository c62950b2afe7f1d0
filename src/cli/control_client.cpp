// One exchange with the daemon.
#include "cli/control_client.hpp"

#include <eddy/http/client.hpp>
#include <eddy/net/unix.hpp>
#include <eddy/transport/transport.hpp>

#include "base/files/private_folder.hpp"
#include "cli/local_path.hpp"
#include "io/posix/unix_listener.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <istream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cli {
namespace {

/// The folder of a socket's file; of an abstract name, which is in none, empty.
std::string folder_of(const std::string& socket) {
    if (socket.starts_with('@')) return {};
    // Without a working folder a relative path names nothing.
    const auto path = absolute_path(socket);
    return path ? path->substr(0, path->rfind('/')) : std::string();
}

/// A runtime takes as long to stop as its data to be written, and its journal may be silent for
/// days. A daemon that hangs is left with Ctrl-C.
http::client_options without_deadlines() {
    http::client_options options;
    options.connect.timeout = duration::max();
    options.limits.write_time = duration::max();
    options.limits.response_time = duration::max();
    options.limits.read_time = duration::max();
    return options;
}

bool is_lost_connection(std::error_code error) noexcept {
    return error == errc::end_of_stream || error == errc::truncated ||
           error == std::errc::connection_reset || error == std::errc::broken_pipe;
}

/// True for an error that means that nothing listens there.
bool is_absence(std::error_code error) noexcept {
    return error == std::errc::no_such_file_or_directory || error == std::errc::connection_refused;
}

/// errc::truncated for a connection that was lost within an answer; errc::end_of_stream is for one
/// that was lost before it.
std::unexpected<std::error_code> fail_within_answer(std::error_code error) {
    return fail(is_lost_connection(error) ? std::error_code(errc::truncated) : error);
}

/// "/run/NAME": made by root, or by the service manager for it, since no other may write to
/// /run.
bool is_folder_of_service(const std::string& path) {
    constexpr std::string_view place = "/run/";
    if (!path.starts_with(place) || path.find('/', place.size()) != std::string::npos) return false;
    const std::string_view name = std::string_view(path).substr(place.size());
    if (name.empty() || name == "." || name == "..") return false;
    struct stat run{};
    struct stat folder{};
    return ::lstat("/run", &run) == 0 && S_ISDIR(run.st_mode) && run.st_uid == 0 &&
           (run.st_mode & 022U) == 0 && ::lstat(path.c_str(), &folder) == 0 &&
           S_ISDIR(folder.st_mode);
}

/// Advice for users outside the group that may use the socket; empty without such a group.
std::string membership(const std::string& socket) {
    struct stat file{};
    if (::stat(socket.c_str(), &file) != 0 || (file.st_mode & 0020U) == 0) return {};
    group found{};
    group* result = nullptr;
    std::vector<char> room(64 * 1024);
    if (::getgrgid_r(file.st_gid, &found, room.data(), room.size(), &result) != 0 || !result)
        return {};
    return fmt::format("; or join its group (sudo usermod -aG {} $USER), and log in again",
                       found.gr_name);
}

}  // namespace

std::string usual_socket(const std::string& own, const std::string& system) {
    const bool is_absent = ::access(own.c_str(), F_OK) != 0 && errno == ENOENT;
    return is_absent && ::faccessat(AT_FDCWD, system.c_str(), W_OK, AT_EACCESS) == 0 ? system : own;
}

bool has_listener(std::istream& sockets, std::string_view path) {
    // Num RefCount Protocol Flags Type St Inode Path; __SO_ACCEPTCON is the flag of a listener.
    constexpr std::string_view listens = "00010000";
    const std::string bound = bound_name(path);
    for (std::string line; std::getline(sockets, line);) {
        if (!line.ends_with(path) && !line.ends_with(bound)) continue;
        std::istringstream words(line);
        std::string number, references, protocol, flags, type, state, inode, at;
        words >> number >> references >> protocol >> flags >> type >> state >> inode >> at;
        if (flags == listens && (at == path || at == bound)) return true;
    }
    return false;
}

std::expected<control_answer, unreachable> control_client::ask(control_request request) {
    return follow(std::move(request), nullptr);
}

std::expected<loop*, unreachable> control_client::own_loop() {
    if (loop_) return loop_.get();
    // A short command needs none of io_uring's speed and all of epoll's quick start.
    loop_options options;
    options.kind = io_backend_kind::epoll;
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
    if (!answer)
        return std::unexpected(unreachable{explain(answer.error()), is_absence(answer.error())});
    return std::move(*answer);
}

task<result<control_answer>> control_client::exchange(control_request request, body_sink sink) {
    const std::string folder = own_folder_in_tmp();
    if ((folder_of(socket_path_) + "/").starts_with(folder + "/")) {
        if (const std::string fault = private_folder_fault(folder); !fault.empty()) {
            distrust_ = fmt::format(
                "the folder {} {}, so another user may have put the socket there. Remove it, or "
                "name the daemon's socket with --socket or EDDY_SOCKET",
                folder, fault);
            co_return fail(errno_code(EPERM));
        }
    }
    transport::address address;
    address.kind = transport::scheme::unix_socket;
    address.path = socket_path_;
    http::client_options options = without_deadlines();
    options.check = [this](const stream& connected) -> result<> {
        if (!is_trusted(connected)) return fail(errno_code(EPERM));
        return {};
    };
    http::client daemon(std::move(address), std::move(options));

    http::client_request asked;
    asked.method = std::move(request.method);
    asked.target = std::move(request.target);
    result<> added = asked.headers.add("Host", "eddy");
    if (added) added = asked.headers.add("Connection", "close");
    if (added && !request.body.empty())
        added = asked.headers.add("Content-Type", request.content_type);
    if (!added) co_return fail(added.error());
    asked.body = std::move(request.body);
    auto answered = co_await daemon.send(std::move(asked));
    if (!answered)
        co_return fail(is_lost_connection(answered.error()) ? std::error_code(errc::end_of_stream)
                                                            : answered.error());

    control_answer answer;
    answer.status = answered->status;
    if (!sink || answer.status / 100 != 2) {
        auto text = co_await answered->body().whole(answer_limit);
        if (!text) co_return fail_within_answer(text.error());
        answer.body = std::move(*text);
        co_return answer;
    }
    if (!sink({})) co_return answer;
    for (;;) {
        auto piece = co_await answered->body().read();
        if (!piece && piece.error() == errc::end_of_stream) co_return answer;
        if (!piece) co_return fail_within_answer(piece.error());
        if (!sink(*piece)) co_return answer;
    }
}

bool control_client::is_trusted(const stream& daemon) {
    const auto peer = unix_socket::peer_credentials(daemon);
    const uid_t own = ::geteuid();
    if (peer && (peer->uid == own || peer->uid == 0)) return true;
    const std::string at = folder_of(socket_path_);
    struct stat folder{};
    if (peer && (own == 0 || is_folder_of_service(at)) && ::stat(at.c_str(), &folder) == 0 &&
        folder.st_uid == peer->uid)
        return true;
    distrust_ = fmt::format(
        "the server on {} runs as {}, not as you (user id {}) or root{}: nothing was sent to it. "
        "Run this as its user, or name the socket of your own daemon with --socket or EDDY_SOCKET",
        socket_path_, peer ? fmt::format("user id {}", peer->uid) : "an unknown user", own,
        own == 0 ? ", nor as the owner of the folder" : "");
    return false;
}

std::string control_client::explain(std::error_code error) const {
    if (error == std::errc::operation_not_permitted && !distrust_.empty()) return distrust_;
    if (is_absence(error)) {
        std::ifstream sockets("/proc/net/unix");
        if (::geteuid() != 0 && has_listener(sockets, control_socket_of_root))
            return fmt::format(
                "no daemon of yours runs at {}, but the system's does at {}. Use that one as root "
                "(sudo eddy ...){}, or start your own with: eddy daemon",
                socket_path_, control_socket_of_root,
                membership(std::string(control_socket_of_root)));
        return fmt::format("the daemon is not running at {}. Start it with: eddy daemon",
                           socket_path_);
    }
    if (error == std::errc::permission_denied)
        return fmt::format(
            "no permission to use the daemon's socket {}. Run this as the user of the daemon, or "
            "as root{}",
            socket_path_, membership(socket_path_));
    if (error == errc::bad_address)
        return fmt::format("\"{}\" cannot be a socket's path: use at most 107 bytes", socket_path_);
    if (error == errc::malformed)
        return fmt::format("the server on {} is not an Eddy daemon: it does not speak HTTP",
                           socket_path_);
    if (error == errc::limit_reached)
        return fmt::format(
            "the answer of the server on {} has more than {} bytes; is it an Eddy daemon?",
            socket_path_, answer_limit);
    if (error == errc::truncated)
        return fmt::format(
            "the answer is incomplete: the daemon at {} closed the connection before its end; its "
            "log may say why",
            socket_path_);
    if (is_lost_connection(error))
        return fmt::format(
            "the daemon at {} closed the connection before it answered; its log may "
            "say why",
            socket_path_);
    return fmt::format("the connection to the daemon at {} failed: {}", socket_path_,
                       error.message());
}

}  // namespace eddy::cli
