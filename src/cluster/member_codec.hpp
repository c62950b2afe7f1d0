// JSON text of a member, as folders, etcd and other members of a cluster exchange it, and the
// checks of both directions. What others write is untrusted.
#pragma once

#include "base/problem.hpp"
#include "cluster/membership.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::cluster {

/// Format of the text. Members of the JSON object that this Eddy does not know are ignored, and
/// absent ones have their defaults, so that versions may differ within a cluster. The number rises
/// only for a text that an older Eddy would misunderstand; that one refuses it.
inline constexpr std::int64_t member_format = 1;

/// Bounds of a text beside those of membership.hpp.
inline constexpr std::size_t max_text = 1024;         ///< bytes of a text that is no name
inline constexpr std::size_t max_start_id = 64;       ///< bytes of member_info::id
inline constexpr std::size_t max_member_depth = 16;   ///< arrays and objects within each other
inline constexpr std::size_t max_member_fields = 16;  ///< of a runtime, on average

/// Refuses (400) what is not 1 to max_name bytes of printable UTF-8 without '/', or begins with a
/// dot. A name that passes is safe as a part of a file's name, of a key in etcd, and in a log line.
outcome<> check_member_name(std::string_view name);

/// True for 1 to max_start_id letters, digits, dashes and underscores, as member_info::id has.
bool is_start_id(std::string_view text) noexcept;

/// Refuses (400) what exceeds a bound, or could not be read back: the sentence follows "it". Two
/// runtimes of one name are refused, too.
outcome<> check_member(const member_info& member);

/// The text of a member, without white space; runtimes by name. Refuses as check_member(), and a
/// text of more than max_member_bytes.
outcome<std::string> encode_member(const member_info& member);

/// The inverse, of any bytes. The sentence of a refusal (400) follows "it".
outcome<member_info> decode_member(std::string_view text);

/// Orders the runtimes by name, as member_info promises.
void sort_runtimes(member_info& member);

}  // namespace eddy::cluster
