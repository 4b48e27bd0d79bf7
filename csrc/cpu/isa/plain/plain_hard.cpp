#include "plain.h"

#include "cpu/isa/hard_kernels.h"
