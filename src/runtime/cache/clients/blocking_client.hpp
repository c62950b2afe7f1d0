// Clients of a cache for tests, on threads of their own beside the loop that serves them.
#pragma once

#include <eddy/net/blocking.hpp>

#include "runtime/testing.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace eddy::runtime::testing {

/// Time limit of each wait on a client's thread.
inline constexpr std::chrono::seconds patience{30};

/// A client on a thread of its own, which blocks. What goes wrong throws.
class blocking_client {
public:
    explicit blocking_client(const endpoint& to) : link_(must(blocking::connect(to, patience))) {
        link_.set_timeout(patience);
    }

    /// Sends the commands, one a line, without awaiting their replies.
    void say(const std::string& commands) { must(link_.write_all(commands)); }

    /// The next reply, its parts joined by spaces: "+OK", ":1", "text", "(nil)", "[a b]".
    std::string reply() {
        const std::string head = line();
        if (head == "$-1" || head == "*-1") return "(nil)";
        if (head[0] == '$') {
            const std::size_t size = std::stoul(head.substr(1));
            while (unread_.size() < size + 2) fill();
            std::string text = unread_.substr(0, size);
            unread_.erase(0, size + 2);
            return text;
        }
        if (head[0] != '*' && head[0] != '>') return head;
        std::string all = "[";
        for (std::size_t left = std::stoul(head.substr(1)); left > 0; --left)
            all += reply() + (left > 1 ? " " : "");
        return all + "]";
    }

    std::string ask(const std::string& command) {
        say(command + "\r\n");
        return reply();
    }

private:
    std::string line() {
        for (;;) {
            const std::size_t end = unread_.find("\r\n");
            if (end != std::string::npos) {
                std::string found = unread_.substr(0, end);
                unread_.erase(0, end + 2);
                return found;
            }
            fill();
        }
    }
    void fill() {
        std::byte buffer[16 * 1024];
        const std::size_t got = must(link_.read_some(buffer));
        unread_.append(reinterpret_cast<const char*>(buffer), got);
    }

    blocking::stream link_;
    std::string unread_;
};

/// Waits on a client's thread until `met` holds; fails after `patience`.
inline void await(const std::function<bool()>& met) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!met()) {
        if (std::chrono::steady_clock::now() > end) throw std::runtime_error("waited in vain");
        std::this_thread::yield();
    }
}

/// Runs `count` threads, each with its number, while the loop runs. Reports their exceptions as
/// failures of the test.
inline task<void> in_parallel(int count, std::function<void(int)> work) {
    std::atomic<int> ended{0};
    std::vector<std::thread> all;
    for (int i = 0; i < count; ++i) {
        all.emplace_back([&, i] {
            try {
                work(i);
            } catch (const std::exception& failure) {
                ADD_FAILURE() << "client " << i << ": " << failure.what();
            }
            ++ended;
        });
    }
    // Cancelled, it waits for them all the same; each of their waits has an end.
    while (ended < count && co_await loop::current().sleep_for(1ms)) {
    }
    for (std::thread& each : all) each.join();
}

}  // namespace eddy::runtime::testing
