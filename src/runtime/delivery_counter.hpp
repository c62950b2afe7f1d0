// Delivery counter: adds what queued writers send and drop to a runtime's counters.
#pragma once

#include <eddy/net/queued_writer.hpp>

#include "serving/counters.hpp"

#include <cstdint>

namespace eddy::runtime {

/// One loop's thread. `counted` must outlive it.
class delivery_counter final : public queued_writer_observer {
public:
    explicit delivery_counter(serving::counters& counted) noexcept : counted_(counted) {}
    void note_sent(std::uint64_t messages, std::uint64_t bytes) noexcept override {
        counted_.messages_out += messages;
        counted_.bytes_out += bytes;
    }
    void note_dropped(std::uint64_t messages, std::uint64_t) noexcept override {
        counted_.dropped += messages;
    }

private:
    serving::counters& counted_;
};

}  // namespace eddy::runtime
