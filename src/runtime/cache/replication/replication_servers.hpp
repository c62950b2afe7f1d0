// Fixtures of the replication tests: caches with a client, and a link between two that can be cut.
#pragma once

#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::runtime::testing {

inline const json usual = {{"port", 0}, {"mode", "admin"}};

/// Options for copies that begin at once, and without a PING that moves a master's offset, which
/// then is ahead of the replica that is promoted.
inline json with_quick_copies(json options) {
    std::string text = "repl-diskless-sync-delay 0;repl-ping-replica-period 3600";
    if (options.contains("config")) text += ";" + options["config"].get<std::string>();
    options["config"] = std::move(text);
    return options;
}

/// A cache with a client.
struct server {
    explicit server(json options = usual)
        : cache(std::make_unique<subject>("cache", with_quick_copies(std::move(options)))) {}
    ~server() = default;

    task<void> start() {
        co_await cache->start();
        client = co_await talker::to((*cache)->local());
    }
    std::string port() { return std::to_string((*cache)->local().port()); }
    /// The reply's first line.
    task<std::string> ask(std::string command) {
        co_await client.say(command + "\r\n");
        co_return co_await line();
    }
    task<std::string> line() {
        std::string got = co_await client.line();
        if (got.ends_with('\r')) got.pop_back();
        co_return got;
    }
    /// A reply that is a text.
    task<std::string> text(std::string command) {
        const std::string head = co_await ask(command);
        if (!head.starts_with('$') || head == "$-1") co_return head;
        std::string got = co_await client.bytes(std::stoul(head.substr(1)) + 2);
        got.resize(got.size() - 2);
        co_return got;
    }
    task<std::string> info(std::string_view section, std::string_view name) {
        const std::string all = "\r\n" + co_await text("INFO " + std::string(section));
        const std::string before = "\r\n" + std::string(name) + ":";
        const std::size_t at = all.find(before);
        if (at == std::string::npos) co_return "";
        const std::size_t begin = at + before.size();
        co_return all.substr(begin, all.find('\r', begin) - begin);
    }
    task<void> replicate(std::string of) {
        EXPECT_THAT(co_await ask("REPLICAOF 127.0.0.1 " + of), ::testing::StartsWith("+OK"));
    }
    task<void> until_up() {
        while (co_await info("replication", "master_link_status") != "up")
            must(co_await loop::current().sleep_for(2ms));
    }
    /// Waits until the replica has all of the master's data.
    task<void> until_equal(server& master) {
        for (;;) {
            const std::string theirs = co_await master.info("replication", "master_repl_offset");
            const std::string own = co_await info("replication", "slave_repl_offset");
            if (theirs == own &&
                co_await master.ask("DEBUG DIGEST") == co_await ask("DEBUG DIGEST"))
                co_return;
            must(co_await loop::current().sleep_for(2ms));
        }
    }
    task<void> stop() { co_await (*cache)->stop(0s); }

    std::unique_ptr<subject> cache;
    talker client;
};

/// A replica that acknowledges only what the test sends.
inline task<talker> silent_replica(endpoint master) {
    talker client = co_await talker::to(master);
    co_await client.say("CONFIG SET repl-diskless-sync-delay 0\r\n");
    static_cast<void>(co_await client.line());
    talker replica = co_await talker::to(master);
    co_await replica.say("REPLCONF capa eof capa psync2\r\nPSYNC ? -1\r\n");
    for (;;) {
        co_await replica.say("REPLCONF ACK 0\r\n");
        co_await client.say("INFO replication\r\n");
        const std::string head = co_await client.line();
        const std::string all = co_await client.bytes(std::stoul(head.substr(1)) + 2);
        if (all.contains("state=online")) co_return replica;
        must(co_await loop::current().sleep_for(2ms));
    }
}

/// Replies to a replica up to PSYNC, then sends `then` and closes.
inline task<void> pretend_master(listener& at, std::string then, std::size_t& served) {
    result<stream> peer = co_await at.accept();
    if (!peer) co_return;
    talker replica(std::move(*peer));
    try {
        for (;;) {
            const std::string line = co_await replica.line();
            if (line == "PING\r") co_await replica.say("+PONG\r\n");
            if (line == "REPLCONF\r") co_await replica.say("+OK\r\n");
            if (line == "PSYNC\r") break;
        }
        ++served;
        for (int i = 0; i < 4; ++i) static_cast<void>(co_await replica.line());
        co_await replica.say(then);
        if (then.find("stay") != std::string::npos) static_cast<void>(co_await replica.rest());
    } catch (const std::exception&) {
        // It had enough.
    }
}

/// Forwards bytes between a replica and its master, and cuts the link after so many.
class relay {
public:
    relay(endpoint to, std::uint64_t seed) : to_(to), dice_(seed) {
        listening_ = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
    }

    std::string port() const { return std::to_string(listening_.local().port()); }
    void cut_after(std::size_t most) { most_ = most; }
    /// Once, when so many bytes have passed in both directions together; 0: never.
    void cut_once_after(std::size_t bytes) { left_ = bytes; }
    bool is_to_cut() const noexcept { return left_ != 0; }
    std::size_t cuts() const noexcept { return cuts_; }

    task<void> serve() {
        for (;;) {
            result<stream> near = co_await listening_.accept();
            if (!near) co_return;
            result<stream> far = co_await loop::current().connect(to_);
            if (!far) continue;
            co_await with_scope([&](scope& passing) -> task<void> {
                passing.spawn(pass(*near, *far));
                co_await pass(*far, *near);
            });
        }
    }

private:
    task<void> pass(stream& from, stream& to) {
        std::size_t passed = 0;
        std::size_t limit = most_ == 0 ? 0 : 1 + dice_.below(most_);
        for (;;) {
            result<lease> got = co_await from.read();
            if (!got) {
                from.close();
                to.close();
                co_return;
            }
            if (limit == 0 && most_ != 0) limit = passed + 1 + dice_.below(most_);
            std::string text(got->text());
            bool cuts = most_ != 0 && passed + text.size() >= limit;
            if (cuts) text.resize(limit > passed ? limit - passed : 0);
            if (left_ != 0 && text.size() >= left_) {
                text.resize(left_);
                cuts = true;
            }
            if (left_ != 0) left_ -= text.size();
            if (!co_await to.write_all(text)) co_return;
            passed += text.size();
            if (!cuts) continue;
            ++cuts_;
            from.close();
            to.close();
            co_return;
        }
    }

    endpoint to_;
    random_generator dice_;
    listener listening_;
    std::size_t most_ = 0;  // 0: it is not cut
    std::size_t cuts_ = 0;
    std::size_t left_ = 0;  // until it is cut once
};

}  // namespace eddy::runtime::testing
