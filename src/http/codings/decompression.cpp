// Middleware that decodes the content of requests.
#include <eddy/base/assert.hpp>
#include <eddy/http/compression.hpp>

#include "http/codings/decoding_reader.hpp"
#include "http/fields/content_coding.hpp"

#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::http {
namespace {

response refusal_of(int status, std::string_view what) {
    return text(std::string(http1::reason_phrase(status)) + ": " + std::string(what) + "\n",
                status);
}

task<response> refuse_coding() {
    response refused =
        refusal_of(415, "the content has a coding, or several, that the server does not decode");
    refused.add("Accept-Encoding", "gzip, deflate, br, zstd");
    co_return refused;
}

task<response> decode_request(request& incoming, chain rest, content_coding coding,
                              decompress_options options) {
    auto by = decoder::make(coding);
    if (!by) throw std::bad_alloc();
    auto made =
        std::make_unique<decoding_reader>(incoming.body(), std::move(*by), options.expansion);
    const decoding_reader& reader = *made;
    incoming.set_body(std::move(made));
    response answer = co_await rest(incoming);
    if (!reader.failure()) co_return answer;
    if (reader.failure() == errc::limit_reached)
        co_return refusal_of(413, "the decoded content is above the limit");
    if (reader.failure() == std::errc::not_enough_memory) throw std::bad_alloc();
    co_return refusal_of(400, "the content is damaged: it cannot be decoded");
}

}  // namespace

router::middleware decompress(decompress_options options) {
    EDDY_PRECONDITION(options.expansion.ratio > 0, "decompress_options: the ratio is at least 1");
    return [options](request& incoming, chain rest) -> task<response> {
        const auto coding = coding_of(incoming.headers());
        if (coding == content_coding::identity || incoming.body().ended()) return rest(incoming);
        if (!coding) return refuse_coding();
        return decode_request(incoming, std::move(rest), *coding, options);
    };
}

}  // namespace eddy::http
