/* SPDX-License-Identifier: Apache-2.0
 *
 * Linked to lie at one place only, where no task can be. */
int main(void) { return 0; }
