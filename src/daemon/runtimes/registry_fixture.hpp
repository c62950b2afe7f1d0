// Fixture of tests that need runtimes without instances: a registry of the fake type.
#pragma once

#include <eddy/io/loop.hpp>

#include "daemon/runtimes/managed_runtime.hpp"
#include "daemon/runtimes/runtime_registry.hpp"
#include "daemon/testing.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace eddy::daemon::testing {

class registry_fixture : public ::testing::Test {
public:  // for coroutines, which are no members
    static runtime_record record(std::string name, std::string owner = {}, std::string group = {}) {
        runtime_record made;
        made.id = "id-" + name;
        made.name = std::move(name);
        made.type = "fake";
        made.owner = std::move(owner);
        made.group = std::move(group);
        return made;
    }
    runtime_ref add(runtime_record of) {
        auto fresh = std::make_shared<managed_runtime>(std::move(of),
                                                       std::make_shared<runtime_journal>(*loop_));
        registry_.add(fresh);
        return fresh;
    }

    static constexpr std::size_t limit = 3;
    const std::unique_ptr<loop> loop_ = std::move(*loop::create(epoll()));
    const std::vector<runtime::type> types_ = fake_types();
    runtime_registry registry_{types_, limit};

private:
    static loop_options epoll() {
        loop_options options;
        options.kind = io_backend_kind::epoll;
        return options;
    }
};

}  // namespace eddy::daemon::testing
