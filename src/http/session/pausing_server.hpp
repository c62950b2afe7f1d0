// Server for tests of memory: it costs its process none but descriptors, and its answers pause.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/base/unique_fd.hpp>
#include <eddy/wire/http1.hpp>

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http::testing {

/// Server of a Unix socket by system calls alone. A response begins with a chunk of its content and
/// stays unfinished for as long as the server lives; or it does not begin. One thread.
class pausing_server {
public:
    pausing_server(const std::string& path, std::optional<std::string_view> content)
        : listening_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
        if (content) {
            byte_buffer chunk;
            http1::write_chunk(chunk, *content);
            answer_ = head;
            answer_ += chunk.text();
        }
        sockaddr_un where{};
        where.sun_family = AF_UNIX;
        std::ranges::copy(path, where.sun_path);
        if (::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&where), sizeof(where)) < 0)
            throw std::runtime_error("bind");
        if (::listen(listening_.get(), 1000) < 0) throw std::runtime_error("listen");
    }

    /// Accepts what has come, and answers the requests, which are taken to come in one piece.
    void serve() {
        for (;;) {
            unique_fd peer(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!peer) break;
            peers_.push_back(std::move(peer));
        }
        char request[4096];
        for (; requests_ < peers_.size(); ++requests_) {
            const int peer = peers_[requests_].get();
            if (::recv(peer, request, sizeof(request), MSG_DONTWAIT) <= 0) return;
            if (!answer_.empty() && ::send(peer, answer_.data(), answer_.size(), MSG_NOSIGNAL) < 0)
                throw std::runtime_error("send");
        }
    }
    std::size_t requests() const noexcept { return requests_; }

private:
    static constexpr std::string_view head =
        "HTTP/1.1 200 OK\r\n"
        "Content-Type: text/event-stream\r\n"
        "Cache-Control: no-store\r\n"
        "X-Accel-Buffering: no\r\n"
        "Transfer-Encoding: chunked\r\n\r\n";

    unique_fd listening_;
    std::string answer_;  // empty for none
    std::vector<unique_fd> peers_;
    std::size_t requests_ = 0;
};

}  // namespace eddy::http::testing
