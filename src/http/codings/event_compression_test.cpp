// Compressed event streams: each event arrives at once, as plain decoders of zlib, brotli and zstd
// see it, and as this library's client does; heartbeats too.
#include <eddy/http/client_pool.hpp>
#include <eddy/http/compression.hpp>
#include <eddy/http/sse.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/scope.hpp>

#include "http/testing.hpp"

#include <brotli/decode.h>
#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::http {
namespace {

using namespace std::chrono_literals;
using testing::must;

/// Decoder of a library's own, without anything of Eddy's.
class plain_decoder {
public:
    explicit plain_decoder(std::string coding) : coding_(std::move(coding)) {
        if (coding_ == "gzip" && inflateInit2(&zlib_, 16 + MAX_WBITS) != Z_OK)
            throw std::runtime_error("zlib");
    }
    ~plain_decoder() {
        if (coding_ == "gzip") inflateEnd(&zlib_);
    }
    plain_decoder(const plain_decoder&) = delete;
    plain_decoder& operator=(const plain_decoder&) = delete;

    /// All that comes of what has arrived so far.
    std::string operator()(std::string_view piece) {
        std::string out(64 * 1024, '\0');
        if (coding_ == "gzip")
            out.resize(inflated(piece, out));
        else if (coding_ == "br")
            out.resize(unbrotlied(piece, out));
        else
            out.resize(unzstded(piece, out));
        return out;
    }

private:
    std::size_t inflated(std::string_view piece, std::string& out) {
        zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
        zlib_.avail_in = static_cast<uInt>(piece.size());
        zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
        zlib_.avail_out = static_cast<uInt>(out.size());
        const int done = inflate(&zlib_, Z_SYNC_FLUSH);
        EXPECT_TRUE(done == Z_OK || done == Z_STREAM_END || done == Z_BUF_ERROR) << done;
        EXPECT_EQ(zlib_.avail_in, 0U);
        return out.size() - zlib_.avail_out;
    }
    std::size_t unbrotlied(std::string_view piece, std::string& out) {
        std::size_t in_size = piece.size();
        std::size_t room = out.size();
        auto in = reinterpret_cast<const std::uint8_t*>(piece.data());
        auto to = reinterpret_cast<std::uint8_t*>(out.data());
        const auto done =
            BrotliDecoderDecompressStream(brotli_.get(), &in_size, &in, &room, &to, nullptr);
        EXPECT_NE(done, BROTLI_DECODER_RESULT_ERROR);
        EXPECT_EQ(in_size, 0U);
        return out.size() - room;
    }
    std::size_t unzstded(std::string_view piece, std::string& out) {
        ZSTD_inBuffer in{piece.data(), piece.size(), 0};
        ZSTD_outBuffer to{out.data(), out.size(), 0};
        while (in.pos < in.size) {
            const std::size_t done = ZSTD_decompressStream(zstd_.get(), &to, &in);
            EXPECT_FALSE(ZSTD_isError(done)) << ZSTD_getErrorName(done);
            if (ZSTD_isError(done)) break;
        }
        return to.pos;
    }

    std::string coding_;
    z_stream zlib_{};
    std::unique_ptr<BrotliDecoderState, decltype(&BrotliDecoderDestroyInstance)> brotli_{
        BrotliDecoderCreateInstance(nullptr, nullptr, nullptr), &BrotliDecoderDestroyInstance};
    std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> zstd_{ZSTD_createDStream(),
                                                                     &ZSTD_freeDStream};
};

constexpr std::array<const char*, 3> codings = {"gzip", "br", "zstd"};
constexpr int events = 20;

class http_event_compression : public testing::with_server {
protected:
    http_event_compression() {
        limits_ = session_limits();
        handler_.answer = [this](request& incoming) { return follow(incoming); };
    }

    task<response> follow(request& incoming) {
        sse_options options;
        options.heartbeat = heartbeat_;
        response made = sse([this](event_writer& out) { return produce(out); }, options);
        http1::request_head head = incoming.head();
        // For clients that decode what they have not asked for themselves.
        if (!coding_.empty()) {
            head.headers.remove("Accept-Encoding");
            must(head.headers.add("Accept-Encoding", coding_));
        }
        compress_response(must(request::make(head, incoming.body())), made);
        co_return made;
    }

    /// Each event once the client has asked for it.
    task<result<>> produce(event_writer& out) {
        for (int i = 0; i < events; ++i) {
            while (wanted_ == 0) {
                asked_.reset();
                const auto woken = co_await asked_.wait();
                if (!woken) co_return woken;
            }
            --wanted_;
            const std::string data = text_of(i);
            const auto sent = co_await out.write(data);
            if (!sent) co_return sent;
        }
        co_return result<>();
    }

