// A Go program that hangs for good: the main goroutine wants a mutex that another one holds while
// it waits for a program which does not end.
package main

import (
	"fmt"
	"os/exec"
	"sync"
)

func main() {
	var lock sync.Mutex
	held := make(chan bool)
	go func() {
		lock.Lock()
		held <- true
		exec.Command("sleep", "infinity").Run()
		lock.Unlock()
	}()
	<-held
	lock.Lock()
	fmt.Println("not reached")
}
