package booking

// statements lists every SQL text of this package by name, so that one test can
// prepare each against the migrated schema: a renamed column is found there and
// not in a sale. Add yours here.
var statements = map[string]string{
	"sqlShowtime":       sqlShowtime,
	"sqlShowtimes":      sqlShowtimes,
	"sqlPriceClasses":   sqlPriceClasses,
	"sqlLayout":         sqlLayout,
	"sqlLayoutSeats":    sqlLayoutSeats,
	"sqlSeatsNow":       sqlSeatsNow,
	"sqlLockLimits":     sqlLockLimits,
	"sqlTake":           sqlTake,
	"sqlHoldByKey":      sqlHoldByKey,
	"sqlHold":           sqlHold,
	"sqlLockHoldSeats":  sqlLockHoldSeats,
	"sqlLockHold":       sqlLockHold,
	"sqlCloseHold":      sqlCloseHold,
	"sqlFreeSeats":      sqlFreeSeats,
	"sqlSession":        sqlSession,
	"sqlSessionByPass":  sqlSessionByPass,
	"sqlNewSession":     sqlNewSession,
	"sqlLockVisit":      sqlLockVisit,
	"sqlEndSession":     sqlEndSession,
	"sqlLockSession":    sqlLockSession,
	"sqlMissedHold":     sqlMissedHold,
	"sqlOtherHold":      sqlOtherHold,
	"sqlSeatQuota":      sqlSeatQuota,
	"sqlSessionHolds":   sqlSessionHolds,
	"sqlSweepHolds":     sqlSweepHolds,
	"sqlDueSessions":    sqlDueSessions,
	"sqlSweepSessions":  sqlSweepSessions,
	"sqlReportRooms":    sqlReportRooms,
	"sqlReportSessions": sqlReportSessions,
	"sqlReportLeft":     sqlReportLeft,
}
