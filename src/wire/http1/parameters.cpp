// Parameters of fields (RFC 9110, 5.6.6).
#include <eddy/wire/http1/parameters.hpp>

#include <eddy/wire/http1/headers.hpp>

#include "wire/http1/text.hpp"

#include <algorithm>
#include <cstddef>

namespace eddy::http1 {
namespace {

bool may_stand_unquoted(char c) noexcept {
    return c > ' ' && c < '\x7f' && c != '"' && c != ',' && c != ';' && c != '\\';
}

}  // namespace

parameter_reader::parameter_reader(std::string_view field) noexcept {
    const std::size_t end = std::min(field.find(';'), field.size());
    value_ = trim(field.substr(0, end));
    rest_ = field.substr(end);
}

// Behind the '='.
bool parameter_reader::read_value(std::string& value) {
    if (!rest_.starts_with('"')) {
        std::size_t size = 0;
        while (size < rest_.size() && may_stand_unquoted(rest_[size])) ++size;
        value = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return size > 0;
    }
    for (std::size_t at = 1; at < rest_.size(); ++at) {
        char c = rest_[at];
        if (c == '"') {
            rest_.remove_prefix(at + 1);
            return true;
        }
        const char next = at + 1 < rest_.size() ? rest_[at + 1] : '\0';
        if (c == '\\' && (next == '"' || next == '\\')) {
            c = next;
            ++at;
        }
        value += c;
    }
    return false;
}

std::optional<field_parameter> parameter_reader::next() {
    for (;;) {
        skip_blanks(rest_);
        if (rest_.empty()) return std::nullopt;
        if (rest_[0] != ';') break;
        rest_.remove_prefix(1);
        skip_blanks(rest_);
        if (rest_.empty() || rest_[0] == ';') continue;
        const std::size_t equals = std::min(rest_.find('='), rest_.size());
        field_parameter found;
        found.name = rest_.substr(0, equals);
        if (equals == rest_.size() || !is_token(found.name)) break;
        rest_.remove_prefix(equals + 1);
        if (!read_value(found.value)) break;
        return found;
    }
    malformed_ = true;
    rest_ = {};
    return std::nullopt;
}

bool has_media_type(std::string_view content_type, std::string_view type) noexcept {
    return equal_ignoring_case(parameter_reader(content_type).value(), type);
}

}  // namespace eddy::http1
