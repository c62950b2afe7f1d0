// Fixture of the tests of stream runtimes: a handoff socket, and clients that are handed over.
#pragma once

#include <eddy/net/descriptors.hpp>
#include <eddy/wire/http1.hpp>

#include "handoff/testing.hpp"
#include "runtime/testing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::stream::testing {

using namespace runtime::testing;

using handoff::testing::client_ends;
using handoff::testing::socket_pair;

/// Connects to a handoff socket of this type, without waiting.
inline unique_fd connect_sender(const endpoint& to, int type) {
    unique_fd sender(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!sender || ::connect(sender.get(), to.data(), to.size()) < 0)
        throw std::runtime_error("connect to the handoff socket: " + errno_code(errno).message());
    return sender;
}

/// Hands a socket over as a web server does: one message, then the sender closes.
inline void hand_over(const endpoint& to, unique_fd client, std::string_view message,
                      int type = SOCK_SEQPACKET) {
    const unique_fd sender = connect_sender(to, type);
    const auto sent = unix_socket::send_descriptor(sender.get(), message, client.get());
    if (!sent || *sent != message.size()) throw std::runtime_error("the handoff was not sent");
}

/// A new client of the runtime: hands one end over and reads from the other.
inline talker make_client(subject& of, std::string_view message, int type = SOCK_SEQPACKET) {
    client_ends ends = socket_pair();
    hand_over(of->local(), std::move(ends.ours), message, type);
    return talker(must(loop::current().adopt(std::move(ends.theirs))));
}

/// A client over TCP whose connection the web server keeps.
struct kept_client {
    talker client;
    eddy::stream copy;
};
inline task<kept_client> make_kept_client(subject& of, std::string message) {
    listener accepting = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
    kept_client made;
    made.client = co_await talker::to(accepting.local());
    made.copy = must(co_await accepting.accept());
    hand_over(of->local(), unique_fd(::fcntl(made.copy.native_handle(), F_DUPFD_CLOEXEC, 0)),
              message);
    co_return made;
}

inline std::string chunk(std::string_view content) {
    return "data: " + json({{"choices", {{{"delta", {{"content", content}}}}}}}).dump() + "\n\n";
}

/// Server of the API, which answers each connection's request with the same bytes in pieces.
class chat_api {
public:
    /// `pieces` are sent one after the other behind the head; then the connection is closed, or it
    /// stays silent.
    explicit chat_api(std::vector<std::string> pieces, std::string head = "200 OK",
                      bool closes = true)
        : pieces_(std::move(pieces)),
          head_("HTTP/1.1 " + head + "\r\nContent-Type: text/event-stream\r\n" +
                "Connection: close\r\n\r\n"),
          closes_(closes),
          listening_(must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))))) {
        tasks_.spawn(accept_all());
    }
    task<void> close() {
        tasks_.cancel();
        co_await tasks_.join();
    }
    std::string url() const { return "http://" + listening_.local().to_string() + "/v1"; }

    std::vector<std::string> requests;
    int open = 0;

private:
    task<void> accept_all() {
        for (;;) {
            auto accepted = co_await listening_.accept();
            if (!accepted) co_return;
            tasks_.spawn(answer(std::move(*accepted)));
        }
    }
    task<void> answer(eddy::stream peer) {
        ++open;
        std::string got;
        while (!is_whole(got)) {
            auto piece = co_await peer.read();
            if (!piece) break;
            got += piece->text();
        }
        requests.push_back(got);
        bool is_good = (co_await peer.write_all(head_)).has_value();
        for (const std::string& each : pieces_) {
            if (!is_good) break;
            co_await loop::current().yield();
            is_good = (co_await peer.write_all(each)).has_value();
        }
        if (!closes_) static_cast<void>(co_await peer.read());  // until the client has gone
        --open;
    }
    static bool is_whole(const std::string& request) {
        const std::size_t end = request.find("\r\n\r\n");
        const std::size_t length = request.find("Content-Length: ");
        return end != std::string::npos && length != std::string::npos &&
               request.size() >= end + 4 + std::stoul(request.substr(length + 16));
    }

    std::vector<std::string> pieces_;
    std::string head_;
    bool closes_;
    listener listening_;
    scope tasks_;
};

/// A response of the runtime, as a client's parser reads it.
struct parsed_answer {
    int status = 0;
    http1::header_list fields;
    std::string content;
    bool is_whole = false;  ///< what frames the content says so

    std::string field(std::string_view name) const {
        return std::string(fields.find(name).value_or("(none)"));
    }
    /// The values of all fields of that name, with commas between them.
    std::string all_of(std::string_view name) const {
        std::string found;
        for (const http1::header each : fields)
            if (http1::equal_ignoring_case(each.name, name))
                found.append(found.empty() ? "" : ",").append(each.value);
        return found;
    }
};

/// Reads a response to `method` whose connection has ended.
inline parsed_answer parse_answer(std::string_view bytes, std::string_view method = "GET") {
    http1::limits bounds;
    bounds.body = 1 << 30;
    http1::response_parser parser(bounds);
    parser.expect_response_to(method);
    parsed_answer read;
    for (;;) {
        const http1::step step = parser.parse(bytes);
        bytes.remove_prefix(step.consumed);
        if (step.what == http1::event::body) read.content += step.body;
        if (step.what == http1::event::head) {
            read.status = parser.head().status;
            read.fields = parser.head().headers;
        }
        if (step.what == http1::event::error) return read;
        if (step.what == http1::event::need_more || step.what == http1::event::end) {
            read.is_whole = step.what == http1::event::end || parser.finish() == http1::event::end;
            EXPECT_EQ(bytes, "") << "it is no part of the response";
            return read;
        }
    }
}

/// Count of a metric by reason; 0 if there is none.
inline double count_of(subject& of, std::string_view name, std::string_view reason) {
    for (const metric_sample& each : of->count().samples)
        if (each.of->name == name && each.labels.size() == 1 && each.labels[0] == reason)
            return std::get<double>(each.value);
    return 0;
}

}  // namespace eddy::runtime::stream::testing
