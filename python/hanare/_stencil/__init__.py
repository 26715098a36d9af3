# SPDX-License-Identifier: Apache-2.0
"""Stencils on grids that may be larger than memory: `Grid`, `stencil`, `kernel` and what they give.

A text or function is read (`_source`, `_reader`, `_calls`, `_functions`) to a graph of operations
(`_nodes`), written as C (`_writer`), compiled and kept (`_compiler`); `_stencil` puts that
together, `_grid` and `_field` are the cells and runs, `_results` what those tell.
"""
