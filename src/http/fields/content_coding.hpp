// Content codings, and the choice among them by Accept-Encoding (RFC 9110, 12.5.3).
#pragma once

#include <eddy/wire/http1/headers.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace eddy::http {

/// A coding of content; `identity` is none.
enum class content_coding : std::uint8_t { identity, gzip, deflate, br, zstd };
/// Number of codings.
inline constexpr std::size_t content_codings = 5;

/// The name in Content-Encoding.
std::string_view to_string(content_coding coding) noexcept;

/// Codings of one content that are decoded at most.
inline constexpr std::size_t most_stacked_codings = 2;

/// Codings that a message's fields Content-Encoding name, in the order in which they were applied;
/// identity is left out.
struct coding_list {
    std::array<content_coding, most_stacked_codings> all{};
    std::size_t count = 0;  ///< counts also codings beyond the size of `all`
    bool is_known = true;   ///< false: a coding is unknown
};

/// Codings of a message's fields Content-Encoding.
coding_list codings_of(const http1::header_list& fields) noexcept;

/// The one coding that a message's fields Content-Encoding name; identity without one, none for
/// codings that are unknown, or several.
std::optional<content_coding> coding_of(const http1::header_list& fields) noexcept;

/// The codings that a client accepts, each with its quality in thousandths. One thread.
class accepted_codings {
public:
    /// Reads the fields Accept-Encoding; without one, identity alone is accepted. Items that cannot
    /// be read are skipped.
    explicit accepted_codings(const http1::header_list& fields) noexcept;

    /// 1 to 1000, or 0 for a coding that is not accepted. Identity that the client does not name is
    /// accepted with 1, below all that it names.
    unsigned quality(content_coding of) const noexcept {
        return qualities_[static_cast<std::size_t>(of)];
    }

    /// The one of `offered` with the highest quality, the first of equal ones; identity when none
    /// is accepted.
    content_coding choose(std::span<const content_coding> offered) const noexcept;

private:
    std::array<unsigned, content_codings> qualities_{};
};

}  // namespace eddy::http
