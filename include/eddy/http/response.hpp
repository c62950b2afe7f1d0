// Response of a server's handler: status, fields, and a body that is whole or streamed.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/http/body.hpp>
#include <eddy/http/cookie.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>
#include <eddy/wire/http1.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::http {

/// Successor of HTTP on a connection, behind a response 101: see websocket.hpp. One loop's thread.
class connection_takeover {
public:
    virtual ~connection_takeover() = default;
    /// Serves the connection to its end, from `received` on, which the client has sent behind its
    /// request. A session that ends cancels it.
    virtual task<void> run(stream peer, byte_buffer received) = 0;
};

/// The answer of a handler. The session adds the framing fields, Date where it is missing, and
/// Connection where it says something. With status 204 or 304, and in answer to HEAD, the body is
/// not sent. One loop's thread.
class response {
public:
    /// A status, and no body.
    explicit response(int status_code = 200) noexcept : status(status_code) {}
    /// A status and a body of that Content-Type.
    response(int status_code, std::string_view content_type, http::body content)
        : status(status_code), body(std::move(content)) {
        add("Content-Type", content_type);
    }

    /// 200 to 999, or 101 with a takeover; with one, too, 200 to 299 in answer to CONNECT.
    int status = 200;
    /// The fields. Content-Length and Transfer-Encoding follow from the body and are left out;
    /// "Connection: close" closes.
    http1::header_list headers;
    /// The content.
    http::body body;
    /// With status 101, or a success of CONNECT: the protocol that takes the connection over once
    /// the response has been sent.
    std::unique_ptr<connection_takeover> takeover;

    /// Appends a field. One that may not be sent (see header_list::add()) makes the response
    /// invalid.
    response& add(std::string_view name, std::string_view value) {
        if (!headers.add(name, value)) has_bad_field_ = true;
        return *this;
    }
    /// Appends a Set-Cookie field. A cookie that format_cookie() refuses makes the response
    /// invalid.
    response& set_cookie(const cookie& added);
    /// True if it can be sent. The session answers 500 in place of one that cannot.
    bool is_valid() const noexcept {
        const bool is_switch = status == 101 && takeover != nullptr;
        return !has_bad_field_ && (is_switch || (status >= 200 && status <= 999));
    }

private:
    bool has_bad_field_ = false;
};

/// A response of Content-Type application/json. `content` is the JSON, as of json_writer.
inline response json(std::string content, int status = 200) {
    return {status, "application/json", std::move(content)};
}
/// A response of plain text in UTF-8.
inline response text(std::string content, int status = 200) {
    return {status, "text/plain; charset=utf-8", std::move(content)};
}
/// A response of HTML in UTF-8.
inline response html(std::string content, int status = 200) {
    return {status, "text/html; charset=utf-8", std::move(content)};
}
/// A redirect to `location`, a URI reference; one with a byte that no field may have makes the
/// response invalid. 307 and 308 keep the request's method, 302 and 303 make it GET, clients cache
/// 301 and 308.
inline response redirect(std::string_view location, int status = 302) {
    response made(status);
    made.add("Location", location);
    return made;
}

}  // namespace eddy::http
