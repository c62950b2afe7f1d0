// Reloads of a script under way, which a stop ends: they work on what the stop destroys.
#pragma once

#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/operation.hpp>
#include <eddy/io/task.hpp>

#include "base/problem.hpp"

#include <utility>
#include <vector>

namespace eddy::runtime {

/// The loop's thread.
class script_reloads {
public:
    /// Runs the work until it ends, or give_up().
    task<outcome<>> run(task<outcome<>> work) {
        cancel_source own(co_await current_source());
        struct noted {
            script_reloads& in;
            cancel_source& its;
            noted(script_reloads& of, cancel_source& one) : in(of), its(one) {
                in.all_.push_back(&its);
            }
            ~noted() {
                std::erase(in.all_, &its);
                in.ended_.set();
            }
        } const here(*this, own);
        co_return co_await std::move(work).under(own);
    }
    /// Ends their waits.
    void give_up() noexcept {
        for (cancel_source* const each : all_) each->request();
    }
    /// The same, and awaits their end.
    task<void> end() {
        give_up();
        while (!all_.empty()) {
            ended_.reset();
            // Also a stop that is cancelled waits for them.
            if (!co_await ended_.wait()) co_await loop::current().yield();
        }
    }

private:
    std::vector<cancel_source*> all_;
    event ended_;
};

}  // namespace eddy::runtime
