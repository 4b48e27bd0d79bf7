// After what a target was set for.
#if defined(__clang__)
#pragma clang attribute pop
#endif
