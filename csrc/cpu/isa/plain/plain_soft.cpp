#include "plain.h"

#include "cpu/isa/soft_kernels.h"
