// Comparison of a stream of replies with one that is expected again and again.
#include "cli/bench/repeated_reply.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace eddy::cli::bench {
namespace {

bool is_one_line(const char* text, std::size_t size) noexcept {
    return std::memchr(text, '\r', size) == nullptr && std::memchr(text, '\n', size) == nullptr;
}

}  // namespace

repeated_reply::repeated_reply(std::string text, std::uint64_t total, std::size_t varying_at,
                               std::size_t varying)
    : text_(std::move(text)),
      total_(total),
      varying_begin_(varying_at),
      varying_end_(varying_at + varying) {
    EDDY_ASSERT(text_.size() <= total_ && varying_end_ <= text_.size());
}

bool repeated_reply::is_whole(const char* reply) const noexcept {
    const std::size_t varying = varying_end_ - varying_begin_;
    return std::memcmp(reply, text_.data(), varying_begin_) == 0 &&
           std::memcmp(reply + varying_end_, text_.data() + varying_end_,
                       text_.size() - varying_end_) == 0 &&
           is_one_line(reply + varying_begin_, varying);
}

std::size_t repeated_reply::step(std::string_view input, std::uint64_t at) const noexcept {
    if (at >= text_.size())
        return static_cast<std::size_t>(std::min<std::uint64_t>(input.size(), total_ - at));
    const auto from = static_cast<std::size_t>(at);
    if (from >= varying_begin_ && from < varying_end_) {
        const std::size_t size = std::min(input.size(), varying_end_ - from);
        return is_one_line(input.data(), size) ? size : 0;
    }
    const std::size_t end = from < varying_begin_ ? varying_begin_ : text_.size();
    const std::size_t size = std::min(input.size(), end - from);
    return std::memcmp(input.data(), text_.data() + from, size) == 0 ? size : 0;
}

std::size_t repeated_reply::match(std::string_view input, std::size_t most, std::uint64_t& at,
                                  std::size_t& replies) const noexcept {
    if (total_ == 0) return 0;
    std::size_t used = 0;
    while (used < input.size() && replies < most) {
        const std::string_view rest = input.substr(used);
        if (at == 0 && text_.size() == total_ && rest.size() >= total_ && is_whole(rest.data())) {
            used += text_.size();
            ++replies;
            continue;
        }
        const std::size_t size = step(rest, at);
        if (size == 0) break;
        used += size;
        at += size;
        if (at == total_) {
            at = 0;
            ++replies;
        }
    }
    return used;
}

}  // namespace eddy::cli::bench
