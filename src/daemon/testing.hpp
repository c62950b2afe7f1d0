// Fixtures of this layer's tests: a type of runtime that serves nothing and does what a test sends
// it.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/transport/transport.hpp>

#include "runtime/host/host.hpp"
#include "runtime/host/registry.hpp"
#include "runtime/instance.hpp"
#include "runtime/metrics.hpp"
#include "runtime/options/option.hpp"
#include "runtime/options/settings.hpp"
#include "runtime/type.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon::testing {

/// While this is set, a message "hang" keeps the thread of its runtime's loop.
inline std::atomic<bool> hanging{false};

/// While this is set, no stop of a runtime with "lingering" ends.
inline std::atomic<bool> lingering{false};

/// While this is set, nothing starts.
inline std::atomic<bool> failing{false};

/// Number of instances in the process; a test that ends with some has lost them.
inline std::atomic<int> instances{0};

inline constexpr runtime::metric tricks_metric = {"tricks_total", runtime::metric_kind::counter,
                                                  "Tricks done."};
inline constexpr runtime::metric moods_metric = {"moods",
                                                 runtime::metric_kind::gauge,
                                                 "Moods, with a \\ and a\nsecond line.",
                                                 {"mood", "reason"}};
inline constexpr runtime::metric sizes_metric = {
    "trick_bytes", runtime::metric_kind::histogram, "Sizes of tricks.", {"parity"}};

/// Calls of hand_over_listeners().
inline std::atomic<int> listener_handovers{0};

class fake_runtime final : public runtime::instance {
public:
    explicit fake_runtime(runtime::creation made) : made_(std::move(made)) { ++instances; }
    ~fake_runtime() override { --instances; }

    task<outcome<>> start() override {
        if (made_.options.flag("throwing")) throw std::runtime_error("thrown on purpose");
        if (failing) co_return refuse(503, "nothing starts");
        if (made_.options.number("port") == 666) co_return refuse(409, "port 666 is taken");
        if (made_.options.flag("patient")) {
            static_cast<void>(co_await given_up_.wait());
            co_return refuse(503, "its start was given up");
        }
        if (made_.inherited) {
            data_.resize(100);
            const ssize_t got = ::pread(made_.inherited->file.get(), data_.data(), data_.size(), 0);
            data_.resize(static_cast<std::size_t>(got));
            made_.events->write("has " + data_);
        }
        made_.events->write("level " + std::to_string(made_.options.number("level")));
        running_ = true;
        if (made_.host != nullptr) {
            transport::address where;
            where.host = "127.0.0.1";
            note_ = made_.host->note_address(where, local());
        }
        co_return outcome<>();
    }
    void give_up_start() noexcept override { given_up_.set(); }
    task<outcome<>> prepare_stop(duration) override {
        if (!data_.empty() && made_.options.flag("full")) co_return refuse(507, "the disk is full");
        made_.events->write("prepared");
        co_return outcome<>();
    }
    void resume() noexcept override { made_.events->write("resumed"); }
    task<std::shared_ptr<runtime::inherited_listeners>> hand_over_listeners() override {
        ++listener_handovers;
        co_return nullptr;
    }
    task<outcome<>> hand_over(runtime::settings, std::shared_ptr<runtime::handover> to,
                              duration patience) override {
        auto ready = co_await prepare_stop(patience);
        if (!ready || data_.empty()) co_return ready;
        to->is_used = ::pwrite(to->file.get(), data_.data(), data_.size(), 0) ==
                      static_cast<ssize_t>(data_.size());
        co_return ready;
    }
    task<void> stop(duration) override {
        running_ = false;
        note_ = {};
        EXPECT_FALSE(std::exchange(is_stopping_, true)) << "it is stopped already";
        while (made_.options.flag("lingering") && lingering)
            static_cast<void>(co_await loop::current().sleep_for(std::chrono::milliseconds(1)));
        is_stopping_ = false;
    }
    std::string lost() const override { return data_; }
    task<outcome<>> check_restart(runtime::settings next, bool) override {
        if (next.number("port") == 665) co_return refuse(409, "port 665 is known taken");
        co_return outcome<>();
    }
    runtime::metrics count() const override {
        runtime::metrics counted;
        counted.connections_now = 3;
        counted.connections_total = sent_;
        counted.add_sample(tricks_metric, 7);
        auto latency = std::make_shared<histogram>();
        latency->record(1'500);
        counted.latency = latency;
        runtime::labelled<serving::tally> moods(moods_metric);
        ++moods.at({"good", "a \"b\" \\ c\nd"});
        ++moods.at({"bad", ""});
        counted.add_samples(moods);
        runtime::labelled<histogram> sizes(sizes_metric);
        for (const std::uint64_t size : {1U, 70U, 1'000'000U}) sizes.at({"even"}).record(size);
        sizes.at({"odd"});
        counted.add_samples(sizes);
        return counted;
    }
    endpoint local() const override {
        if (!running_) return {};
        return *endpoint::ip("127.0.0.1", static_cast<std::uint16_t>(made_.options.number("port")));
    }
    task<outcome<std::uint64_t>> send(std::string message) override {
        if (message == "hang") hanging.wait(true);
        if (message.starts_with("publish "))
            co_return made_.host->publish("tricks", message.substr(8));
        if (message.starts_with("keep ")) data_ = message.substr(5);
        if (message == "refuse") co_return refuse(409, "no listener");
        ++sent_;
        co_return message.size();
    }
    outcome<> apply(const runtime::settings& changed) override {
        if (changed.number("level") == 13) return refuse(400, "13 is unlucky");
        made_.options = changed;
        made_.events->write("level " + std::to_string(changed.number("level")));
        return {};
    }

private:
    runtime::creation made_;
    std::string data_;  // lost with a stop, unless hand_over() passes it on
    std::uint64_t sent_ = 0;
    bool running_ = false;
    bool is_stopping_ = false;
    event given_up_;
    runtime::address_note note_;
};

inline std::vector<runtime::type> fake_types() {
    using runtime::option_kind;
    runtime::type fake;
    fake.name = "fake";
    fake.summary = "serves nothing";
    fake.options = {{.name = "port",
                     .letter = 'p',
                     .kind = option_kind::integer,
                     .value_name = "PORT",
                     .default_value = "1000",
                     .help = "where it pretends to be",
                     .maximum = 65535},
                    {.name = "level",
                     .kind = option_kind::integer,
                     .value_name = "N",
                     .default_value = "1",
                     .help = "a number",
                     .live = true,
                     .former_name = "depth"},
                    {.name = "full",
                     .kind = option_kind::flag,
                     .help = "what it has cannot be written",
                     .live = true},
                    {.name = "lingering", .kind = option_kind::flag, .help = "stop() takes long"},
                    {.name = "throwing", .kind = option_kind::flag, .help = "start() throws"},
                    {.name = "patient",
                     .kind = option_kind::flag,
                     .help = "start() waits until it is given up"}};
    fake.make = [](runtime::creation made) -> std::unique_ptr<runtime::instance> {
        return std::make_unique<fake_runtime>(std::move(made));
    };
    fake.check = [](const runtime::settings& given) -> outcome<> {
        if (given.number("port") == 1 && given.number("level") == 1)
            return refuse(400, "port 1 needs another level");
        return {};
    };
    return {fake};
}

}  // namespace eddy::daemon::testing
