// Loader of an engine's databases from an RDB file, or from a master's full synchronisation.
#pragma once

#include "cache/engine/engine.hpp"
#include "cache/rdb/reader.hpp"
#include "cache/rdb/value_builder.hpp"
#include "cache/replication/stream_position.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::cache::rdb {

struct load_options {
    reader_options reading{};
    /// Keeps expired keys, as on a replica, whose master deletes them. Otherwise they are left out.
    bool keep_expired = false;
    /// Treatment of an existing key. An existing library of functions is replaced, except with
    /// all_are_faults.
    enum class existing : std::uint8_t { keys_are_faults, all_are_faults, replaced };
    existing when_there = existing::keys_are_faults;
    /// Keeps expired keys of a file with a replication position: their expiration is then
    /// propagated.
    bool goes_on = false;
};

/// Counts of the input so far.
struct load_counts {
    std::uint64_t keys = 0;       ///< added
    std::uint64_t expired = 0;    ///< left out, as expired
    std::uint64_t empty = 0;      ///< left out, without elements
    std::uint64_t libraries = 0;  ///< of functions, loaded
};

/// Loader of one file in pieces of any size. A key appears when its value is complete; an existing
/// key is a fault, unless the options permit it. After a fault the keys before it stay, so callers
/// that need all or nothing start with empty databases and clear them. Keys are added regardless of
/// max_memory. The engine may execute commands between the pieces. The engine must outlive it; one
/// thread.
class loader final : private value_builder {
public:
    explicit loader(engine& to, load_options options = {}) : loader(to.internals(), options) {}
    explicit loader(engine_state& to, load_options options = {});

    /// As reader::feed().
    std::size_t feed(std::string_view piece) { return reader_.feed(piece); }
    /// As reader::finish().
    void finish() { reader_.finish(); }
    reader::status now() const noexcept { return reader_.now(); }
    const read_fault& fault() const noexcept { return reader_.fault(); }
    const load_counts& counts() const noexcept { return counts_; }
    /// Database of a stream of commands that follows the file.
    std::uint8_t stream_database() const noexcept { return stream_database_; }
    /// Replication position of the file's data, if it has one.
    std::optional<stream_position> position() const;

private:
    refusal aux(std::string_view name, std::string_view value) override;
    refusal select(std::uint64_t number) override;
    refusal library(std::string_view code) override;
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
    refusal end() override;

    bool make_way(keyspace& in, std::uint64_t hash) const;
    void set_expiry(keyspace& in, keyspace::slot* of) const;

    engine_state& state_;
    bool keep_expired_;
    const bool goes_on_;
    const load_options::existing when_there_;
    std::size_t database_ = 0;
    std::uint8_t stream_database_ = 0;
    std::string stream_id_;
    std::optional<std::uint64_t> stream_offset_;
    std::string key_;
    expiry_time expires_at_ms_ = no_expiry;
    bool is_text_ = false;
    bool is_over_ = false;  // the key is left out
    load_counts counts_;
    std::string library_fault_;
    reader reader_;
};

}  // namespace eddy::cache::rdb
