// Lines of a program's output.
#include "runtime/program/output.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/timeout.hpp>

#include "base/text/line_splitter.hpp"
#include "runtime/logs/message_text.hpp"

#include <fmt/format.h>

#include <utility>

namespace eddy::runtime::program {
namespace {

constexpr duration a_second = std::chrono::seconds(1);

}  // namespace

outcome<> output::open() {
    if (limits_.log.empty()) return {};
    if (auto opened = file_.open(limits_.log); !opened) return opened;
    writing_.emplace();
    writing_->spawn(file_.run());
    return {};
}

task<void> output::close() {
    report_left_out();
    if (!writing_) co_return;
    EDDY_ASSERT(file_.is_open());
    file_.finish();
    co_await writing_->join();
    writing_.reset();
    file_.close();
}

void output::report_left_out() {
    if (left_out_ == 0) return;
    to_.write(fmt::format("{} line{} of its output {} left out: more than {} a second (--log-rate)",
                          left_out_, left_out_ == 1 ? "" : "s", left_out_ == 1 ? "was" : "were",
                          limits_.log_rate));
    left_out_ = 0;
}

void output::begin_second(time_point now) {
    if (now - second_ < a_second) return;
    report_left_out();
    second_ = now;
    bytes_ = 0;
    lines_ = 0;
}

task<void> output::read(stream from, std::string_view mark) {
    loop& here = loop::current();
    line_splitter lines;
    const auto each = [&](std::string_view line, bool is_cut) { take(line, is_cut, mark); };
    for (;;) {
        // Lines that were left out are reported when the program is silent, too.
        result<lease> piece = fail(errc::timed_out);
        if (left_out_ > 0)
            piece = co_await with_deadline(second_ + a_second, from.read());
        else
            piece = co_await from.read();
        begin_second(here.now());
        if (!piece && piece.error() == errc::timed_out) continue;
        if (!piece) break;
        counted_.bytes_in += piece->size();
        bytes_ += piece->size();
        lines.take(piece->text(), limits_.max_line, each);
        *piece = lease();
        if (bytes_ < max_bytes_a_second) continue;
        if (!co_await here.sleep_for(second_ + a_second - here.now())) break;
    }
    lines.finish(limits_.max_line, each);
}

void output::take(std::string_view line, bool is_cut, std::string_view mark) {
    EDDY_ASSERT(line.size() <= limits_.max_line);
    ++counted_.messages_in;
    const std::string_view end = is_cut ? "... (longer than --max-line)" : "";
    if (file_.is_open() && !file_.append(fmt::format("{}{}\n", line, end), 1)) ++counted_.dropped;
    if (!limits_.has_journal) return;
    if (lines_ >= limits_.log_rate) {
        ++left_out_;
        if (!file_.is_open()) ++counted_.dropped;
        return;
    }
    ++lines_;
    to_.write(fmt::format("{}{}{}", mark, line, end));
}

}  // namespace eddy::runtime::program
