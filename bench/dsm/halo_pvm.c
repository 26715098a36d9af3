// SPDX-License-Identifier: Apache-2.0
//
// Rows at the border by PVM: sends do not wait for who receives.
#include <stdbool.h>

#include "form_pvm.h"
#include "halo.h"

enum { kDownwards, kUpwards };

static void send_row(unsigned process, int tag, double *row, size_t width) {
    pvm_initsend(PvmDataInPlace);
    form_pvm(pvm_pkdouble(row, (int)width, 1));
    form_send(process, tag, width * sizeof(*row));
}

static void receive_row(unsigned process, int tag, double *row, size_t width) {
    form_pvm(pvm_recv(form_task(process), tag));
    form_pvm(pvm_upkdouble(row, (int)width, 1));
}

void halo_exchange(const struct halo *halo) {
    const bool above = form_process > 0;
    const bool below = form_process + 1 < form_processes;
    double *const first = halo->rows + halo->width;
    double *const after_last = first + (size_t)halo->own * halo->width;
    if (below) send_row(form_process + 1, kDownwards, after_last - halo->width, halo->width);
    if (above) send_row(form_process - 1, kUpwards, first, halo->width);
    if (above) receive_row(form_process - 1, kDownwards, halo->rows, halo->width);
    if (below) receive_row(form_process + 1, kUpwards, after_last, halo->width);
}
