// Second loop of a test, on a thread of its own.
#pragma once

#include <eddy/io/executor.hpp>
#include <eddy/io/loop_group.hpp>

#include "io/testing.hpp"

#include <memory>

namespace eddy::testing {

/// A loop of the same kind as the test's.
class other_loop {
public:
    explicit other_loop(io_backend_kind kind) {
        loop_group_options options;
        options.threads = 1;
        options.loop.kind = kind;
        group_ = must(loop_group::start(options));
    }
    executor where() const { return group_->executor(0); }
    void stop() { group_->stop(); }

private:
    std::unique_ptr<loop_group> group_;
};

}  // namespace eddy::testing
