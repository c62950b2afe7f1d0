// Event streams as bodies: the producer beside its heartbeat.
#include <eddy/http/sse.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/scope.hpp>
#include <eddy/io/when.hpp>

#include <string>

namespace eddy::http {

task<result<>> event_writer::write(const sse::event& event) {
    return flush(sse::write_event(out_, event));
}

task<result<>> event_writer::write(std::string_view data) {
    sse::write_data(out_, data);
    return flush({});
}

task<result<>> event_writer::comment(std::string_view text) {
    sse::write_comment(out_, text);
    return flush({});
}

task<result<>> event_writer::flush(result<> encoded) {
    if (!encoded) co_return encoded;
    auto sent = co_await write_encoded(out_.text());
    out_.clear();
    co_return sent;
}

task<result<>> event_writer::write_encoded(std::string_view events) {
    const auto held = co_await writing_.lock();
    if (!held) co_return fail(held.error());
    const auto sent = co_await to_.write(events);
    written_ = loop::current().now();
    co_return sent;
}

/// Sends comments where nothing else is sent. Yields its error.
task<result<>> event_writer::beat(duration interval) {
    byte_buffer comment;
    sse::write_comment(comment);
    loop& here = loop::current();
    written_ = here.now();
    for (;;) {
        const auto slept = co_await here.sleep_until(written_ + interval);
        if (!slept) co_return slept;
        // A write that waits for the client is sign enough.
        if (here.now() - written_ < interval || writing_.locked()) {
            if (writing_.locked()) written_ = here.now();
            continue;
        }
        const auto sent = co_await write_encoded(comment.text());
        if (!sent) co_return sent;
    }
}

/// Producer of the bytes of an event stream.
class event_body final : public body_producer {
public:
    event_body(std::unique_ptr<event_producer> events, const sse_options& options) noexcept
        : events_(std::move(events)), options_(options) {}

    task<result<>> produce(body_writer& to) override;

private:
    task<void> keep_alive(event_writer& out, cancel_source& producing, result<>& failure);
    task<void> run(event_writer& out, cancel_source& producing, result<>& done);

    std::unique_ptr<event_producer> events_;
    sse_options options_;
};

task<result<>> event_body::produce(body_writer& to) {
    event_writer out(to);
    if (options_.retry) {
        const std::string field = "retry: " + std::to_string(options_.retry->count()) + "\n\n";
        const auto sent = co_await out.write_encoded(field);
        if (!sent) co_return sent;
    }
    if (options_.heartbeat == duration::max()) co_return co_await events_->produce(out);
    result<> done;
    result<> failure;
    cancel_source producing(co_await current_source());
    co_await with_scope([&](scope& beside) {
        beside.spawn(keep_alive(out, producing, failure));
        return run(out, producing, done);
    });
    co_return failure ? done : failure;
}

task<void> event_body::run(event_writer& out, cancel_source& producing, result<>& done) {
    done = co_await eddy::detail::also_under(events_->produce(out), producing);
}

task<void> event_body::keep_alive(event_writer& out, cancel_source& producing, result<>& failure) {
    const auto ended = co_await out.beat(options_.heartbeat);
    // Cancelled where the producer has ended.
    if (ended || ended.error() == errc::cancelled) co_return;
    failure = ended;
    producing.request();
}

response sse(std::unique_ptr<event_producer> producer, const sse_options& options) {
    EDDY_PRECONDITION(producer != nullptr, "sse() without a producer");
    EDDY_PRECONDITION(options.heartbeat > duration::zero(),
                      "sse_options::heartbeat is not above 0");
    EDDY_PRECONDITION(!options.retry || options.retry->count() >= 0,
                      "sse_options::retry is below 0");
    response made(200, sse::content_type,
                  body(std::make_unique<event_body>(std::move(producer), options)));
    made.add("Cache-Control", "no-store").add("X-Accel-Buffering", "no");
    return made;
}

std::string_view last_event_id(const request& incoming) noexcept {
    return incoming.headers().find("Last-Event-ID").value_or(std::string_view());
}

}  // namespace eddy::http
