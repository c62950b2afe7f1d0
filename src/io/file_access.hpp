// What files need of their loop.
#pragma once

#include <eddy/io/blocking.hpp>
#include <eddy/io/loop.hpp>

#include "io/backend.hpp"

#include <memory>

namespace eddy {

struct file_access {
    static backend& backend_of(loop& of) noexcept { return *of.backend_; }
    /// The loop's threads for files, made when they are first needed.
    static blocking_pool& threads(loop& of) {
        if (!of.file_threads_)
            of.file_threads_ = std::make_unique<blocking_pool>(
                blocking_options{of.most_file_threads_, of.most_file_queue_});
        return *of.file_threads_;
    }
};

}  // namespace eddy
