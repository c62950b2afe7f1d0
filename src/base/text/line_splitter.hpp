// Line splitter: lines of received bytes, in which a line that is too long is cut and the rest of
// it skipped.
#pragma once

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace eddy {

/// The result depends on the bytes alone, not on the pieces in which they come. Memory: one line of
/// the largest size. One thread.
class line_splitter {
public:
    /// Calls `each(line, is_cut)` for each line that ends within `bytes`: without its "\n" or
    /// "\r\n", and if it has more than `longest` bytes, the first `longest` of them. The view ends
    /// with the call.
    template <class Each>
    void take(std::string_view bytes, std::size_t longest, Each each) {
        while (!bytes.empty()) {
            const std::size_t end = bytes.find('\n');
            std::string_view line = bytes.substr(0, end);
            if (end == std::string_view::npos) return begin(line, longest);
            bytes.remove_prefix(end + 1);
            if (!begun_.empty()) {
                begin(line, longest);
                line = begun_.text();
            }
            const bool is_cut = line.size() - (line.ends_with('\r') ? 1 : 0) > longest;
            if (!is_cut && line.ends_with('\r')) line.remove_suffix(1);
            each(line.substr(0, longest), is_cut);
            begun_.clear();
            begun_.release_if_empty();
        }
    }
    /// The end of the bytes: a last line without a newline is a line all the same.
    template <class Each>
    void finish(std::size_t longest, Each each) {
        if (!begun_.empty()) take("\n", longest, each);
    }

    /// Bytes kept of a line that has not ended: more than `longest` only if it is too long, but for
    /// the "\r" of its end.
    std::size_t begun() const noexcept { return begun_.size(); }

private:
    /// Keeps of a line what shows that it is too long, with the "\r" of its end: two bytes more.
    void begin(std::string_view piece, std::size_t longest) {
        EDDY_ASSERT(!piece.ends_with('\n'));
        const std::size_t most = longest + 2;
        begun_.append(piece.substr(0, most - std::min(begun_.size(), most)));
    }

    byte_buffer begun_;
};

}  // namespace eddy
