// Reader of encoded content that yields it decoded, for requests and responses.
#pragma once

#include <eddy/base/byte_buffer.hpp>
#include <eddy/http/body.hpp>
#include <eddy/http/compression.hpp>

#include "http/codings/decoder.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace eddy::http {

/// Decoder around the body of a message. Memory: the decoder's, and one piece; whole() has the
/// encoded content, too. The limit on the body holds for both forms of it. Errors beside those of
/// `from` are those of the decoder, errc::truncated among them. One loop's thread.
class decoding_reader final : public body_reader {
public:
    /// Bytes of a piece at most.
    static constexpr std::size_t piece_bytes = 64 * 1024;

    /// `from` must outlive it.
    decoding_reader(body_reader& from, decoder by, const expansion_limits& expansion) noexcept;
    /// The same for content that was encoded several times: `from` decodes it for this one, and
    /// `first`, which may be the same, reads the message. The expansion of all together is limited,
    /// too. Both must outlive it.
    decoding_reader(decoding_reader& from, const decoding_reader& first, decoder by,
                    const expansion_limits& expansion) noexcept
        : decoding_reader(from, std::move(by), expansion) {
        first_ = &first;
    }

    task<result<std::string_view>> read() override;
    task<result<std::string>> whole(std::size_t limit) override;
    void set_limit(std::uint64_t bytes) noexcept override;
    std::uint64_t limit() const noexcept override { return limit_; }
    bool ended() const noexcept override { return has_ended_; }
    const http1::header_list& trailers() const noexcept override { return from_.trailers(); }

    /// The error of the content that ended reading: not that of `from`.
    std::error_code failure() const noexcept { return failure_; }

private:
    bool has_work() const noexcept { return !input_.empty() || is_full_; }
    result<> decode(std::string_view& input);
    result<> finish();

    body_reader& from_;
    const decoding_reader* first_ = nullptr;  // null: this one
    decoder by_;
    expansion_limits expansion_;
    std::uint64_t limit_;
    std::string_view input_;  // of from_, not decoded yet
    byte_buffer out_;
    std::error_code failure_;
    bool is_full_ = false;  // the decoder may have more without input
    bool has_ended_;
};

}  // namespace eddy::http
