// Command lumberjack is the far end of Filebeat's output.logstash in the tests. It appends every event it
// receives to a file, one JSON document a line with the bytes as they came, and acknowledges the batch once
// the file is synced.
package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net"
	"os"

	"github.com/elastic/go-lumber/server"
)

func main() {
	address := flag.String("listen", "127.0.0.1:0", "address to listen on")
	output := flag.String("output", "", "NDJSON file to append to")
	dieBefore := flag.Int("die-before-ack", 0,
		"die by exit code 9 with the n-th batch written but not acknowledged; 0 never")
	certificate := flag.String("cert", "", "PEM certificate; with it the receiver speaks TLS")
	key := flag.String("key", "", "PEM key of the certificate")
	flag.Parse()

	if err := run(*address, *output, *dieBefore, *certificate, *key); err != nil {
		log.Fatal(err)
	}
}

func run(address, output string, dieBefore int, certificate, key string) error {
	file, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return err
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}})
	}
	receiver, err := server.NewWithListener(listener, server.V2(true), server.JSONDecoder(keepBytes))
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())

	batches := 0
	for batch := range receiver.ReceiveChan() {
		if err := write(file, batch.Events); err != nil {
			return err
		}
		batches++
		if batches == dieBefore {
			os.Exit(9)
		}
		batch.ACK()
	}
	return nil
}

// keepBytes leaves the event undecoded, so that the file holds what was sent and not what Go makes of it.
// The buffer is used again for the next event: hence the copy.
func keepBytes(data []byte, into interface{}) error {
	*into.(*interface{}) = json.RawMessage(append([]byte(nil), data...))
	return nil
}

func write(file *os.File, events []interface{}) error {
	buffer := bufio.NewWriter(file)
	for _, event := range events {
		if _, err := buffer.Write(event.(json.RawMessage)); err != nil {
			return err
		}
		if err := buffer.WriteByte('\n'); err != nil {
			return err
		}
	}
	if err := buffer.Flush(); err != nil {
		return err
	}
	return file.Sync()
}
