package devstack

import "syscall"

// dieWithParent has the kernel send sig to the child when we end, however we do.
func dieWithParent(a *syscall.SysProcAttr, sig syscall.Signal) { a.Pdeathsig = sig }
