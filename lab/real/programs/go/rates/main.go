// Converts amounts by rates of exchange: `rates UPSTREAM_PORT` obeys its stdin, where each line is
// how long the server that knows the rates takes for the next, in s. A goroutine asks the server
// and sends each rate over a channel without a buffer.
package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"syscall"
	"unsafe"
)

const clockMonotonic = 1

func nowNs() int64 {
	var now syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	return now.Nano()
}

func fetchRate(seconds string) string {
	answer, err := http.Get("http://127.0.0.1:" + os.Args[1] + "/" + seconds)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	rate, _ := io.ReadAll(answer.Body)
	return string(rate)
}

func fetchRates(wanted, rates chan string) {
	for seconds := range wanted {
		rates <- fetchRate(seconds)
	}
}

func main() {
	wanted, rates := make(chan string), make(chan string)
	go fetchRates(wanted, rates)
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		begin := nowNs()
		wanted <- lines.Text()
		<-rates
		fmt.Println(begin, nowNs())
	}
}
