// The sanitizers' options, linked into every program of a sanitized build. Variables such as
// ASAN_OPTIONS in the environment still come after these.

#ifdef EDDY_SYMBOLIZER
#define SYMBOLIZER ":external_symbolizer_path=" EDDY_SYMBOLIZER
#else
#define SYMBOLIZER ""
#endif

extern "C" {

const char* __asan_default_options();
const char* __lsan_default_options();
const char* __tsan_default_options();
const char* __ubsan_default_options();

// Coroutine frames hold what a stack would; use after return is found in both.
const char* __asan_default_options() {
    return "detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1"
           ":detect_leaks=1" SYMBOLIZER;
}

const char* __lsan_default_options() { return "print_suppressions=0"; }

const char* __tsan_default_options() {
    return "halt_on_error=1:second_deadlock_stack=1:history_size=4" SYMBOLIZER;
}

const char* __ubsan_default_options() { return "print_stacktrace=1" SYMBOLIZER; }
}
