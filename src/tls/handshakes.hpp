// Handshakes in progress of one listener: their number, and the oldest.
#pragma once

#include <eddy/base/intrusive_list.hpp>

#include <cstddef>

namespace eddy::tls {

/// Streams join when their handshake begins and leave when it ends or they are closed. A listener
/// that goes away first lets them go. One loop's thread.
class handshakes {
public:
    struct tag {};
    using member = list_link<tag>;
    using function = void (*)(void* owner);

    /// `on_left` is called whenever one has left; not inside of a call to this object.
    handshakes(function on_left, void* owner) noexcept : on_left_(on_left), owner_(owner) {}

    std::size_t count() const noexcept { return count_; }
    /// There must be one.
    member& oldest() noexcept { return list_.front(); }

    void join(member& one) noexcept {
        list_.push_back(one);
        ++count_;
    }
    void leave(member& one) noexcept {
        one.unlink();
        --count_;
        on_left_(owner_);
    }

    /// Each of them is given to `forget`, and is no member any more.
    template <class F>
    void let_go(F&& forget) {
        while (count_ > 0) {
            --count_;
            forget(list_.pop_front());
        }
    }

private:
    intrusive_list<member, tag> list_;
    std::size_t count_ = 0;
    function on_left_;
    void* owner_;
};

}  // namespace eddy::tls
