// Fixture of tests of forwarding: backends and clients in the test's own hands, as texts.
#pragma once

#include <eddy/http/session.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/timeout.hpp>

#include "io/testing.hpp"
#include "proxy/http/forwarder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::proxy::testing {

using namespace std::chrono_literals;
using eddy::testing::must;

/// A connection that reads and writes texts; each wait ends after a while, which fails the test.
class text_peer {
public:
    static constexpr duration longest_wait = 10s;

    explicit text_peer(stream s) : socket(std::move(s)) {}

    task<void> say(std::string text) {
        const result<> sent = co_await with_timeout(longest_wait, socket.write_all(text));
        EXPECT_TRUE(sent) << text.substr(0, 100);
    }
    /// The text up to and including `last`; all that came when the peer closes before.
    task<std::string> until(std::string last) {
        while (received_.find(last) == std::string::npos) {
            const bool more = co_await receive();
            if (!more) co_return std::exchange(received_, {});
        }
        const std::size_t size = received_.find(last) + last.size();
        std::string text = received_.substr(0, size);
        received_.erase(0, size);
        co_return text;
    }
    /// A head, with its blank line.
    task<std::string> head() { return until("\r\n\r\n"); }
    task<std::string> bytes(std::size_t size) {
        while (received_.size() < size) {
            const bool more = co_await receive();
            if (!more) break;
        }
        std::string text = received_.substr(0, size);
        received_.erase(0, text.size());
        co_return text;
    }
    /// Everything until the peer closes.
    task<std::string> rest() {
        for (;;) {
            const bool more = co_await receive();
            if (!more) co_return std::exchange(received_, {});
        }
    }
    /// True when the peer has closed or reset the connection, without a byte before.
    task<bool> is_over() {
        const std::string text = co_await rest();
        co_return text.empty();
    }

    stream socket;
    std::error_code end;  // of its input

private:
    task<bool> receive() {
        const auto got = co_await with_timeout(longest_wait, socket.read());
        if (!got) {
            EXPECT_NE(got.error(), errc::timed_out) << "nothing came";
            end = got.error();
            co_return false;
        }
        received_ += got->text();
        co_return true;
    }

    std::string received_;
};

/// A backend whose connections the test accepts, one by one.
class test_backend {
public:
    test_backend() : listening_(must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))))) {}

    task<text_peer> accept() {
        auto made = co_await with_timeout(text_peer::longest_wait, listening_.accept());
        co_return text_peer(must(std::move(made)));
    }
    wanted_backend wanted() const {
        wanted_backend made;
        made.where.host = "127.0.0.1";
        made.where.port = listening_.local().port();
        return made;
    }
    std::string name() const { return wanted().where.to_string(); }
    listener& socket() noexcept { return listening_; }
    void close() { listening_.close(); }

private:
    listener listening_;
};

/// A forwarder before such backends, and clients of it.
class forwarding : public forwarding_observer {
public:
    explicit forwarding(std::size_t backends) : backends_(backends) {
        limits.parser.body = UINT64_MAX;
        limits.linger_time = 50ms;
        rules.keepalive = {};
        rules.says = client_fields::none;
        rules.via = "";
    }

    test_backend& backend(std::size_t i = 0) { return backends_.at(i); }
    /// A client whose requests are forwarded by the rules as they are now.
    task<text_peer> client() {
        if (!by_) begin();
        listener front = must(loop::current().listen(must(endpoint::ip("127.0.0.1", 0))));
        auto made = co_await loop::current().connect(front.local());
        auto accepted = co_await front.accept();
        sessions_.spawn(http::serve(must(std::move(accepted)), *by_, limits));
        co_return text_peer(must(std::move(made)));
    }
    /// Closes everything: the clients must be closed or forgotten by now.
    task<void> end() {
        sessions_.cancel();
        co_await sessions_.join();
        if (by_) by_->close();
        by_.reset();
    }

    /// Puts the rules as they are now into force.
    void apply() {
        by_->set_rules(std::make_shared<const forwarding_rules>(rules),
                       std::make_shared<const route_table>(routes));
    }

    const backend_list& known() const { return all_; }
    std::uint64_t sum(serving::tally backend_counters::* of) const {
        std::uint64_t all = 0;
        for (const balanced_backend& each : all_) all += each.its->sum(of);
        return all;
    }

    forwarding_rules rules;
    balancing balance;
    std::vector<route> routes;  // empty: one for all backends
    http::session_limits limits;
    std::shared_ptr<buffer_budget> budget = std::make_shared<buffer_budget>();
    std::vector<std::string> noted;

private:
    void begin() {
        std::vector<wanted_backend> wanted;
        for (const test_backend& each : backends_) wanted.push_back(each.wanted());
        all_ = update_backends({}, wanted, 1);
        auto to = std::make_shared<balancer>(balance, all_);
        if (routes.empty()) routes.emplace_back();
        for (route& each : routes)
            if (each.redirect.empty() && !each.to) each.to = to;
        by_ = std::make_unique<forwarder>(0, counted_, *this, budget);
        apply();
    }

    void note_failed_backend(const proxy::backend&, std::string_view why) noexcept override {
        noted.emplace_back(why);
    }
    void note_unanswered(int status, std::string_view) noexcept override {
        noted.push_back(std::to_string(status));
    }
    void note_ejected(const proxy::backend&) noexcept override { noted.emplace_back("ejected"); }
    void note_returned(const proxy::backend&) noexcept override { noted.emplace_back("returned"); }
    void note_slow(const slow_backend&) noexcept override { noted.emplace_back("slow"); }
    void note_no_memory() noexcept override { noted.emplace_back("no memory"); }

    std::vector<test_backend> backends_;
    backend_list all_;
    serving::counters counted_;
    std::unique_ptr<forwarder> by_;
    scope sessions_;
};

/// Runs tests on each backend of I/O.
class with_forwarding : public eddy::testing::on_io_backend {
protected:
    using steps = std::function<task<void>(forwarding& f)>;

    /// Runs `body`, and ends what is left.
    void forward(steps body, std::size_t backends = 1) {
        run([&]() -> task<void> {
            forwarding f(backends);
            co_await body(f);
            co_await f.end();
        });
    }
};

}  // namespace eddy::proxy::testing
