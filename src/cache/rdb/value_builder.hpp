// Builder of one value from an RDB reader's events, apart from all databases until it is whole.
#pragma once

#include "cache/keyspace/environment.hpp"
#include "cache/keyspace/keyspace.hpp"
#include "cache/rdb/consumer.hpp"

#include <cstdint>
#include <string_view>

namespace eddy::cache::rdb {

/// Holds at most one value, the last one begun. The environment must outlive it. One thread.
class value_builder : public consumer {
public:
    explicit value_builder(environment& env) noexcept : env_(env), value_(env) {}

    refusal begin(const key_header& of) override;
    refusal listpack() override;
    refusal text(std::string_view whole) override;
    refusal element(std::string_view of_list) override;
    refusal member(std::string_view of_set) override;
    refusal scored(std::string_view of_sorted_set, double score) override;
    refusal field(std::string_view of_hash, std::string_view value) override;
    refusal timed_field(std::string_view of_hash, std::string_view value,
                        std::int64_t ends_at_ms) override;
    refusal stream_block(stream_id id, std::string_view pack) override;
    refusal stream_facts(const redis_stream::facts& known) override;
    refusal group(std::string_view name, stream_id last,
                  std::optional<std::int64_t> entries_read) override;
    refusal pending(stream_id id, std::int64_t delivered_ms, std::uint64_t deliveries) override;
    refusal group_consumer(std::string_view name, std::int64_t seen_ms,
                           std::int64_t active_ms) override;
    refusal owned(stream_id id) override;
    refusal end() override { return end_group(); }

    /// True if there is no value, or one without elements, which a key must not have.
    bool empty() const noexcept { return place_ == nullptr || (is_collection_ && elements_ == 0); }

    /// Stores the value under a new key, without an expiry. There must be a value.
    keyspace::slot* give(keyspace& to, std::string_view key, std::uint64_t hash);

    /// Drops the value.
    void drop();

protected:
    environment& env_;

private:
    entry& made() noexcept { return *keyspace::at(place_); }
    redis_stream& made_stream() noexcept { return *made().pointer<redis_stream>(); }
    refusal end_group() noexcept;

    keyspace value_;  // under the empty key
    keyspace::slot* place_ = nullptr;
    bool is_collection_ = false;
    bool was_listpack_ = false;
    std::uint64_t elements_ = 0;
    stream_group* group_ = nullptr;        // the last one of a stream
    stream_consumer* consumer_ = nullptr;  // the last one of that
    std::size_t owned_ = 0;                // pending entries of the group that have a consumer
};

}  // namespace eddy::cache::rdb
