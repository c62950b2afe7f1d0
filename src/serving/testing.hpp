// Fixtures of servers' tests: a journal in memory, and clients.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/stream.hpp>

#include "io/testing.hpp"
#include "serving/journal.hpp"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::serving::testing {

using eddy::testing::must;
using eddy::testing::on_io_backend;
using namespace std::chrono_literals;

class recorder final : public journal {
public:
    void write(std::string_view line) override {
        const std::lock_guard lock(mutex_);
        lines.emplace_back(line);
    }

    bool has(std::string_view part) const {
        const std::lock_guard lock(mutex_);
        return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
            return line.find(part) != std::string::npos;
        });
    }

    std::vector<std::string> lines;  // once no thread writes

private:
    mutable std::mutex mutex_;
};

/// One end of a connection to a server.
class talker {
public:
    talker() = default;
    explicit talker(stream connected) : socket(std::move(connected)) {}

    static task<talker> to(endpoint where) {
        co_return talker(must(co_await loop::current().connect(where)));
    }

    task<void> say(std::string text) { must(co_await socket.write_all(text)); }

    /// The next line, without its newline; throws at the end of the stream.
    task<std::string> line() {
        for (;;) {
            const std::size_t end = unread.find('\n');
            if (end != std::string::npos) {
                std::string found = unread.substr(0, end);
                unread.erase(0, end + 1);
                co_return found;
            }
            auto got = co_await socket.read();
            if (!got) throw std::runtime_error("no line: " + got.error().message());
            unread += got->text();
        }
    }

    /// The next `size` bytes.
    task<std::string> bytes(std::size_t size) {
        while (unread.size() < size) {
            auto got = co_await socket.read();
            if (!got) throw std::runtime_error("too few bytes: " + got.error().message());
            unread += got->text();
        }
        std::string found = unread.substr(0, size);
        unread.erase(0, size);
        co_return found;
    }

    /// Everything until the server closes the connection, or resets it.
    task<std::string> rest() {
        for (;;) {
            auto got = co_await socket.read();
            if (!got) {
                if (got.error() == errc::cancelled) throw std::runtime_error("cancelled");
                co_return std::move(unread);
            }
            unread += got->text();
        }
    }

    stream socket;
    std::string unread;
};

/// Gives other coroutines turns until `met()`; the fixture's patience bounds it.
template <class Condition>
task<void> until(Condition met) {
    while (!met()) {
        if (!co_await loop::current().sleep_for(1ms)) throw std::runtime_error("waited in vain");
    }
}

}  // namespace eddy::serving::testing
