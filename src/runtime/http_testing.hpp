// Requests of tests to runtimes that speak HTTP, and their responses.
#pragma once

#include "runtime/testing.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace eddy::runtime::testing {

/// A response: the head up to its blank line, and the content by its Content-Length.
struct answer {
    std::string head;
    std::string content;
    std::string status() const { return head.substr(9, 3); }
};

/// The next response on a connection; `has_content` is false for those to HEAD.
inline task<answer> next_answer(talker& client, bool has_content = true) {
    answer got;
    for (std::string line = co_await line_of(client); !line.empty();
         line = co_await line_of(client))
        got.head += line + "\n";
    constexpr std::string_view field = "\nContent-Length: ";
    const std::size_t at = got.head.find(field);
    if (has_content && at != std::string::npos)
        got.content = co_await client.bytes(std::stoul(got.head.substr(at + field.size())));
    co_return got;
}

/// One request without a body, and its response.
inline task<answer> get(talker& client, std::string path, std::string fields = "") {
    co_await client.say("GET " + path + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
    co_return co_await next_answer(client);
}

/// The same on a connection of its own.
inline task<answer> get_from(subject& at, std::string path, std::string fields = "") {
    talker client = co_await talker::to(at->local());
    co_return co_await get(client, path, fields);
}

}  // namespace eddy::runtime::testing
