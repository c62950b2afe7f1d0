// Connection slots: the count of the connections that were assigned to a loop by another one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace eddy::serving {

/// The slots of one loop. Any thread. It outlives the slots that are taken.
class connection_slots {
public:
    /// `all` counts the slots of all loops of the server, and outlives this object.
    explicit connection_slots(std::atomic<std::uint64_t>& all) noexcept : all_(all) {}

    struct leaver {
        void operator()(connection_slots* of) const noexcept { of->leave(); }
    };

    std::uint64_t taken() const noexcept { return taken_; }
    /// Takes a slot, which is given up when what is returned dies. Once that is released, its owner
    /// calls leave().
    std::unique_ptr<connection_slots, leaver> take() noexcept {
        ++taken_;
        ++all_;
        return std::unique_ptr<connection_slots, leaver>(this);
    }
    void leave() noexcept {
        --taken_;
        --all_;
    }

private:
    std::atomic<std::uint64_t> taken_{0};
    std::atomic<std::uint64_t>& all_;
};

/// A connection's slot from its assignment on; null on the loop that accepts.
using connection_slot = std::unique_ptr<connection_slots, connection_slots::leaver>;

}  // namespace eddy::serving
