#include "plain.h"

#include "hard_kernels.h"
