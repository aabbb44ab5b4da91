// A web server for reports: `reports PORT`. `/report/S` makes a report, which takes S seconds, and
// `/health` counts those that there are. Both lock one mutex.
package main

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type archive struct {
	mutex   sync.Mutex
	reports [][32]byte
}

func makeReport(length time.Duration) [32]byte {
	var sum [32]byte
	for end := time.Now().Add(length); time.Now().Before(end); {
		for n := 0; n < 1000; n++ {
			sum = sha256.Sum256(sum[:])
		}
	}
	return sum
}

func (a *archive) add(w http.ResponseWriter, r *http.Request) {
	seconds, err := strconv.ParseFloat(strings.TrimPrefix(r.URL.Path, "/report/"), 64)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.reports = append(a.reports, makeReport(time.Duration(seconds*1e9)))
}

func (a *archive) count(w http.ResponseWriter, _ *http.Request) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	fmt.Fprintln(w, len(a.reports))
}

func main() {
	var a archive
	http.HandleFunc("/report/", a.add)
	http.HandleFunc("/health", a.count)
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		panic(err)
	}
	fmt.Println("ready")
	panic(http.Serve(listener, nil))
}
