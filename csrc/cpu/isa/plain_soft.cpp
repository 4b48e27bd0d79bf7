#include "plain.h"

#include "soft_kernels.h"
