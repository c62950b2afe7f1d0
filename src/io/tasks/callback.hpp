// Callback in place of a coroutine: an operation that begins with callback::begin() calls it when
// it completes. For drivers that wait on another stream without being coroutines.
#pragma once

#include <eddy/base/frame_pool.hpp>
#include <eddy/io/operation.hpp>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <utility>

namespace eddy {

/// One function of one owner. The call may destroy the owner and with it this object.
class callback {
public:
    using function = void (*)(void* owner);

    callback(function call, void* owner) : call_(call), owner_(owner), frame_(calls(this).frame) {}
    ~callback() {
        if (gone_)
            *gone_ = true;  // inside the call: the frame ends by itself when that returns
        else
            frame_.destroy();
    }
    callback(const callback&) = delete;
    callback& operator=(const callback&) = delete;

    /// Begins a wait that ends in a call of this function. False when it completed at once. The
    /// caller continues with its frame memory; the function inherits nothing from it.
    bool begin(operation& op) const {
        const detail::frames_from pool(nullptr);
        return op.begin(frame_, nullptr);
    }

private:
    struct body {
        struct promise_type {
            static void* operator new(std::size_t size) { return frame_allocate(size); }
            static void operator delete(void* frame, std::size_t size) noexcept {
                frame_free(frame, size);
            }
            body get_return_object() noexcept {
                return {std::coroutine_handle<promise_type>::from_promise(*this)};
            }
            std::suspend_always initial_suspend() const noexcept { return {}; }
            std::suspend_never final_suspend() const noexcept { return {}; }
            void return_void() const noexcept {}
            void unhandled_exception() const noexcept { std::terminate(); }
        };
        std::coroutine_handle<promise_type> frame;
    };

    static body calls(callback* self) {
        for (;;) {
            bool gone = false;
            self->gone_ = &gone;
            self->call_(self->owner_);
            if (gone) co_return;
            self->gone_ = nullptr;
            co_await std::suspend_always();
        }
    }

    function call_;
    void* owner_;
    bool* gone_ = nullptr;
    std::coroutine_handle<> frame_;
};

/// For a driver that closes while its operation on the stream below may be under way, after that
/// stream was closed: true when the operation has ended. A completed operation whose callback is
/// still to be called is withdrawn from the loop; any other calls back later.
inline bool ended_unused(bool& in_flight, operation* below) noexcept {
    if (!in_flight) return true;
    if (!below->linked()) return false;
    below->unlink();
    in_flight = false;
    return true;
}

}  // namespace eddy
