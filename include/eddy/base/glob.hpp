// Glob patterns, for names on the command line and the cache's KEYS.
#pragma once

#include <string_view>

namespace eddy {

/// True if the whole `text` matches `pattern`, by the rules of Redis's KEYS. These are rules of
/// bytes, not characters:
///
///     *       any run of bytes, also none         ?       any one byte
///     [abc]   one of these                        [a-z]   one in the range, either way round
///     [^a]    one byte that is none of these      \x      x itself, in a class too
///
/// A class without its ']' ends with the pattern; a lone backslash at the end is itself. Time is
/// at most pattern × text, with no recursion and no memory, whatever the pattern. Any thread.
bool glob_match(std::string_view pattern, std::string_view text) noexcept;

/// True if `pattern` contains any of * ? [ or a backslash; otherwise it matches only itself. Any
/// thread.
bool glob_has_wildcard(std::string_view pattern) noexcept;

}  // namespace eddy
