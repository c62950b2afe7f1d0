// Rollback: undoes the beginning of an operation unless its end is reached, by return or by an
// exception.
#pragma once

#include <utility>

namespace eddy {

/// Calls `undo`, which must not throw, in its destructor, unless keep() was called before. Only the
/// thread that made it.
template <class Undo>
class [[nodiscard]] rollback {
public:
    explicit rollback(Undo undo) : undo_(std::move(undo)) {}
    rollback(const rollback&) = delete;
    rollback& operator=(const rollback&) = delete;
    ~rollback() {
        if (armed_) undo_();
    }

    /// Keeps what was begun: `undo` is not called.
    void keep() noexcept { armed_ = false; }

private:
    Undo undo_;
    bool armed_ = true;
};

}  // namespace eddy
