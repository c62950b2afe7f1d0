// Compression of responses: which ones, by which coding, and the producer of encoded content.
#include "http/codings/compression.hpp"

#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/loop.hpp>

#include "http/codings/encoder.hpp"
#include "http/fields/content_coding.hpp"
#include "http/fields/entity_tag.hpp"
#include "http/files/media_types.hpp"

#include <memory>
#include <new>
#include <string>
#include <utility>

namespace eddy::http {
namespace {

/// Compressed at once, and the most that is between two turns of the loop.
constexpr std::size_t slice_bytes = 16 * 1024;

/// Order of preference among codings that a client accepts equally: zstd takes the least time.
constexpr content_coding offered[] = {content_coding::zstd, content_coding::br,
                                      content_coding::gzip, content_coding::deflate,
                                      content_coding::identity};

/// Writer that encodes, and passes on what comes of it.
class encoding_writer final : public body_writer {
public:
    encoding_writer(encoder& by, body_writer& to) noexcept : by_(by), to_(to) {}

    task<result<>> write(std::string_view piece) override {
        return encode(piece, encoder::after::flush);
    }
    bool set_trailers(http1::header_list fields) override {
        return to_.set_trailers(std::move(fields));
    }
    task<result<>> encode(std::string_view piece, encoder::after then) {
        written_ += piece.size();
        do {
            const std::string_view slice = piece.substr(0, slice_bytes);
            piece.remove_prefix(slice.size());
            const result<> added =
                by_.add(slice, piece.empty() ? then : encoder::after::more, out_);
            if (!added) co_return added;
            const auto sent = co_await to_.write(out_.text());
            if (!sent) co_return sent;
            out_.clear();
            since_pause_ += slice.size();
            if (since_pause_ < slice_bytes) continue;
            since_pause_ = 0;
            co_await loop::current().yield();
        } while (!piece.empty());
        co_return result<>();
    }

    std::uint64_t written() const noexcept { return written_; }

private:
    encoder& by_;
    body_writer& to_;
    byte_buffer out_;
    std::uint64_t written_ = 0;
    std::size_t since_pause_ = 0;
};

/// Producer of the encoded form of a body.
class encoding_producer final : public body_producer {
public:
    encoding_producer(content_coding coding, body content) noexcept
        : coding_(coding), content_(std::move(content)) {}

    task<result<>> produce(body_writer& to) override {
        const auto size = content_.size();
        auto by = encoder::make(coding_, size);
        if (!by) co_return fail(by.error());
        encoding_writer writer(**by, to);
        if (body_producer* const from = content_.producer()) {
            const auto produced = co_await from->produce(writer);
            if (!produced) co_return produced;
        } else {
            const auto sent = co_await writer.encode(content_.text(), encoder::after::more);
            if (!sent) co_return sent;
        }
        // The declared size is not sent, so it is checked here.
        if (size && writer.written() != *size)
            co_return fail(writer.written() < *size ? errc::truncated : errc::limit_reached);
        co_return co_await writer.encode({}, encoder::after::end);
    }

    bool is_finite() const noexcept override {
        return content_.size() || content_.producer()->is_finite();
    }

private:
    content_coding coding_;
    body content_;
};

std::string encoded(content_coding coding, std::string_view text) {
    auto by = encoder::make(coding, text.size());
    if (!by) throw std::bad_alloc();
    byte_buffer out;
    if (!(*by)->add(text, encoder::after::end, out)) throw std::bad_alloc();
    return std::string(out.text());
}

bool may_be_compressed(const response& answer, const compress_options& options) {
    const http1::header_list& fields = answer.headers;
    const bool has_content = answer.status >= 200 && answer.status != 204 && answer.status != 206;
    if (!has_content || fields.contains("Content-Encoding") || fields.contains("Content-Range") ||
        fields.contains_token("Cache-Control", "no-transform"))
        return false;
    const auto size = answer.body.size();
    if (size && (*size == 0 || *size < options.min_bytes)) return false;
    const auto type = fields.find("Content-Type");
    return type && is_compressible(*type);
}

void set_tag(response& of, const std::string& tag) {
    of.headers.remove("ETag");
    of.add("ETag", tag);
}

/// A response of 304 has the tag of the one that it stands for: the weak one, if the client has
/// only that.
void weaken_confirmed_tag(const request& incoming, response& answer) {
    const auto field = answer.headers.find("ETag");
    const auto tag = field ? parse_entity_tag(*field) : std::nullopt;
    if (!tag || tag->is_weak) return;
    bool has_weak = false;
    for (const http1::header each : incoming.headers()) {
        if (!http1::equal_ignoring_case(each.name, "If-None-Match")) continue;
        entity_tag_reader list(each.value);
        while (const auto known = list.next()) {
            if (is_same_strongly(*known, *tag)) return;
            has_weak |= is_same_weakly(*known, *tag);
        }
    }
    if (!has_weak) return;
    set_tag(answer, "W/" + std::string(tag->opaque));
}

/// The encoded form of a text, from `results` where it is there. `tag` is empty for none that is
/// strong.
std::string encoded_once(content_coding coding, std::string_view text, std::string_view path,
                         std::string_view tag, coded_cache* results) {
    if (results == nullptr || tag.empty()) return encoded(coding, text);
    const std::string key = std::string(path).append(tag).append(to_string(coding));
    if (const std::string* const known = results->find(key)) return *known;
    std::string made = encoded(coding, text);
    results->insert(key, made);
    return made;
}

void compress_any(const request& incoming, response& answer, const compress_options& options,
                  coded_cache* results) {
    if (answer.status == 304) return weaken_confirmed_tag(incoming, answer);
    if (!may_be_compressed(answer, options)) return;
    if (!answer.headers.contains_token("Vary", "Accept-Encoding") &&
        !answer.headers.contains_token("Vary", "*"))
        answer.add("Vary", "Accept-Encoding");
    if (incoming.minor_version() == 0) return;
    const content_coding coding = accepted_codings(incoming.headers()).choose(offered);
    if (coding == content_coding::identity) return;

    std::string tag(answer.headers.find("ETag").value_or(""));
    if (tag.starts_with("W/")) tag.clear();
    answer.add("Content-Encoding", to_string(coding));
    answer.headers.remove("Accept-Ranges");
    if (!tag.empty()) set_tag(answer, "W/" + tag);
    if (!answer.body.producer() && answer.body.text().size() <= slice_bytes)
        answer.body = body(encoded_once(coding, answer.body.text(), incoming.path(), tag, results));
    else
        answer.body = body(std::make_unique<encoding_producer>(coding, std::move(answer.body)));
}

}  // namespace

void compress_response(const request& incoming, response& answer, const compress_options& options) {
    compress_any(incoming, answer, options, nullptr);
}

void compress_response(const request& incoming, response& answer, const compress_options& options,
                       coded_cache& results) {
    compress_any(incoming, answer, options, &results);
}

namespace {

task<response> compress_answer(request& incoming, chain rest, compress_options options) {
    response answer = co_await rest(incoming);
    compress_response(incoming, answer, options);
    co_return answer;
}

}  // namespace

router::middleware compress(compress_options options) {
    return [options](request& incoming, chain rest) {
        return compress_answer(incoming, std::move(rest), options);
    };
}

}  // namespace eddy::http
