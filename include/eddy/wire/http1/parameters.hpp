// A field's value with parameters, such as `multipart/form-data; boundary="a b"`.
#pragma once

#include <eddy/base/result.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace eddy::http1 {

/// A name=value behind a semicolon.
struct field_parameter {
    std::string_view name;  ///< as it was spelled; its case means nothing
    std::string value;      ///< without quotes
};

/// Walks the parameters of a media type (RFC 9110, 5.6.6 and 8.3.1) or of a Content-Disposition in
/// their order:
///
///     http1::parameter_reader reader("Text/HTML; charset=\"utf-8\"");
///     if (!http1::equal_ignoring_case(reader.value(), "text/html")) return false;
///     while (auto parameter = reader.next()) seen += parameter->name;
///     if (reader.malformed()) return false;
///
/// Empty parts (a;;b=c) are skipped. A value without quotes may have any visible ASCII but quotes,
/// commas and backslashes, since boundaries are sent so. Within quotes a backslash escapes a quote
/// or a backslash, and stands for itself elsewhere, since names of files are sent so. Views the
/// field until its last use. One thread.
class parameter_reader {
public:
    /// Begins before the first parameter.
    explicit parameter_reader(std::string_view field) noexcept;

    /// The text before the first semicolon, without surrounding blanks.
    std::string_view value() const noexcept { return value_; }
    /// The next parameter; none at the end and at malformed text.
    std::optional<field_parameter> next();
    /// True if next() ended at malformed text.
    bool malformed() const noexcept { return malformed_; }

private:
    bool read_value(std::string& value);

    std::string_view value_;
    std::string_view rest_;
    bool malformed_ = false;
};

/// True if a Content-Type is of this media type, whatever its parameters.
bool has_media_type(std::string_view content_type, std::string_view type) noexcept;

}  // namespace eddy::http1
