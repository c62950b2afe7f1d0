// The terminal of standard input and output: its size, and keys as they are pressed.
#pragma once

#include <eddy/io/timer.hpp>

#include <cstddef>
#include <optional>

namespace eddy::cli {

struct terminal_size {
    std::size_t columns = 0;
    std::size_t lines = 0;
};
/// Size of standard output; zeros where it is no terminal, or does not say.
terminal_size size_of_terminal();

/// Reads keys of the terminal without a newline and without showing them, as long as it exists; the
/// terminal then is as before, also after a signal that ends the process. At most one at a time.
class key_reader {
public:
    key_reader();
    ~key_reader();
    key_reader(const key_reader&) = delete;
    key_reader& operator=(const key_reader&) = delete;

    /// False where standard input is no terminal: there are no keys then.
    bool is_active() const noexcept { return is_active_; }

    /// Waits for a key for so long, or until the terminal's size changes; none then. The end of
    /// input is 'q'.
    std::optional<char> next(duration patience);

private:
    bool is_active_ = false;
};

}  // namespace eddy::cli
