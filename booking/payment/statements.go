package payment

// statements names every SQL text of this package, so that one test prepares
// them all against the migrated schema.
var statements = map[string]string{
	"hold for checkout": sqlHoldForCheckout, "insert booking": sqlInsertBooking, "lock booking of hold": sqlLockBookingOfHold,
	"latest payment": sqlLatestPayment, "insert payment": sqlInsertPayment, "set provider": sqlSetProvider,
	"key claim": sqlKeyClaim, "key read": sqlKeyRead, "key take": sqlKeyTake, "answer stands": sqlAnswerStands, "key done": sqlKeyDone, "key free": sqlKeyFree, "key hash": sqlKeyHash,
	"lock seats": sqlLockSeats, "lock hold": sqlLockHold, "judge hold": sqlJudgeHold, "extend seats": sqlExtendSeats,
	"hold paying": sqlHoldPaying, "release seats": sqlReleaseSeats, "hold ended": sqlHoldEnded,
	"record event": sqlRecordEvent, "lock payment": sqlLockPayment, "find payment": sqlFindPayment, "lock booking": sqlLockBooking,
	"bind provider": sqlBindProvider, "payment failed": sqlPaymentFailed, "payment captured": sqlPaymentCaptured,
	"book seats": sqlBookSeats, "hold confirmed": sqlHoldConfirmed, "booking confirmed": sqlBookingConfirmed,
	"booking failed": sqlBookingFailed, "hold is over": sqlHoldIsOver,
	"ticket seats": sqlTicketSeats, "insert tickets": sqlInsertTickets,
	"unpaid attempts": sqlUnpaidAttempts, "booking of hold": sqlBookingOfHold, "still paying": sqlStillPaying,
	"take up": sqlTakeUp, "abandoned": sqlAbandoned, "refunds due": sqlRefundsDue, "old refunds": sqlOldRefunds,
	"insert refund": sqlInsertRefund, "read refund": sqlReadRefund, "lock payment row": sqlLockPaymentRow,
	"refund done": sqlRefundDone, "close refunded": sqlCloseRefunded,
	"find booking": sqlFindBooking, "lock paid": sqlLockPaidOf, "lock tickets": sqlLockTickets, "free booked": sqlFreeBooked,
	"tickets refunded": sqlTicketsRefunded, "booking given back": sqlBookingGivenBack, "payment due": sqlPaymentDue, "audit": sqlAudit,
	"read booking": sqlReadBooking, "read tickets": sqlReadTickets, "ticket": sqlReadTicket,
	"read places": sqlReadPlaces,
}
