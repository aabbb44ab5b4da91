// A program all of whose goroutines but one wait for each other: for a mutex, for room in a channel, for a message. That
// one ticks, so that threads have something to do now and then.
package main

import (
	"fmt"
	"sync"
	"time"
)

type shop struct {
	door   sync.Mutex
	orders chan int
}

//go:noinline
func (s *shop) order() {
	s.orders <- 1
}

//go:noinline
func (s *shop) enter() {
	s.door.Lock()
}

//go:noinline
func (s *shop) deliver() {
	<-make(chan int)
}

func main() {
	s := &shop{orders: make(chan int)}
	s.door.Lock()
	for range 3 {
		go s.enter()
	}
	go s.order()
	go s.deliver()
	go func() {
		for range time.Tick(50 * time.Millisecond) {
		}
	}()
	time.Sleep(300 * time.Millisecond)
	fmt.Println("waits")
	s.enter()
}
