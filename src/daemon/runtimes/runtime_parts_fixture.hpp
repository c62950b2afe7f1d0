// Fixture of tests of all parts of the runtimes together: over a folder of state, with the fake
// type.
#pragma once

#include <eddy/io/blocking.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/loop_group.hpp>
#include <eddy/io/scope.hpp>

#include "base/files/temporary_folder.hpp"
#include "daemon/control/runtime_view.hpp"
#include "daemon/runtimes/runtime_parts.hpp"
#include "daemon/state/state_folder.hpp"
#include "daemon/testing.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon::testing {

inline constexpr std::size_t most_runtimes = 8;

class runtime_parts_fixture : public ::testing::Test {
protected:
    void SetUp() override {
        store_ = std::make_unique<state_folder>(folder_);
        ASSERT_TRUE(store_->prepare());
    }
    void TearDown() override { EXPECT_EQ(testing::instances.load(), 0) << "instances were lost"; }

    using steps = task<void> (*)(runtime_parts&);

    /// Runs `body` with the parts over the folder of state, as one daemon's life: once what ran
    /// before has started or failed. What runs at the end is shut down, as by SIGTERM.
    void live(steps body) { live(body, false); }
    /// The same, with a body that begins when the starts do.
    void live_meanwhile(steps body) { live(body, true); }

    std::string file(const std::string& name) const {
        return folder_ + "/runtimes/" + name + ".json";
    }
    json saved(const std::string& name) const {
        std::ifstream stream(file(name));
        return json::parse(stream, nullptr, false);
    }

    const eddy::testing::temporary_folder temporary_;
    const std::string folder_ = temporary_.path();
    std::unique_ptr<state_folder> store_;
    std::vector<runtime::type> types_ = testing::fake_types();
    duration address_grace_{};

private:
    void live(steps body, bool meanwhile) {
        loop_options options;
        options.kind = io_backend_kind::epoll;
        auto control = std::move(*loop::create(options));
        loop_group_options group;
        group.threads = 2;
        group.loop = options;
        auto loops = std::move(*loop_group::start(group));
        blocking_pool disk;
        runtime_parts_options how;
        how.types = types_;
        how.journal_folder = store_->journal_folder();
        how.handover_folder = store_->directory();
        how.runtimes = most_runtimes;
        how.drain = duration::zero();
        how.address_grace = address_grace_;
        runtime_parts runtimes(*store_, disk, *loops, how);
        control->run(lead(runtimes, body, meanwhile));
    }

    static task<void> lead(runtime_parts& runtimes, steps body, bool meanwhile) {
        const auto loaded = co_await runtimes.restore.load();
        EXPECT_TRUE(loaded);
        scope starts(co_await current_source());
        starts.spawn(runtimes.restore.start_loaded());
        if (!meanwhile) co_await starts.join();
        co_await body(runtimes);
        const bool complete = co_await runtimes.lifecycle.shut_down(std::chrono::seconds(1));
        EXPECT_TRUE(complete);
        co_await starts.join();
    }
};

inline runtime_request wanted(std::string name, json options = json::object()) {
    runtime_request request;
    request.type = "fake";
    request.name = std::move(name);
    request.options = std::move(options);
    return request;
}

/// As the control API shows it now.
inline json describe(const managed_runtime& which) {
    return show_runtime(which, loop::current().now());
}

inline task<runtime_ref> make(runtime_parts& runtimes, runtime_request request) {
    auto made = co_await runtimes.editor.create(std::move(request));
    EXPECT_TRUE(made) << (made ? "" : made.error().message);
    co_return made ? *made : nullptr;
}

}  // namespace eddy::daemon::testing
