/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_STD_H
#define HYPTRACE_STD_H

/* C's headers that nearly every file uses. Our headers include this one, so that no other file names them. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#endif
