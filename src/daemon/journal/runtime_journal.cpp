// Journal of a runtime: writing, reading and following.
#include "daemon/journal/runtime_journal.hpp"

#include "base/text/terminal_text.hpp"
#include "base/text/text.hpp"
#include "daemon/journal/journal_files.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace eddy::daemon {
namespace {

constexpr std::string_view cut_mark = "...";

// No text may forge another line or drive a terminal.
std::string escaped(std::string_view text) {
    std::string shown;
    shown.reserve(text.size());
    std::size_t whole = 0;  // what stays where the line is too long
    while (!text.empty()) {
        const text_unit unit = first_unit(text);
        const std::string_view bytes = text.substr(0, unit.size);
        if (bytes == "\t")
            shown += ' ';
        else if (unit.is_printable)
            shown += bytes;
        else
            append_hex_escaped(shown, bytes);
        text.remove_prefix(unit.size);
        if (shown.size() > runtime_journal::line_bytes_limit) {
            shown.resize(whole);
            shown += cut_mark;
            break;
        }
        if (shown.size() <= runtime_journal::line_bytes_limit - cut_mark.size())
            whole = shown.size();
    }
    return shown;
}

class journal_follower final : public http::body_producer {
public:
    journal_follower(std::shared_ptr<runtime_journal> from, journal_part part)
        : from_(std::move(from)), part_(part) {}

    task<result<>> produce(http::body_writer& to) override {
        std::string text = take(part_.tail);
        part_.since = {};  // the clock may be set back, and what is new is shown
        for (;;) {
            // An empty text sends nothing.
            const auto sent = co_await to.write(text);
            if (!sent) co_return sent;
            const auto woken = co_await from_->wait_beyond(seen_);
            if (!woken && woken.error() == errc::closed) co_return result<>();
            if (!woken) co_return woken;
            text = take(runtime_journal::line_limit);
            if (text.empty()) co_return result<>();
        }
    }

private:
    std::string take(std::size_t most) {
        // With a tail of 0 the lines so far count as seen.
        const auto lines = from_->read(seen_, std::max<std::size_t>(most, 1));
        std::string text;
        if (lines.empty()) return text;
        if (seen_ > 0 && lines.front().number > seen_ + 1)
            text = fmt::format("... {} lines are lost: the reader was too slow\n",
                               lines.front().number - seen_ - 1);
        seen_ = lines.back().number;
        if (most == 0) return {};
        for (const journal_line& line : lines)
            if (part_.has(line)) text += format_journal_line(line);
        return text;
    }

    std::shared_ptr<runtime_journal> from_;
    journal_part part_;
    std::uint64_t seen_ = 0;
};

}  // namespace

/// Notification of the control loop; it holds the journal until then.
struct runtime_journal::wake_up final : posted_work {
    explicit wake_up(std::shared_ptr<runtime_journal> of) : journal(std::move(of)) {}
    void run() noexcept override {
        journal->news_.set();
        delete this;
    }
    std::shared_ptr<runtime_journal> journal;
};

void runtime_journal::write(std::string_view line) {
    while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
    bool wake = false;
    bool queues = false;
    {
        const std::lock_guard lock(mutex_);
        for (;;) {
            const std::size_t end = line.find('\n');
            add(line.substr(0, end), std::chrono::system_clock::now());
            if (end == std::string_view::npos) break;
            line.remove_prefix(end + 1);
        }
        wake = std::exchange(followed_, false);
        queues = start_queueing();
    }
    if (wake) control_.post(*new wake_up(shared_from_this()));
    if (queues) files_->add(shared_from_this());
}

/// True where the caller must add it to the files' queue. Under the lock.
bool runtime_journal::start_queueing() noexcept {
    return files_ != nullptr && !discarded_ && !std::exchange(queued_, true);
}

void runtime_journal::discard() {
    bool queues = false;
    {
        const std::lock_guard lock(mutex_);
        queues = start_queueing();
        discarded_ = true;
    }
    if (queues) files_->add(shared_from_this());
}

