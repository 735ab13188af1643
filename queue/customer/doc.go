// Package customer verifies the customer tokens of integrators: a JWT (RFC 7519) by
// which a shop says who the fan is. It knows no line and no HTTP but the fetch of a
// published key set.
//
// A token bears iss, aud, sub, iat and exp, and may bear nbf. Its audience is the
// room's name, or "usher" for every room that trusts the issuer. It is signed with
// Ed25519 (EdDSA, RFC 8037), ES256, or HS256 with a secret of 32 bytes or more.
//
// Decisions. A key serves exactly one algorithm, fixed when the key is read and never
// by the token: a public key is no HMAC secret, whatever the header says, and "none" is
// not among them. A token that names a key (kid) is held against that key alone; one
// that names none against all keys of its algorithm, which are few. Secrets come from
// the operator's own files and never from an address. An expiry is required and lies at
// most a day ahead, so that a leaked token is of no use tomorrow; it is not stretched by
// the leeway, which only forgives a clock that is a little ahead (iat, nbf). A header
// that asks for extensions (crit) asks for what is not done here, and is refused. A set
// fetched once is good until the next one comes: an issuer that is down turns nobody
// away who comes with a known key.
package customer