    static std::string text_of(int number) {
        return "event " + std::to_string(number) + " of a stream";
    }

    void want_one() {
        ++wanted_;
        asked_.set();
    }

    task<void> accept_all(listener& from) {
        while (auto accepted = co_await from.accept())
            co_await serve(std::move(*accepted), handler_, limits_);
    }

    std::string coding_;  // instead of the client's
    int wanted_ = 0;
    event asked_;
    duration heartbeat_ = duration::max();
};

TEST_P(http_event_compression, each_event_can_be_decoded_as_it_arrives) {
    for (const char* coding : codings) {
        SCOPED_TRACE(coding);
        with_session([&](stream& client) -> task<void> {
            const std::string asked =
                "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAccept-Encoding: " +
                std::string(coding) + "\r\n\r\n";
            must(co_await client.write_all(asked));
            http1::response_parser parser;
            plain_decoder decode(coding);
            std::string waiting;
            std::string plain;
            std::string expected;
            bool has_head = false;
            bool is_over = false;
            for (int seen = 0; !is_over;) {
                auto received = co_await client.read();
                if (!received) break;
                waiting += received->text();
                received->reset();
                for (;;) {
                    const http1::step step = parser.parse(waiting);
                    if (step.what == http1::event::head) {
                        EXPECT_EQ(parser.head().headers.find("Content-Encoding"), coding);
                        EXPECT_EQ(parser.head().headers.find("Content-Type"), sse::content_type);
                        has_head = true;
                        want_one();
                    }
                    if (step.what == http1::event::body) plain += decode(step.body);
                    is_over = step.what == http1::event::end;
                    waiting.erase(0, step.consumed);
                    if (is_over || step.what == http1::event::need_more) break;
                }
                if (seen == events || plain != expected + "data: " + text_of(seen) + "\n\n")
                    continue;
                expected = plain;
                if (++seen < events) want_one();
            }
            EXPECT_TRUE(has_head && is_over);
            EXPECT_EQ(plain, expected);
            EXPECT_TRUE(plain.ends_with(text_of(events - 1) + "\n\n"));
        });
    }
}

TEST_P(http_event_compression, a_client_of_this_library_gets_each_event_at_once) {
    run([&]() -> task<void> {
        listener accepting = must(here().listen(loopback()));
        client_pool_options options;
        options.proxies = {};
        client_pool web(options);
        co_await with_scope([&](scope& serving) -> task<void> {
            serving.spawn(accept_all(accepting));
            for (const char* coding : codings) {
                pool_request wanted;
                wanted.url = "http://127.0.0.1:" + std::to_string(accepting.local().port()) + "/";
                coding_ = coding;
                auto answered = must(co_await web.send(std::move(wanted)));
                sse::parser parser;
                int seen = 0;
                want_one();
                for (;;) {
                    const auto piece = co_await answered.body().read();
                    if (!piece) {
                        EXPECT_EQ(piece.error(), errc::end_of_stream) << coding;
                        break;
                    }
                    std::string_view text = *piece;
                    for (;;) {
                        const sse::step step = parser.parse(text);
                        text.remove_prefix(step.consumed);
                        if (step.what != sse::step_kind::event) break;
                        EXPECT_EQ(parser.event().data, text_of(seen)) << coding;
                        if (++seen < events) want_one();
                    }
                }
                EXPECT_EQ(seen, events) << coding;
            }
        });
    });
}

TEST_P(http_event_compression, heartbeats_arrive_at_once) {
    heartbeat_ = 5ms;
    for (const char* coding : codings) {
        with_session([&](stream& client) -> task<void> {
            const std::string asked =
                "GET / HTTP/1.1\r\nHost: x\r\nAccept-Encoding: " + std::string(coding) + "\r\n\r\n";
            must(co_await client.write_all(asked));
            http1::response_parser parser;
            plain_decoder decode(coding);
            std::string waiting;
            std::string plain;
            while (plain.size() < 6) {
                auto received = must(co_await client.read());
                waiting += received.text();
                for (;;) {
                    const http1::step step = parser.parse(waiting);
                    if (step.what == http1::event::body) plain += decode(step.body);
                    waiting.erase(0, step.consumed);
                    if (step.what == http1::event::need_more) break;
                }
            }
            EXPECT_TRUE(plain.starts_with(":\n\n:\n\n") || plain.starts_with(":\n:\n")) << plain;
            client.close();
        });
    }
}

EDDY_HTTP_ON_EVERY_BACKEND(http_event_compression);

}  // namespace
}  // namespace eddy::http
