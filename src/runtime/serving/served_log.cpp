// Log file of a runtime that serves streams.
#include "runtime/serving/served_log.hpp"

#include <eddy/base/assert.hpp>

namespace eddy::runtime {

outcome<> served_log::open(const std::string& path, bool is_shared) {
    EDDY_ASSERT(!lines_ && !file_.is_open());
    if (!path.empty()) {
        if (outcome<> opened = file_.open(path); !opened) return opened;
    }
    lines_.emplace(file_, is_shared);
    return {};
}

void served_log::begin() {
    EDDY_ASSERT(lines_ && !writing_);
    if (!file_.is_open()) return;
    writing_.emplace();
    writing_->spawn(file_.run());
    collecting_.emplace();
    collecting_->spawn(lines_->run());
}

outcome<> served_log::reopen() {
    if (!file_.is_open()) return {};
    return file_.reopen();
}

task<void> served_log::close() {
    if (writing_) {
        collecting_->cancel();
        co_await collecting_->join();
        collecting_.reset();
        dropped_ += lines_->flush();
        file_.finish();
        co_await writing_->join();
        writing_.reset();
    }
    file_.close();
    lines_.reset();
}

}  // namespace eddy::runtime