bool runtime_journal::start_writing() {
    const std::lock_guard lock(mutex_);
    queued_ = false;
    return discarded_;
}

void runtime_journal::keep(journal_files& files, std::string name,
                           std::vector<journal_line> earlier) {
    const std::lock_guard lock(mutex_);
    for (const journal_line& each : earlier) add(each.text, each.when);
    files_ = &files;
    file_ = std::make_unique<journal_file>();
    file_->name = std::move(name);
    file_->last_number = last_number_;
}

void runtime_journal::add(std::string_view line, std::chrono::system_clock::time_point when) {
    lines_.push_back({++last_number_, when, escaped(line)});
    bytes_ += lines_.back().text.size();
    while (lines_.size() > line_limit || bytes_ > byte_limit) {
        bytes_ -= lines_.front().text.size();
        lines_.pop_front();
    }
}

std::vector<journal_line> runtime_journal::read(std::uint64_t after, std::size_t most) const {
    const std::lock_guard lock(mutex_);
    const auto behind = std::find_if(lines_.begin(), lines_.end(),
                                     [&](const journal_line& l) { return l.number > after; });
    const auto count = static_cast<std::size_t>(lines_.end() - behind);
    const auto begin = behind + static_cast<std::ptrdiff_t>(count - std::min(count, most));
    return {begin, lines_.end()};
}

task<result<>> runtime_journal::wait_beyond(std::uint64_t after) {
    for (;;) {
        news_.reset();
        {
            const std::lock_guard lock(mutex_);
            if (last_number_ > after) co_return result<>();
            followed_ = true;
        }
        if (closed_) co_return fail(errc::closed);
        const auto woken = co_await news_.wait();
        if (!woken) co_return woken;
    }
}

void runtime_journal::close() {
    closed_ = true;
    news_.set();
}

std::string format_journal_line(const journal_line& line) {
    const auto second = std::chrono::floor<std::chrono::seconds>(line.when);
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(line.when - second);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z {}\n", fmt::gmtime(second), ms.count(),
                       line.text);
}

std::optional<journal_line> parse_journal_line(std::string_view line) {
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || !line.substr(0, space).ends_with('Z')) return {};
    const auto when = parse_journal_time(line.substr(0, space));
    if (!when) return {};
    return journal_line{0, *when, std::string(line.substr(space + 1))};
}

std::optional<std::chrono::system_clock::time_point> parse_journal_time(std::string_view text) {
    // The places of digits are 0s.
    constexpr std::string_view form = "0000-00-00T00:00:00.000";
    if (text.ends_with('Z')) text.remove_suffix(1);
    constexpr std::size_t sizes[] = {10, 16, 19, 23};
    if (std::find(std::begin(sizes), std::end(sizes), text.size()) == std::end(sizes)) return {};
    int fields[7] = {};
    std::size_t field = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_t = form[i] == 'T' && text[i] == ' ';
        if (form[i] == '0' ? !is_digit(text[i]) : text[i] != form[i] && !is_t) return {};
        if (form[i] != '0')
            ++field;
        else
            fields[field] = fields[field] * 10 + (text[i] - '0');
    }
    const auto day = std::chrono::year(fields[0]) / fields[1] / fields[2];
    // The clock counts nanoseconds, and ends in 2262.
    if (!day.ok() || fields[0] < 1970 || fields[0] > 2200) return {};
    if (fields[3] > 23 || fields[4] > 59 || fields[5] > 60) return {};
    return std::chrono::sys_days(day) + std::chrono::hours(fields[3]) +
           std::chrono::minutes(fields[4]) + std::chrono::seconds(fields[5]) +
           std::chrono::milliseconds(fields[6]);
}

std::unique_ptr<http::body_producer> follow_journal(std::shared_ptr<runtime_journal> from,
                                                    journal_part part) {
    return std::make_unique<journal_follower>(std::move(from), part);
}

}  // namespace eddy::daemon
