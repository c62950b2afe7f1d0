// Content of a file in memory, which outlives the file: a text, or for large ones sealed memory
// that a socket can send without a copy.
#pragma once

#include <eddy/base/bytes.hpp>
#include <eddy/base/result.hpp>
#include <eddy/base/unique_fd.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace eddy::http {

/// Bytes that never change. One thread.
class file_content {
public:
    /// A text.
    explicit file_content(std::string text) noexcept : text_(std::move(text)) {}
    /// Room for `size` bytes in memory that has a descriptor (memfd_create(2)), for fill(). Errors
    /// are memfd_create(2)'s, ftruncate(2)'s and mmap(2)'s.
    static result<file_content> with_descriptor(std::size_t size);

    file_content(file_content&& other) noexcept
        : text_(std::move(other.text_)),
          memory_(std::move(other.memory_)),
          mapped_(std::exchange(other.mapped_, {})) {}
    file_content& operator=(file_content&&) = delete;
    ~file_content();

    /// Room to be filled, until seal().
    mutable_bytes room() const noexcept { return mapped_; }
    /// Ends the filling: from here on nothing changes the bytes. Errors are fcntl(2)'s and
    /// mmap(2)'s.
    result<> seal() noexcept;

    /// The bytes.
    std::string_view text() const noexcept {
        if (!memory_) return text_;
        return {reinterpret_cast<const char*>(mapped_.data()), mapped_.size()};
    }
    /// The descriptor of the sealed memory whose mapping text() is; -1 for a text.
    int descriptor() const noexcept { return memory_.get(); }

private:
    file_content(unique_fd memory, mutable_bytes mapped) noexcept
        : memory_(std::move(memory)), mapped_(mapped) {}

    std::string text_;
    unique_fd memory_;
    mutable_bytes mapped_;
};

}  // namespace eddy::http
