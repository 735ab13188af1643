package configs

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestLimitsAndProofsAreChecked(t *testing.T) {
	t.Parallel()
	for text, key := range map[string]string{
		"edge: {limits: {perFan: {perMinute: -1}}}":           "edge.limits.perFan.perMinute",
		"edge: {limits: {guesses: {burst: 20000000}}}":        "edge.limits.guesses.burst",
		"edge: {limits: {perRoom: {perMinute: 6000001}}}":     "edge.limits.perRoom.perMinute",
		"edge: {proof: {mode: sometimes}}":                    "edge.proof.mode",
		"edge: {proof: {free: {perBlock: {burst: -1}}}}":      "edge.proof.free.perBlock.burst",
		"edge: {proof: {cost: {least: 0}}}":                   "edge.proof.cost.least",
		"edge: {proof: {cost: {least: 500, most: 499}}}":      "edge.proof.cost.most",
		"edge: {proof: {wait: {least: 1ms}}}":                 "edge.proof.wait.least",
		"edge: {proof: {wait: {most: 11m}}}":                  "edge.proof.wait.most",
		"edge: {limits: {perFan: {perminute: 1}}}":            "edge.limits.perFan.perminute",
		"edge: {limits: {perAddress: {perMinute: \"some\"}}}": "edge.limits.perAddress.perMinute",
	} {
		_, err := Load(Source{File: write(t, text+"\n")})
		var p *Problems
		if !errors.As(err, &p) || len(p.List()) != 1 || !strings.HasPrefix(p.List()[0].Key, key) {
			t.Errorf("%s: %v", text, err)
		}
	}
	c, err := Load(Source{File: write(t, "edge: {proof: {mode: off, wait: {least: 3s}}, limits: {perFan: {burst: 7}}}\n")})
	if err != nil || c.Edge.Proof.Mode != "off" || c.Edge.Proof.Wait.Least != 3*time.Second || c.Edge.Limits.PerFan != (Rate{6, 7}) {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLimitsAndProofsAreLive(t *testing.T) {
	t.Parallel()
	old, next := Default(), Default()
	next.Edge.Proof.Mode, next.Edge.Limits.PerRoom.Burst, next.Edge.Proof.Wait.Most = "always", 5, time.Minute
	live, restart := Changed(&old, &next)
	if len(live) != 3 || len(restart) != 0 {
		t.Errorf("live %v, after a restart %v", live, restart)
	}
}
