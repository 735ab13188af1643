// Package queue is the line in front of the box office.
package queue
