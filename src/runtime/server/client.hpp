// One client of a stream server.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/net/queued_writer.hpp>
#include <eddy/net/rate_limit.hpp>

#include "runtime/connections.hpp"
#include "runtime/metrics.hpp"

#include <cstdint>
#include <utility>

namespace eddy::runtime::server {

/// Counts what writers send and drop as its worker's.
class delivery_counter final : public queued_writer_observer {
public:
    explicit delivery_counter(counters& counted) noexcept : counted_(counted) {}
    void note_sent(std::uint64_t messages, std::uint64_t bytes) noexcept override {
        counted_.messages_out += messages;
        counted_.bytes_out += bytes;
    }
    void note_dropped(std::uint64_t messages, std::uint64_t) noexcept override {
        counted_.dropped += messages;
    }

private:
    counters& counted_;
};

/// Lives in the coroutine that serves it; broadcasts reach it through `out`.
class client final : public connection {
public:
    client(connections& all, stream accepted, scope& tasks, const queued_writer_options& queue,
           const rate_limiter& pace, serving::connection_slot slot)
        : connection(all, std::move(accepted), tasks.source(), std::move(slot)),
          out(socket, tasks, queue),
          limiter(pace) {}
    /// The waits for this client to read end.
    ~client() { out.abort(); }

    queued_writer out;
    rate_limiter limiter;
    /// What has arrived and could not be passed on yet: part of a line, or what a limit holds back.
    byte_buffer input;
    /// The first message of `input` has its rate limits' leave.
    bool paid = false;
    /// Part of the batch that goes out next is this client's own.
    bool sent_in_batch = false;
    /// It sends nothing more.
    bool finished = false;
    /// It is being closed and gets no more messages.
    bool leaving = false;

    bool listens() const noexcept { return socket && !leaving && !out.error(); }
};

}  // namespace eddy::runtime::server
