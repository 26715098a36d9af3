/* SPDX-License-Identifier: Apache-2.0
 *
 * libraries: loads and unloads one many times, and prints what program this is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    for (int i = 0; i < 200; i++) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        double (*root)(double) = (double (*)(double))dlsym(library, "sqrt");
        if (root == NULL || root(49.0) != 7.0) return puts("no root"), 1;
        dlclose(library);
    }
    char path[PATH_MAX] = "";
    if (readlink("/proc/self/exe", path, sizeof path - 1) <= 0) return 1;
    puts(path);
    return 0;
}
