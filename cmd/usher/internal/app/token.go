package app

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// tokenFile is where `usher dev` leaves its operator token for `usher room` of
// the same user, by the admin listener's port.
func tokenFile(adminAddr string) (string, error) {
	_, port, err := net.SplitHostPort(adminAddr)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "usher", "admin-"+port+".token"), nil
}

// rememberToken writes the token 0600 and returns what removes it. It is a
// comfort: where it cannot be written, --token does the same.
func rememberToken(adminAddr, token string) (forget func()) {
	path, err := tokenFile(adminAddr)
	if err != nil {
		return func() {}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return func() {}
	}
	if err := writeSecretFile(path, []byte(token)); err != nil {
		return func() {}
	}
	return func() { _ = os.Remove(path) }
}

// RememberedToken is the token a running `usher dev` left for its admin address
// (host:port).
func RememberedToken(adminAddr string) (string, error) {
	path, err := tokenFile(adminAddr)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("no token: set USHER_OPERATOR_TOKEN or --token (and no usher dev of yours listens on %s)", adminAddr)
	}
	return string(data), nil
}
