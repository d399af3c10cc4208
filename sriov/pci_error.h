/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef VHCA_SRIOV_PCI_ERROR_H
#define VHCA_SRIOV_PCI_ERROR_H
/*
 * What the kernel says of a device's PCI error (AER, EEH), in the ERROR_EVENT of a uevent: Linux
 * 6.1, pci_uevent_ers() in drivers/pci/pci-driver.c. QEMU pauses a guest whose VF has reported
 * one, and lets it go on after a reset only: vfio_err_notifier_handler() in hw/vfio/pci.c. That AER
 * could not bring a device back is said of the bridge above it alone (pcie_do_recovery()), so such
 * a VF stays at "reported".
 */
#include "common/base/text.h"

enum vhca_pci_error {
	VHCA_PCI_ERROR_NONE,
	VHCA_PCI_ERROR_REPORTED,
	VHCA_PCI_ERROR_RECOVERED,
	VHCA_PCI_ERROR_FAILED,
};

/*
 * A uevent's device, and its "BEGIN_RECOVERY", "SUCCESSFUL_RECOVERY" or "FAILED_RECOVERY", both as
 * it has them; -EINVAL for any other uevent.
 */
int vhca_pci_error_parse(const char *device, const char *event, struct vhca_bdf *ret_bdf,
			 enum vhca_pci_error *ret);
/* "reported", "recovered", "failed"; NULL: none. */
const char *vhca_pci_error_to_string(enum vhca_pci_error error);

#endif
