// Package admission is the valve: how many fans may be let in, within what the
// operator allows. It is pure: Plan maps a state, a report and a ceiling to the next
// state and a decision; package queue keeps the state, asks once a report and lets
// the scripts obey. A room in mode fixed has no valve.
//
// # The law
//
// The lanes' mean queue wait is the one thing measured. Between an admission and its
// load on the lanes lies the dead time, here the median from a visit's beginning to
// its first hold, as the box office counts it: whoever raises faster than that raises
// blindly. So time goes in epochs of one dead time and five seconds:
//
//   - Up: after an epoch under half the target the tighter of rate and cap, if it was
//     really used, grows by a twentieth of its ceiling. Additive, because near the limit
//     a step of s overloads the lanes by s/capacity for a whole dead time, whatever is
//     done then; up to 0.7 of a level that held before it doubles instead.
//   - Down: two reports over the target within five seconds cut the rate to 0.8 of what
//     was used; one that shed, or waited four times the target, cuts it to a half, and the
//     cap to 0.8 of the slots in use, so that nobody follows until some have left. Then
//     not again for an epoch: until it has passed, the load seen is that of before the cut.
//     Additive up and multiplicative down is what makes such a loop settle (Chiu and Jain,
//     Computer Networks and ISDN Systems 17, 1989); an epoch is to it what the round trip
//     is to TCP (Jacobson, SIGCOMM 1988), and so are the slow start and the one cut for
//     one cause.
//   - Not up: while nobody waits, or while the level is not used: an untried level is no
//     evidence (the wind-up of control loops). Between half the target and the target: that
//     band is the distance kept.
//   - Slow start: after a start, a stop, a silence or a line that lost its memory, a tenth of
//     the ceiling, and as many slots more than there are fans inside.
//   - Nothing: without a report that is fresh and can be true. A report that cannot be true
//     raises nothing, and if no other comes for as long as a report lives, nobody comes in.
//   - Never below a fiftieth of the ceiling, and one, while reports are good: a valve at zero
//     would never see that the trouble is over.
//
// Several box offices report in turn, of lanes of their own. The worst wait is minded
// for some seconds, so that one in trouble is not overheard beside one that is idle.
//
// # What it does
//
// The simulation beside (sim_test.go) has one queue served at random, 90 seconds from
// admission to load, no bound on the queue and a ceiling of twice the capacity. Over
// three hours the longest wait of anybody was 1.8 s and 0.82 of the capacity was used
// after the first hour; with delays spread widely about a median of 90 s 0.7 s and 0.74;
// with 15 s 1.6 s and 0.82; at five times the size, where a queue gives less warning,
// 4.8 s and 0.71. The rate swung between two fifths of the capacity and a step above it. When half
// the capacity goes, twice what is left is on its way for a dead time, and the longest
// wait was 66 s; real lanes bound their queue and answer busy instead. From the epoch
// after next on it was 1.3 s and 0.77, and with the capacity back 1.1 s and 0.84.
package admission
