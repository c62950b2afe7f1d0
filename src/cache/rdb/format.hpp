// RDB format: the numbers of a dump file, a DUMP payload and a full synchronisation with a replica.
//
//     "REDIS0010"  then, in turn:  AUX name value | SELECTDB n | RESIZEDB keys expiring |
//                                  [EXPIRETIME_MS t] [IDLE n] [FREQ n] type key value |
//     EOF  checksum of all before it, 8 bytes, since version 5
//
// A DUMP payload is  type value | version, 2 bytes | checksum of all before it, 8 bytes.  Numbers
// are little-endian, but for lengths above 14 bits.
//
// Redis 7.0 has no type for a set in a listpack, and a hash or sorted set in a listpack would have
// to be copied to be written as one. So they have the plain type here, with a count of elements in
// a longer form than necessary: all versions read it, and this loader recognizes the listpack by
// it.
//
// The room rdb reads and writes that format. Files in reading order:
//
//   format.hpp, crc64.hpp, lzf.hpp    numbers, checksum, compression
//   file_head.hpp                     magic number: family and version
//   value_writer.hpp, save.hpp        writers of values and of files; stream_writer.hpp
//   snapshot.hpp                      writer of all databases at one instant, while commands run
//   window.hpp, reader.hpp            sans-IO reader; consumer.hpp its events
//   value_builder.hpp, load.hpp       builder of values and databases from those events
//   payload.hpp                       DUMP and RESTORE
//
// It stands on keyspace and types; no file is opened here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::cache::rdb {

/// Family of a format. Valkey has had versions of its own since 9.0, beginning with 80: there some
/// numbers of types and opcodes mean something else.
enum class format_family : std::uint8_t { redis, valkey };

/// Written version: readable by Redis 7.0.
inline constexpr unsigned written_version = 10;
/// Written version with expiring fields of hashes: readable by Redis 7.4.
inline constexpr unsigned written_version_with_expiring_fields = 12;
/// Written for replicas that are Valkey 9 or newer, with expiring fields of hashes.
inline constexpr unsigned written_version_of_valkey = 80;
/// Versions read: up to Redis 8.6.
inline constexpr unsigned min_version = 1;
inline constexpr unsigned max_version = 13;
/// Version of Valkey 9.0 and 9.1, which is read, too.
inline constexpr unsigned version_of_valkey = 80;
/// Begins a file, followed by a number of four digits; Valkey's since 9.0, by three. Both heads
/// have the same length.
inline constexpr std::string_view magic_of_redis = "REDIS";
inline constexpr std::string_view magic_of_valkey = "VALKEY";
inline constexpr std::size_t magic_bytes = 9;
/// Files carry a checksum since this version.
inline constexpr unsigned first_version_with_checksum = 5;

inline constexpr std::size_t checksum_bytes = 8;
/// Bytes after the value in a DUMP payload.
inline constexpr std::size_t dump_footer_bytes = 2 + checksum_bytes;

/// Auxiliary field of a file for a replica: database of the commands after the file.
inline constexpr std::string_view stream_database_aux = "repl-stream-db";
/// Auxiliary fields of a dump: replication ID and offset of its data, in addition to that one.
inline constexpr std::string_view stream_id_aux = "repl-id";
inline constexpr std::string_view stream_offset_aux = "repl-offset";

/// Opcode: a byte in place of a key's type.
enum class opcode : std::uint8_t {
    key_metadata = 243,  // a module's, of the next key; in Valkey's family, an import of slots
    slot_info = 244,
    function = 245,
    old_function = 246,  // of a release candidate
    module_aux = 247,
    idle = 248,
    frequency = 249,
    aux = 250,
    sizes = 251,
    expires_ms = 252,
    expires_s = 253,
    select = 254,
    end = 255,
};

/// Added to a type of Valkey's family whose number Redis uses otherwise; the byte that is written
/// lacks it.
inline constexpr unsigned valkeys_own = 256;

/// Encoding of a value.
enum class object_type : std::uint16_t {
    text = 0,
    list = 1,
    set = 2,
    zset = 3,  // scores as decimal text
    hash = 4,
    zset_2 = 5,  // scores as 8 bytes
    module_1 = 6,
    module_2 = 7,
    hash_zipmap = 9,
    list_ziplist = 10,
    set_intset = 11,
    zset_ziplist = 12,
    hash_ziplist = 13,
    list_quicklist = 14,  // of ziplists
    stream = 15,
    hash_listpack = 16,
    zset_listpack = 17,
    list_quicklist_2 = 18,  // of listpacks and single elements
    stream_2 = 19,
    set_listpack = 20,
    stream_3 = 21,
    hash_with_expiry_rc = 22,  // of a release candidate
    hash_listpack_with_expiry_rc = 23,
    hash_with_expiry = 24,
    hash_listpack_with_expiry = 25,
    stream_4 = 26,  // with the identities of idempotent producers' messages
    valkey_hash_with_expiry = valkeys_own + 22,
};

/// The type that a byte means in a family's files; of no known value if it means none.
constexpr object_type type_written_as(std::uint8_t written, format_family in) noexcept {
    constexpr auto last_shared = static_cast<std::uint8_t>(object_type::stream_3);
    const bool is_valkeys_own = in == format_family::valkey && written > last_shared;
    return static_cast<object_type>(written + (is_valkeys_own ? valkeys_own : 0U));
}

/// The first two bits of a length.
enum class length_form : std::uint8_t { bits_6 = 0, bits_14 = 1, wide = 2, special = 3 };
inline constexpr std::uint8_t length_32 = 0x80;
inline constexpr std::uint8_t length_64 = 0x81;

/// Code in place of a string's length when the string is not plain bytes.
enum class special_text : std::uint8_t { int_8 = 0, int_16 = 1, int_32 = 2, lzf = 3 };

/// The node of a quicklist: one element, or a listpack of them.
enum class quicklist_node : std::uint8_t { plain = 1, packed = 2 };

/// Opcodes of a module's data, one before each item.
enum class module_opcode : std::uint8_t {
    end = 0,
    signed_integer = 1,
    unsigned_integer = 2,
    float_number = 3,
    double_number = 4,
    text = 5,
};

}  // namespace eddy::cache::rdb
