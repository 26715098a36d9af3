// SPDX-License-Identifier: Apache-2.0
//
// execve, posix_spawn, vfork, system and popen with the program's name, arguments and environment
// in far memory: 300 KB of them.  The program starts itself; as a child it prints what it was
// given.
#include "far.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>

#define ARGUMENTS 300

extern char** environ;

static int be_child(char** arguments) {
    uint64_t digest = 0;
    int count = 0;
    for (char** argument = arguments; *argument != NULL; ++argument, ++count) {
        for (const char* c = *argument; *c != 0; ++c) {
            digest = (digest ^ (unsigned char)*c) * 0x100000001b3u;
        }
    }
    const char* value = getenv("INTERCEPT_VALUE");
    printf("%d arguments %016llx, %zu\n", count, (unsigned long long)digest,
           value != NULL ? strlen(value) : 0);
    return 9;
}

// Each string in a place of its own, the array between two blocks.
static char** far_arguments(char* program, uint64_t* random) {
    char** array = (char**)cold((ARGUMENTS + 3) * sizeof *array);
    char* text = (char*)far_memory(ARGUMENTS * 4 * KIB);
    array[0] = program;
    array[1] = cold_text("child");
    for (int i = 0; i < ARGUMENTS; ++i) {
        char* at = text + (size_t)i * 4 * KIB + below(random, 2 * KIB);
        const size_t bytes = below(random, 2 * KIB);
        memset(at, 'a' + i % 26, bytes);
        at[bytes] = 0;
        array[i + 2] = at;
    }
    array[ARGUMENTS + 2] = NULL;
    return array;
}

static char** far_environment(void) {
    size_t count = 0;
    while (environ[count] != NULL) ++count;
    char** array = (char**)cold((count + 2) * sizeof *array);
    size_t bytes = 0;
    for (size_t i = 0; i < count; ++i) bytes += strlen(environ[i]) + 1000;
    char* text = (char*)far_memory(bytes + MIB);
    for (size_t i = 0; i < count; ++i) {
        array[i] = strcpy(text, environ[i]);
        text += strlen(environ[i]) + 1000;
    }
    char* value = (char*)cold(70000);
    strcpy(value, "INTERCEPT_VALUE=");
    memset(value + 16, 'v', 50000);
    value[50016] = 0;
    array[count] = value;
    array[count + 1] = NULL;
    return array;
}

static void expect(pid_t child, int status_wanted) {
    int* status = (int*)cold(sizeof *status);
    CHECK(child > 0 && waitpid(child, status, 0) == child);
    CHECK(WIFEXITED(*status) && WEXITSTATUS(*status) == status_wanted);
}

int main(int count, char** arguments) {
    if (count > 1 && strcmp(arguments[1], "child") == 0) return be_child(arguments + 1);
    char path[PATH_MAX];
    CHECK(realpath("/proc/self/exe", path) != NULL);
    prepare();
    uint64_t random = 6;
    start_pressure();
    for (int turn = 0; turn < 3; ++turn) {
        char* program = cold_text(path);
        char** argv = far_arguments(program, &random);
        char** envp = far_environment();
        sweep();
        pid_t child = fork();
        if (child == 0) {
            execve(program, argv, envp);
            _exit(100);
        }
        expect(child, 9);
        sweep();
        pid_t* spawned = (pid_t*)cold(sizeof *spawned);
        CHECK(posix_spawn(spawned, program, NULL, NULL, argv, envp) == 0);
        expect(*spawned, 9);
        sweep();
        child = vfork();
        if (child == 0) {
            execve(program, argv, envp);
            _exit(100);
        }
        expect(child, 9);
        // Memory is as it was, and the call fails as it should.
        child = vfork();
        if (child == 0) {
            execve(cold_text("/does/not/exist"), argv, envp);
            _exit(errno == ENOENT ? 8 : 100);
        }
        expect(child, 8);
        CHECK(posix_spawn(spawned, cold_text("/does/not/exist"), NULL, NULL, argv, envp) == ENOENT);
    }
    for (int turn = 0; turn < 5; ++turn) {
        const int status = system(cold_text("exit 5"));
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
        FILE* stream = popen(cold_text("echo heard; exit 6"), "r");
        char* line = (char*)cold(100);
        CHECK(stream != NULL && fgets(line, 100, stream) == line);
        CHECK(strcmp(line, "heard\n") == 0);
        CHECK(WEXITSTATUS(pclose(stream)) == 6);
    }
    stop_pressure();
    char* program = cold_text(path);
    char** argv = far_arguments(program, &random);
    sweep();
    execve(program, argv, far_environment());
    return 1;
}
