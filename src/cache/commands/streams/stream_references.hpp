// KEEPREF, DELREF and ACKED as arguments.
#pragma once

#include "base/text/text.hpp"
#include "cache/types/streams/stream.hpp"

#include <string_view>

namespace eddy::cache {

/// False if the word is none of the three.
inline bool stream_references_argument(std::string_view word, stream_references& to) noexcept {
    if (is_word(word, "keepref")) {
        to = stream_references::keep;
    } else if (is_word(word, "delref")) {
        to = stream_references::remove;
    } else if (is_word(word, "acked")) {
        to = stream_references::spare_referenced;
    } else {
        return false;
    }
    return true;
}

}  // namespace eddy::cache
