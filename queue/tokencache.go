package queue

import (
	"hash/maphash"
	"strings"
	"sync"
)

// tokenCache remembers verified place tokens, so that a poll does not pay for an
// HMAC each time. It is bounded: a full shard forgets arbitrary entries, which
// costs their owners one verification. Only good tokens enter.
type tokenCache struct {
	seed   maphash.Seed
	limit  int // entries a shard
	shards [64]tokenShard
}

type tokenShard struct {
	mu sync.RWMutex
	m  map[Token]known
}

// known is a verified token.
type known struct {
	place
	checked int64 // the incarnation of Redis' memory in which the place was seen; 0 none
}

// newTokenCache holds about size tokens, at some 500 bytes each.
func newTokenCache(size int) *tokenCache {
	c := &tokenCache{seed: maphash.MakeSeed()}
	c.limit = max(size/len(c.shards), 1)
	for i := range c.shards {
		c.shards[i].m = make(map[Token]known)
	}
	return c
}

func (c *tokenCache) shard(t Token) *tokenShard {
	return &c.shards[maphash.String(c.seed, string(t))%uint64(len(c.shards))]
}

func (c *tokenCache) get(t Token) (place, bool) {
	s := c.shard(t)
	s.mu.RLock()
	k, ok := s.m[t]
	s.mu.RUnlock()
	return k.place, ok
}

func (c *tokenCache) put(t Token, p place) {
	s := c.shard(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.m {
		if len(s.m) < c.limit {
			break
		}
		delete(s.m, k)
	}
	s.m[Token(strings.Clone(string(t)))] = known{place: p} // t may lie in a request buffer that is used again
}

// check notes that the place was seen in this memory.
func (c *tokenCache) check(t Token, inc int64) {
	s := c.shard(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.m[t]; ok {
		k.checked = inc
		s.m[Token(strings.Clone(string(t)))] = k
	}
}

// checked is in which memory the place was last seen; 0 when nobody looked.
func (c *tokenCache) checked(t Token) int64 {
	s := c.shard(t)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.m[t].checked
}

func (c *tokenCache) len() int {
	n := 0
	for i := range c.shards {
		c.shards[i].mu.RLock()
		n += len(c.shards[i].m)
		c.shards[i].mu.RUnlock()
	}
	return n
}
