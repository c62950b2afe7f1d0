// Assertions, on in every build, for the program's own bugs; never for a peer's input.
#pragma once

namespace eddy::detail {
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line) noexcept;
[[noreturn]] void precondition_failed(const char* mistake, const char* expression, const char* file,
                                      int line) noexcept;
}  // namespace eddy::detail

/// Prints the expression and its place to standard error and aborts when `condition` is false. Any
/// thread.
#define EDDY_ASSERT(condition)                         \
    (__builtin_expect(static_cast<bool>(condition), 1) \
         ? static_cast<void>(0)                        \
         : ::eddy::detail::assertion_failed(#condition, __FILE__, __LINE__))

/// The same for a mistake of the code that uses Eddy: prints `mistake`, a literal that says in the
/// words of the headers what was done wrong, before the expression and its place.
#define EDDY_PRECONDITION(condition, mistake)          \
    (__builtin_expect(static_cast<bool>(condition), 1) \
         ? static_cast<void>(0)                        \
         : ::eddy::detail::precondition_failed(mistake, #condition, __FILE__, __LINE__))
