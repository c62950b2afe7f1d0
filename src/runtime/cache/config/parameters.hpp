// Parameters of redis.conf in one line, as --config has them: NAME VALUE; NAME VALUE.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::runtime::cache {

using parameter_list = std::vector<std::pair<std::string, std::string>>;

/// Names and values; none when a quote stays open, something follows one, or a name has no value:
/// an empty value is written "". A value in double quotes may hold everything; \\, \" and \xHH, any
/// byte by two hexadecimal digits, stand for what they do in redis.conf, and so do \n, \r, \t, \a
/// and \b.
std::optional<parameter_list> split_parameters(std::string_view text);

/// The same the other way, in printable ASCII.
std::string join_parameters(const parameter_list& all);

/// The same line with `hidden` in the place of passwords.
std::string without_secrets(const std::string& text);

}  // namespace eddy::runtime::cache
