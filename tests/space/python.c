/* SPDX-License-Identifier: Apache-2.0
 *
 * CPython as a position-independent program, which a distribution's need not be. */
int Py_BytesMain(int argc, char **argv);

int main(int argc, char **argv) { return Py_BytesMain(argc, argv); }
