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
    /// Keys whose time is over are kept, as a replica does, which waits for its master to delete
    /// them. Otherwise they are left out.
    bool keep_expired = false;
    /// What becomes of a key that is there already. A library of functions that is there is
    /// replaced, unless all are faults.
    enum class existing : std::uint8_t { keys_are_faults, all_are_faults, replaced };
    existing when_there = existing::keys_are_faults;
    /// Where the file says where its data stands in a stream of replication, keys whose time is
    /// over are kept: their end goes into the stream.
    bool goes_on = false;
};

/// Counts of the input so far.
struct load_counts {
    std::uint64_t keys = 0;       ///< added
    std::uint64_t expired = 0;    ///< left out, as their time is over
    std::uint64_t empty = 0;      ///< left out, as they had no elements
    std::uint64_t libraries = 0;  ///< of functions, loaded
};

/// Loader of one file in pieces of any size. A key appears when its value is whole; an existing one
/// is a fault, unless the options say otherwise. After a fault the keys before it stay, so callers
/// that need all or nothing begin with empty databases and clear them. Keys are added without
/// regard to max_memory. Between the pieces the engine may execute commands. The engine must
/// outlive it; one thread.
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
    /// For which database a stream of commands goes on behind the file.
    std::uint8_t stream_database() const noexcept { return stream_database_; }
    /// Where the file's data stands in a stream of replication, if it says so.
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
    bool is_over_ = false;  // the key is to be left out
    load_counts counts_;
    std::string library_fault_;
    reader reader_;
};

}  // namespace eddy::cache::rdb
