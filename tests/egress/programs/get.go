package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
)

// The client of Go's own library, as it is. It offers HTTP/2.
func main() {
	size, err := strconv.Atoi(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	method, body := "GET", io.Reader(nil)
	if size > 0 {
		method, body = "POST", bytes.NewReader(make([]byte, size))
	}
	request, err := http.NewRequest(method, os.Args[1], body)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("x-api-key", os.Getenv("TEST_KEY"))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		log.Fatal(err)
	}
}
