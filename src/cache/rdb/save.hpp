// Writer of databases as an RDB file, which Redis 7.0 and all later ones load; with expiring hash
// fields, 7.4 and later ones. Or as commands, for an append-only file.
#pragma once

#include <eddy/base/byte_buffer.hpp>

#include "cache/engine/engine.hpp"
#include "cache/keyspace/keyspace.hpp"
#include "cache/rdb/command_writer.hpp"
#include "cache/rdb/value_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace eddy::cache::rdb {

enum class file_form : std::uint8_t {
    rdb,
    valkey_rdb,  ///< as RDB with Valkey 9's form of expiring fields
    commands,
};

/// Writer of one key in either form. The rules of value_writer.
class key_writer {
public:
    key_writer(environment& env, file_form form) noexcept
        : form_(form),
          value_(env, form == file_form::valkey_rdb ? format_family::valkey : format_family::redis),
          commands_(env) {}

    void begin_key(entry& of) {
        form_ == file_form::commands ? commands_.begin_key(of) : value_.begin_key(of);
    }
    bool write(byte_buffer& out, std::size_t limit) {
        std::size_t all = SIZE_MAX;
        return write(out, limit, all);
    }
    bool write(byte_buffer& out, std::size_t limit, std::size_t& parts) {
        return form_ == file_form::commands ? commands_.write(out, limit, parts)
                                            : value_.write(out, limit, parts);
    }

private:
    const file_form form_;
    value_writer value_;
    command_writer commands_;
};

/// Select and library outside of a file_writer, for what it append()s later.
void put_select(byte_buffer& out, file_form form, std::size_t database);
void put_library(byte_buffer& out, file_form form, std::string_view code);

/// The parts of a file: header(), then select() and keys in any order, then end(). All bytes that
/// are appended pass through the checksum; the caller may take them from the buffers at any time.
/// A file of commands has neither a header nor an end. One thread.
class file_writer {
public:
    /// Decides now whether the file has expiring fields of hashes: none may be added later.
    explicit file_writer(environment& env, file_form form = file_form::rdb) noexcept;

    /// The magic number. aux() may follow.
    void header(byte_buffer& out);
    /// Both, with Redis's auxiliary fields. `at_s` is since 1970, `aof_base`: an append-only file
    /// continues it.
    void begin_file(byte_buffer& out, std::int64_t at_s, std::size_t used_memory, bool aof_base);
    void aux(byte_buffer& out, std::string_view name, std::string_view value);
    /// A library of functions; before all keys.
    void library(byte_buffer& out, std::string_view code);
    /// The keys that follow are of this database, which has about so many.
    void select(byte_buffer& out, std::size_t database, std::size_t keys, std::size_t expiring);
    /// The same without how many.
    void select(byte_buffer& out, std::size_t database);

    /// The next key, written by write(). The entry must neither change nor move until that is done.
    void begin(entry& key) { key_.begin_key(key); }
    /// As value_writer::write(). True as well when no key was begun.
    bool write(byte_buffer& out, std::size_t limit);

    /// Appends what a value_writer has made elsewhere: whole keys, or parts of one in turn.
    void append(byte_buffer& out, std::string_view made);
    /// Takes account of what a value_writer has appended to `out` itself, behind so many bytes.
    void count(const byte_buffer& out, std::size_t before) noexcept;

    /// The end mark and the checksum.
    void end(byte_buffer& out);

private:
    const file_form form_;
    key_writer key_;
    bool has_expiring_fields_;
    std::uint64_t sum_ = 0;
};

/// Walks over all databases and writes them as a file, some bytes a call. From the first call to
/// the last the engine must execute nothing, and its upkeep must wait: what is written is the state
/// of one moment because the state stands still.
class saver {
public:
    explicit saver(engine& from, file_form form = file_form::rdb) : saver(from.internals(), form) {}
    explicit saver(engine_state& from, file_form form = file_form::rdb);

    /// Appends until `out` holds about `limit` bytes; value_writer says how much more it may be.
    /// False when the file is complete.
    bool next(byte_buffer& out, std::size_t limit = 64U << 10);

private:
    void begin(byte_buffer& out);
    bool advance(byte_buffer& out);

    engine_state& state_;
    file_writer file_;
    bool begun_ = false;
    bool ended_ = false;
    std::size_t database_ = 0;
    bool in_database_ = false;             // its head is written
    bool at_end_ = false;                  // all its buckets were visited
    std::uint64_t cursor_ = 0;             // of its table's walk
    std::vector<dictionary::slot> found_;  // of the last buckets
    std::size_t visited_ = 0;              // of those
};

}  // namespace eddy::cache::rdb
