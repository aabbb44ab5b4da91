// A web server for two shelves: `stock PORT`. `/health` counts what lies on the one. `/move` moves things from each
// to the other at the same time, in two goroutines that lock the shelves in opposite order, and never answers.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
)

type shelf struct {
	mutex sync.Mutex
	count int
}

// moveBetween locks the one shelf, tells that it has it, and when all have told that locks the other.
func moveBetween(from, to *shelf, locked *sync.WaitGroup) {
	from.mutex.Lock()
	defer from.mutex.Unlock()
	locked.Done()
	locked.Wait()
	to.mutex.Lock()
	defer to.mutex.Unlock()
	from.count, to.count = from.count-1, to.count+1
}

func main() {
	left, right := &shelf{count: 10}, &shelf{count: 10}
	http.HandleFunc("/move", func(w http.ResponseWriter, _ *http.Request) {
		var locked, done sync.WaitGroup
		locked.Add(2)
		done.Add(2)
		for _, way := range [][2]*shelf{{left, right}, {right, left}} {
			go func(from, to *shelf) {
				defer done.Done()
				moveBetween(from, to, &locked)
			}(way[0], way[1])
		}
		done.Wait()
		fmt.Fprintln(w, "moved")
	})
	http.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		left.mutex.Lock()
		defer left.mutex.Unlock()
		fmt.Fprintln(w, left.count)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	panic(http.Serve(listener, nil))
}
