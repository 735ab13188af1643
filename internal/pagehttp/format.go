package pagehttp

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/currency"
)

// signs are the currency signs readers of all three languages know; any other
// currency is written by its code.
var signs = map[string]string{"BRL": "R$", "EUR": "€", "GBP": "£", "USD": "US$", "MXN": "MX$", "ARS": "AR$"}

var (
	weekdays = map[string][7]string{
		"en":    {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"},
		"pt-BR": {"domingo", "segunda-feira", "terça-feira", "quarta-feira", "quinta-feira", "sexta-feira", "sábado"},
		"es":    {"domingo", "lunes", "martes", "miércoles", "jueves", "viernes", "sábado"},
	}
	months = map[string][12]string{
		"en":    {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
		"pt-BR": {"janeiro", "fevereiro", "março", "abril", "maio", "junho", "julho", "agosto", "setembro", "outubro", "novembro", "dezembro"},
		"es":    {"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"},
	}
)

// Number writes a whole number with the language's grouping: 12,345 or 12.345.
// Spanish leaves four digits together (1234), as browsers' Intl does.
func (t *Text) Number(n int) string {
	digits := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	sep, most := ",", 3
	switch t.Lang.Code {
	case "pt-BR":
		sep = "."
	case "es":
		sep, most = ".", 4
	}
	if len(digits) <= most {
		return sign + digits
	}
	var b strings.Builder
	for i, d := range []byte(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteString(sep)
		}
		b.WriteByte(d)
	}
	return sign + b.String()
}

// Money writes integer minor units of an ISO 4217 currency without passing
// through a float: R$25.00 in English, R$ 25,00 in Portuguese, 25,00 € in
// Spanish. An unknown code is written as it is, with two decimals.
func (t *Text) Money(minor int64, code string) string {
	scale := 2
	if unit, err := currency.ParseISO(code); err == nil {
		scale, _ = currency.Standard.Rounding(unit)
	}
	neg := ""
	if minor < 0 {
		neg, minor = "-", -minor
	}
	div := int64(1)
	for range scale {
		div *= 10
	}
	amount := t.Number(int(minor / div))
	if scale > 0 {
		point := ","
		if t.Lang.Code == "en" {
			point = "."
		}
		amount += fmt.Sprintf("%s%0*d", point, scale, minor%div)
	}
	sign, known := signs[code]
	if !known {
		sign = code
	}
	const nbsp = "\u00a0" // keeps an amount on one line
	switch {
	case t.Lang.Code == "es":
		return neg + amount + nbsp + sign
	case t.Lang.Code == "en" && known:
		return neg + sign + amount
	}
	return neg + sign + nbsp + amount
}

// Clock writes the time of day: 8:30 PM in English, 20:30 elsewhere. The
// caller chooses the zone with time.Time.In.
func (t *Text) Clock(at time.Time) string {
	if t.Lang.Code == "en" {
		return at.Format("3:04\u00a0PM")
	}
	return at.Format("15:04")
}

// Date writes the day in words: Saturday, December 5; sábado, 5 de dezembro.
func (t *Text) Date(at time.Time) string {
	day := weekdays[t.Lang.Code][at.Weekday()]
	month := months[t.Lang.Code][at.Month()-1]
	if t.Lang.Code == "en" {
		return fmt.Sprintf("%s, %s %d", day, month, at.Day())
	}
	return fmt.Sprintf("%s, %d de %s", day, at.Day(), month)
}
