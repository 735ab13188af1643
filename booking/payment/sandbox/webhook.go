package sandbox

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The headers of a signed callback.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Tolerance is how far a callback's timestamp may lie from now, either way.
const Tolerance = 300 * time.Second

// errBadSignature is every way a signature can be wrong: the caller learns no more.
var errBadSignature = errors.New("sandbox: signature")

// Sign makes the value of HeaderSignature for one delivery.
func Sign(secret []byte, id string, at time.Time, body []byte) string {
	return "v1," + base64.StdEncoding.EncodeToString(mac(secret, id, strconv.FormatInt(at.Unix(), 10), body))
}

// Verify checks a delivery against every secret in turn and returns its id.
func Verify(secrets [][]byte, header func(string) string, body []byte, now time.Time) (id string, err error) {
	id, stamp := header(HeaderID), header(HeaderTimestamp)
	if id == "" || len(id) > 128 {
		return "", fmt.Errorf("%w: no usable id", errBadSignature)
	}
	sec, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return "", fmt.Errorf("%w: no usable timestamp", errBadSignature)
	}
	// Whole seconds: a fraction of now must not shorten the tolerance on one side.
	if age := now.Unix() - sec; age > int64(Tolerance/time.Second) || age < -int64(Tolerance/time.Second) {
		return "", fmt.Errorf("%w: %d s from now", errBadSignature, age)
	}
	for one := range strings.FieldsSeq(header(HeaderSignature)) {
		version, sig, ok := strings.Cut(one, ",")
		if !ok || version != "v1" {
			continue // a later scheme beside ours
		}
		got, err := base64.StdEncoding.DecodeString(sig)
		if err != nil {
			continue
		}
		for _, s := range secrets {
			if hmac.Equal(got, mac(s, id, stamp, body)) {
				return id, nil
			}
		}
	}
	return "", fmt.Errorf("%w: no match", errBadSignature)
}

func mac(secret []byte, id, stamp string, body []byte) []byte {
	h := hmac.New(sha256.New, secret)
	h.Write([]byte(id + "." + stamp + "."))
	h.Write(body)
	return h.Sum(nil)
}
