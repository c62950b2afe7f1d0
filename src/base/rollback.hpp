// Rollback: what undoes a beginning unless its end is reached, by return or by an exception.
#pragma once

#include <utility>

namespace eddy {

/// Calls `undo`, which does not throw, when it dies, unless keep() was called before. The thread
/// that made it.
template <class Undo>
class [[nodiscard]] rollback {
public:
    explicit rollback(Undo undo) : undo_(std::move(undo)) {}
    rollback(const rollback&) = delete;
    rollback& operator=(const rollback&) = delete;
    ~rollback() {
        if (armed_) undo_();
    }

    /// What was begun stays.
    void keep() noexcept { armed_ = false; }

private:
    Undo undo_;
    bool armed_ = true;
};

}  // namespace eddy
