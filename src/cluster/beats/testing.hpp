// Fixture of tests with several members of one cluster in this process, each of which is ended
// after its test.
#pragma once

#include <eddy/io/loop.hpp>
#include <eddy/io/operation.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/task.hpp>

#include "cluster/membership.hpp"
#include "cluster/testing.hpp"
#include "io/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <memory>
#include <source_location>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace eddy::cluster::testing {

using namespace std::chrono_literals;
using eddy::testing::must;

/// Times for real clocks: short, but a busy machine seldom takes a member for dead.
template <class Rules>
Rules quick_rules() {
    Rules made;
    made.beat = 40ms;
    made.silence = 1s;
    made.poll = 40ms;
    made.pause = 10ms;
    return made;
}

/// The value of an outcome that a test relies on.
template <class T>
void must_be_good(const outcome<T>& done,
                  std::source_location where = std::source_location::current()) {
    if (!done)
        throw std::runtime_error(std::string(where.file_name()) + ":" +
                                 std::to_string(where.line()) + ": " + done.error().message);
}

/// Waits for a condition; the test's own deadline bounds it.
template <class Condition>
task<void> wait_until(Condition is_met) {
    while (!is_met()) must(co_await sleep_for(1ms));
}

/// A member, and all that it reported. `Engine` is the membership.
template <class Engine>
struct test_member {
    kept_reports reports;
    member_info info;
    std::unique_ptr<Engine> its;

    std::string names() const { return names_of(*its->current()); }
    const member_info* find(std::string_view name) const { return its->current()->find(name); }
};

template <class Engine>
class clusters : public eddy::testing::on_io_backend {
protected:
    using node = test_member<Engine>;

    /// A member, that has not joined.
    template <class... Arguments>
    node& add(const std::string& name, Arguments&&... made_from) {
        auto made = std::make_unique<node>();
        made->info = simple_member(name, random());
        made->its = make_engine(made->reports, std::forward<Arguments>(made_from)...);
        nodes.push_back(std::move(made));
        return *nodes.back();
    }
    static task<void> join(node& of) {
        const outcome<> joined = co_await of.its->join(of.info);
        must_be_good(joined);
    }
    static task<std::string> refusal_of_join(node& of) {
        const outcome<> joined = co_await of.its->join(of.info);
        if (joined) co_return "none";
        co_return std::to_string(joined.error().status) + " " + joined.error().message;
    }
    /// Joins all at once.
    static task<void> join_all(std::vector<node*> all) {
        co_await join_scope([&](scope& joins) -> task<void> {
            for (node* const each : all) joins.spawn(join(*each));
            co_return;
        });
    }
    static task<void> pass(duration time) { must(co_await sleep_for(time)); }

    /// Runs a test; all members are ended behind it. Simulated time is short.
    template <class Body>
    void run_cluster(Body body) {
        run_with_threads([&]() -> task<void> {
            std::exception_ptr failure;
            deadline_source limit(nullptr, here().now() + (simulated() ? 10h : patience));
            try {
                co_await body().under(limit.source());
            } catch (...) {
                failure = std::current_exception();
            }
            cancel_source uncancelled;
            prepare_end();
            for (const auto& each : nodes) co_await each->its->end().under(uncancelled);
            nodes.clear();
            if (failure) std::rethrow_exception(failure);
        });
    }

    virtual std::unique_ptr<Engine> make_engine(observer& reports) = 0;
    virtual void prepare_end() {}

    std::vector<std::unique_ptr<node>> nodes;
};

}  // namespace eddy::cluster::testing
