//go:build !linux

package devstack

import "syscall"

// dieWithParent has no counterpart here: after a kill -9 of Usher its private
// servers stay and must be stopped by hand.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
