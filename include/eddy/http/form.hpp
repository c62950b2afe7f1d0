// URL-encoded forms: the body that a browser sends for a form without files.
//
//     auto sent = co_await http::read_form(request);
//     if (!sent) co_return http::response();
//     const std::string_view name = sent->find("name").value_or("you");
//     co_return http::text("hello, " + std::string(name));
#pragma once

#include <eddy/base/result.hpp>
#include <eddy/http/request.hpp>
#include <eddy/io/task.hpp>
#include <eddy/wire/http1/target.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace eddy::http {

/// Limits on a form; beyond one the request is answered with 413.
struct form_limits {
    /// Bytes of the body; none: the session's limit.
    std::optional<std::uint64_t> bytes = std::nullopt;
    std::size_t fields = 1000;      ///< fields
    std::size_t name = 1024;        ///< bytes of a name, decoded
    std::size_t value = 64 * 1024;  ///< bytes of a value, decoded
};

/// Fields of a form in their order; several may have one name. One thread.
class form {
public:
    /// No fields.
    form() = default;
    /// These fields.
    explicit form(std::vector<http1::query_parameter> fields) noexcept
        : fields_(std::move(fields)) {}

    /// The fields, decoded.
    const std::vector<http1::query_parameter>& fields() const noexcept { return fields_; }
    /// The first value of that name.
    std::optional<std::string_view> find(std::string_view name) const noexcept;

private:
    std::vector<http1::query_parameter> fields_;
};

/// Reads a body of Content-Type application/x-www-form-urlencoded, which must not have been read in
/// part. Yields a result<form>. Fails with errc::unsupported for another type (415),
/// errc::malformed for a '%' without two hexadecimal digits (400), errc::limit_reached (413), and
/// as request::collect(). After all of these the session answers by itself, whatever the handler
/// returns. The request must live until then. The loop's thread.
task<result<form>> read_form(request& incoming, form_limits limits);
/// The same with the default limits. Yields and fails as the other one; the request must live until
/// then.
task<result<form>> read_form(request& incoming);

}  // namespace eddy::http
