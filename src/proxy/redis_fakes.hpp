// Fakes for tests: servers that answer commands of RESP as the test says, as Sentinels and caches.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>

#include "io/testing.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::proxy::testing {

using eddy::testing::must;
using words = std::vector<std::string>;

/// An array of strings, as a reply.
inline std::string array_of(const words& all) {
    std::string made = "*" + std::to_string(all.size()) + "\r\n";
    for (const std::string& each : all)
        made += "$" + std::to_string(each.size()) + "\r\n" + each + "\r\n";
    return made;
}

/// It must outlive `tasks`, which the test cancels and joins.
class fake_server {
public:
    /// Reply to a command; empty: the connection is closed.
    using answering = std::function<std::string(const words& command)>;

    virtual ~fake_server() = default;
    fake_server(scope& tasks, answering by, listen_options options = {})
        : answer(std::move(by)),
          tasks_(tasks),
          listening_(must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0)), options))),
          port_(listening_.local().port()),
          accepting_(&tasks.source()),
          alive_(std::make_unique<cancel_source>(&tasks.source())) {
        tasks_.spawn(accept_all().under(accepting_));
    }

    std::string place() const { return "127.0.0.1:" + std::to_string(port_); }
    std::uint16_t port() const noexcept { return port_; }
    std::string uri() const { return "tcp://" + place(); }
    transport::address where() const {
        transport::address made;
        made.host = "127.0.0.1";
        made.port = port_;
        return made;
    }

    /// Ends its connections, and takes no more.
    void die() {
        listening_.close();
        end_connections();
    }
    void end_connections() {
        alive_->request();
        // Tasks that end know the source until then.
        ended_.push_back(std::exchange(alive_, std::make_unique<cancel_source>(&tasks_.source())));
    }
    /// After die(): at its port again.
    void come_back() {
        listening_ = must(loop::current().listen(must(endpoint::ip("127.0.0.1", port_))));
        tasks_.spawn(accept_all().under(accepting_));
    }
    /// Further connections stay in the listener's queue.
    void stop_accepting() { accepting_.request(); }

    /// Sends a text to all that have subscribed.
    task<void> push(std::string text) {
        const auto to = subscribers_;
        for (const auto& each : to) static_cast<void>(co_await each->write_all(text));
    }
    std::size_t subscribers() const noexcept { return subscribers_.size(); }
    /// Commands so far with this word among theirs.
    std::size_t asked(std::string_view word) const {
        return static_cast<std::size_t>(std::ranges::count_if(commands, [&](const words& each) {
            return std::ranges::find(each, word) != each.end();
        }));
    }

    answering answer;
    duration delay{};
    std::size_t connections = 0;  // so far
    std::vector<words> commands;

private:
    task<void> accept_all() {
        for (;;) {
            result<stream> peer = co_await listening_.accept();
            if (!peer) co_return;
            ++connections;
            tasks_.spawn(serve(std::make_shared<stream>(std::move(*peer))).under(*alive_));
        }
    }

    task<void> serve(std::shared_ptr<stream> peer) {
        std::string received;
        for (;;) {
            const std::optional<words> command = take(received);
            if (!command) {
                const result<lease> got = co_await peer->read();
                if (!got) break;
                received += got->text();
                continue;
            }
            commands.push_back(*command);
            const result<> slept = co_await loop::current().sleep_for(delay);
            if (!slept) break;
            const std::string reply = answer(*command);
            if (reply.empty()) break;
            if (command->front() == "SUBSCRIBE") subscribers_.push_back(peer);
            const result<> sent = co_await peer->write_all(reply);
            if (!sent) break;
        }
        std::erase(subscribers_, peer);
    }

    /// The command that a text begins with, which is removed; none until it is whole.
    static std::optional<words> take(std::string& from) {
        const auto line = [&](std::size_t& at) -> std::optional<std::string> {
            const std::size_t end = from.find("\r\n", at);
            if (end == std::string::npos) return std::nullopt;
            std::string found = from.substr(at, end - at);
            at = end + 2;
            return found;
        };
        std::size_t at = 0;
        const auto head = line(at);
        if (!head || head->empty()) return std::nullopt;
        words made(std::stoul(head->substr(1)));
        for (std::string& each : made) {
            const auto size = line(at);
            const auto text = size ? line(at) : std::nullopt;
            if (!text) return std::nullopt;
            each = *text;
        }
        from.erase(0, at);
        return made;
    }

    scope& tasks_;
    listener listening_;
    const std::uint16_t port_;
    cancel_source accepting_;
    std::unique_ptr<cancel_source> alive_;
    std::vector<std::unique_ptr<cancel_source>> ended_;
    std::vector<std::shared_ptr<stream>> subscribers_;
};

/// A cache: it has a role, and nothing else.
class fake_cache : public fake_server {
public:
    explicit fake_cache(scope& tasks, std::string role = "master", listen_options options = {})
        : fake_server(
              tasks, [this](const words& command) { return reply(command); }, options),
          role(std::move(role)) {}

    std::string role;

private:
    std::string reply(const words& command) const {
        if (command.front() == "ROLE") return array_of({role, "0"});
        return "+" + command.front() + " at " + place() + "\r\n";
    }
};

/// A Sentinel that watches one master, "cache".
class fake_sentinel : public fake_server {
public:
    fake_sentinel(scope& tasks, const fake_server& master)
        : fake_server(tasks, [this](const words& command) { return reply(command); }),
          named(master.port()) {}

    /// Names another one, and announces it.
    task<void> switch_to(const fake_server& next) {
        const std::string before = std::to_string(std::exchange(named, next.port()));
        co_await push(
            array_of({"message", "+switch-master",
                      "cache 127.0.0.1 " + before + " 127.0.0.1 " + std::to_string(named)}));
    }

    std::uint16_t named;
    std::string password;    // that it asks for; empty: none
    std::string odd_answer;  // in the place of an address
    bool announces = true;

private:
    std::string reply(const words& command) {
        if (command.front() == "AUTH")
            return command.back() == password ? "+OK\r\n"
                                              : "-WRONGPASS invalid username-password pair\r\n";
        if (!password.empty() && asked("AUTH") == 0) return "-NOAUTH Authentication required.\r\n";
        if (command.front() == "SUBSCRIBE") {
            if (!announces) return "-NOPERM this user has no permissions to run it\r\n";
            return "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n";
        }
        if (!odd_answer.empty()) return odd_answer;
        if (command.back() != "cache") return "*-1\r\n";
        return array_of({"127.0.0.1", std::to_string(named)});
    }
};

}  // namespace eddy::proxy::testing
