// Access of files to their loop, and their requests to the kernel.
#pragma once

#include <eddy/io/blocking.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/operation.hpp>

#include "io/io_backend.hpp"

#include <cerrno>
#include <cstddef>
#include <memory>
#include <system_error>

namespace eddy {

struct file_access {
    static io_backend& io_backend_of(loop& of) noexcept { return *of.io_backend_; }
    /// The loop's threads for files, made when they are first needed.
    static blocking_pool& threads(loop& of) {
        if (!of.file_threads_)
            of.file_threads_ = std::make_unique<blocking_pool>(
                blocking_options{of.most_file_threads_, of.most_file_queue_});
        return *of.file_threads_;
    }
};

/// A request of an io-backend that has_file_requests().
class file_operation final : public operation, private completion {
public:
    file_operation(io_backend& where, const file_request& what) noexcept
        : io_backend_(&where), what_(what) {}
    void set_error(std::error_code error) noexcept override { error_ = error; }
    result<std::size_t> take_result() const noexcept {
        if (error_) return fail(error_);
        return count_;
    }

private:
    bool start() override {
        io_backend_->start_file(what_, *this);
        return false;
    }
    void on_cancel() noexcept override {
        stopped_ = true;
        io_backend_->cancel_file(*this);
    }
    void on_completion(int result, unsigned) override {
        // EINTR is how the kernel answers, too, when it stopped a request that had begun to wait.
        const bool ended_early = result == -ECANCELED || result == -EINTR;
        if (ended_early && !stopped_) return io_backend_->start_file(what_, *this);
        if (ended_early)
            error_ = errc::cancelled;
        else if (result < 0)
            error_ = errno_code(-result);
        else
            count_ = static_cast<std::size_t>(result);
        complete_now();
    }

    io_backend* io_backend_;
    file_request what_;
    std::size_t count_ = 0;
    std::error_code error_;
    bool stopped_ = false;  // by a cancellation
};

}  // namespace eddy
