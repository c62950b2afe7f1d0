// Control client: requests to the daemon by HTTP/1.1 over its Unix socket, one connection each.
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <cstddef>
#include <expected>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

namespace eddy::cli {

/// A request to the daemon. `target` is encoded already; see http1::percent_encode().
struct control_request {
    std::string method = "GET";
    std::string target;
    std::string body = {};
    std::string content_type = "application/json";
};

/// The daemon's answer, whatever its status.
struct control_answer {
    int status = 0;
    std::string body;
};

/// The daemon could not be asked; the text says why and what to do.
struct unreachable {
    std::string message;
    bool is_absent = false;  ///< nothing listens at its socket
};

/// True if a socket listens at `path`, as far as the lines of /proc/net/unix in `sockets` show: at
/// the path itself, or under the name that it had before (bound_name()).
/// They are readable where the socket's folder is not.
bool has_listener(std::istream& sockets, std::string_view path);

/// The socket of a daemon that this user has without naming one: `own`, or, where nothing is there,
/// that of the system's daemon, if this user may use it.
std::string usual_socket(const std::string& own, const std::string& system);

/// Takes the pieces of a long answer as they come; false ends the request. The first piece, an
/// empty one, comes when the answer has begun.
using body_sink = std::function<bool(std::string_view piece)>;

/// A client of one daemon. It has a loop of its own and blocks; one thread.
///
/// Requests may hold passwords, so nothing is sent to the daemon of a user other than this one and
/// root, nor through a folder in /tmp that is not this user's alone. Root may use another user's
/// daemon, in a folder of that user; everyone may use one in such a folder directly below /run,
/// where only root makes folders, as it does for services.
class control_client {
public:
    /// The largest answer that is kept in memory.
    static constexpr std::size_t answer_limit = 64 * 1024 * 1024;

    explicit control_client(std::string socket_path) : socket_path_(std::move(socket_path)) {}

    const std::string& socket_path() const noexcept { return socket_path_; }

    /// Sends a request and awaits the whole answer.
    std::expected<control_answer, unreachable> ask(control_request request);

    /// The same; the body of a successful (2xx) answer goes to `sink` piece by piece, and the
    /// answer's own body stays empty. An error's body is in the answer.
    std::expected<control_answer, unreachable> follow(control_request request, body_sink sink);

    /// follow() for a command that does several things at once: it runs on own_loop(), and its
    /// error is for explain().
    task<result<control_answer>> exchange(control_request request, body_sink sink = nullptr);
    std::expected<loop*, unreachable> own_loop();
    /// Message for an error of exchange(): its cause and the remedy.
    std::string explain(std::error_code error) const;

private:
    bool is_trusted(const stream& daemon);

    std::string socket_path_;
    std::unique_ptr<loop> loop_;
    std::string distrust_;  // what explain() says of errc::operation_not_permitted
};

}  // namespace eddy::cli
