// Test fixture: a master engine, and replicas of it without connections.
#pragma once

#include "cache/rdb/snapshot.hpp"
#include "cache/replication/replication.hpp"
#include "cache/testing/test_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace eddy::cache::testing {

/// Bytes that a replica would be sent, taken without a connection.
inline std::string sent_to(engine& home, client_session& who) {
    replication& its = *home.internals().replication.replicating;
    replica& of = *replication::find(who);
    std::string text;
    for (;;) {
        const replication::output next = its.next_output(of);
        if (next.text.empty()) return text;
        text += next.text;
        its.note_sent(of, next);
    }
}

struct master_engine {
    master_engine() {
        engine_options options;
        options.replication.sync_delay_s = 0;
        options.replication.backlog_size = 100'000;
        home = std::make_unique<engine>(options);
        home->set_time(std::chrono::seconds(1'000'000));
    }
    /// Follows, and gets a copy of what is there.
    std::string join(test_client& replica_client) {
        EXPECT_EQ(replica_client("REPLCONF capa eof capa psync2"), "+OK\r\n");
        EXPECT_EQ(replica_client("PSYNC ? -1"), "");
        replication& its = *home->internals().replication.replicating;
        EXPECT_TRUE(its.copy_is_due());
        rdb::snapshot* const image = rdb::snapshot::begin(*home);
        const auto copy = its.begin_copy();
        byte_buffer out;
        while (image->step(out) == rdb::snapshot::status::writing) {
        }
        image->end();
        its.add_piece(*copy, std::move(out), true);
        std::string sent = sent_to(*home, replica_client.who());
        EXPECT_EQ(replica_client("REPLCONF ACK 0"), "");
        return sent;
    }
    std::unique_ptr<engine> home;
};

}  // namespace eddy::cache::testing
