// Fields of HTTP messages as tables of scripts.
#pragma once

#include <eddy/wire/http1/headers.hpp>

#include "script/value.hpp"

#include <expected>
#include <string>
#include <string_view>

namespace eddy::script {

/// Fields by their names in lower case; those of one name are one, as RFC 9110 (5.3) has it:
/// joined by ", ", cookies by "; ".
table fields_of(const http1::header_list& from);

/// The same, pushed without a copy. May raise.
void push_fields(lua::stack in, const http1::header_list& from);

/// The text of a value that is one, or a number, kept in `kept`; null for other values.
const std::string* text_of(const value& of, std::string& kept);

/// Appends the fields of a table by names, each a text, a number or a list of these. The error is
/// a sentence without its end, such as "the header A cannot be sent".
std::expected<void, std::string> add_fields(const value& from, http1::header_list& to);

}  // namespace eddy::script
