// Reading of forms with files as they arrive.
#include <eddy/http/multipart.hpp>

#include <eddy/base/assert.hpp>
#include <eddy/base/random.hpp>

#include "http/session/request_body.hpp"

#include <array>
#include <charconv>
#include <utility>

namespace eddy::http {

using http1::multipart_event;

multipart_reader::multipart_reader(request& incoming)
    : multipart_reader(incoming, http1::multipart_limits()) {}

multipart_reader::multipart_reader(request& incoming, const http1::multipart_limits& limits)
    : incoming_(incoming) {
    const auto boundary = http1::boundary_of(content_type_of(incoming));
    if (boundary)
        parser_.emplace(*boundary, limits);
    else if (boundary.error() == errc::unsupported)
        refuse(415, "the body is not of type multipart/form-data");
    else
        refuse(400, "the Content-Type has no valid boundary");
}

std::error_code multipart_reader::refuse(int status, std::string_view what) noexcept {
    failure_ = declare_fault(incoming_, status, what);
    return failure_;
}

task<result<multipart_part>> multipart_reader::next() {
    for (;;) {
        const auto event = co_await advance();
        if (!event) co_return fail(event.error());
        if (*event == multipart_event::part) co_return multipart_part(*this);
    }
}

// The next event that is no need for more and no error. Behind the last part the body is read to
// its end.
task<result<multipart_event>> multipart_reader::advance() {
    for (;;) {
        if (failure_) co_return fail(failure_);
        const http1::multipart_step step = parser_->parse(input_);
        input_.remove_prefix(step.consumed);
        content_ = step.content;
        switch (step.what) {
            case multipart_event::error:
                refuse(parser_->error().status, parser_->error().what);
                continue;
            case multipart_event::end: continue;
            case multipart_event::need_more: break;
            default: is_in_part_ = step.what != multipart_event::part_end; co_return step.what;
        }
        const auto piece = co_await incoming_.body().read();
        if (piece)
            input_ = *piece;
        else if (piece.error() == errc::cancelled)
            co_return fail(errc::cancelled);
        else if (piece.error() == errc::end_of_stream)
            end_of_body();
        else
            failure_ = piece.error();
    }
}

void multipart_reader::end_of_body() noexcept {
    if (parser_->finish())
        failure_ = errc::end_of_stream;
    else
        refuse(parser_->error().status, parser_->error().what);
}

task<result<std::string_view>> multipart_reader::read_content() {
    if (!is_in_part_) co_return fail(errc::end_of_stream);
    const auto event = co_await advance();
    if (!event) co_return fail(event.error());
    if (*event == multipart_event::part_end) co_return fail(errc::end_of_stream);
    EDDY_ASSERT(*event == multipart_event::content);
    co_return content_;
}

std::string_view multipart_part::name() const noexcept { return of_->parser_->head().name; }

bool multipart_part::is_file() const noexcept { return of_->parser_->head().filename.has_value(); }

std::string_view multipart_part::filename() const noexcept {
    const auto& sent = of_->parser_->head().filename;
    return sent ? std::string_view(*sent) : std::string_view();
}

std::string multipart_part::safe_filename() const { return http1::safe_file_name(filename()); }

std::string_view multipart_part::content_type() const noexcept {
    return of_->parser_->head().content_type;
}

const header_list& multipart_part::headers() const noexcept { return of_->parser_->head().headers; }

task<result<std::string_view>> multipart_part::read() { return of_->read_content(); }

task<result<std::string>> multipart_part::whole(std::size_t limit) {
    multipart_reader& of = *of_;
    std::string text;
    for (;;) {
        const auto piece = co_await of.read_content();
        if (!piece && piece.error() == errc::end_of_stream) co_return text;
        if (!piece) co_return fail(piece.error());
        if (piece->size() > limit - text.size())
            co_return fail(of.refuse(413, "a part of the form is too long"));
        text += *piece;
    }
}

std::string make_boundary() {
    std::string made;
    for (int i = 0; i < 2; ++i) {
        std::array<char, 16> digits;
        const auto end =
            std::to_chars(digits.data(), digits.data() + digits.size(), entropy_seed(), 16).ptr;
        made.append(digits.data(), end);
    }
    return made;
}

}  // namespace eddy::http
