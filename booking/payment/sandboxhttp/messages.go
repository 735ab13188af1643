package sandboxhttp

import "golang.org/x/text/language"

// text is the page's fixed words.
type text struct {
	Title, Practice, PayTo, Total, Choose, Delay, DelayHint, Back, Over, None, NoneWhy string
}

// choice is one button.
type choice struct{ Value, Label, What string }

type language3 struct {
	tag     language.Tag
	text    text
	choices []choice
	states  map[string]string
}

// messages: the first is what a browser of another language gets.
var messages = []language3{
	{
		tag: language.English,
		text: text{
			Title: "Pay", Practice: "Practice payment: no money moves.", PayTo: "Pay to", Total: "Total",
			Choose: "What should happen?", Delay: "Seconds until a late payment is taken",
			DelayHint: "Empty: a few minutes after this page would have expired.", Back: "Back to the shop", Over: "This payment is closed.",
			None: "There is no such payment", NoneWhy: "The address may be incomplete. Go back to the shop and begin the payment there again.",
		},
		choices: []choice{
			{outcomePaid, "Pay", "The money is taken and the shop is told."},
			{outcomeDeclined, "Card declined", "The bank says no and the shop is told."},
			{outcomeTwice, "Pay, told twice", "The money is taken once; the shop is told twice at the same moment."},
			{outcomeLate, "Pay late", "You go back at once; the money is taken only after the time to pay is over."},
			{outcomeNever, "Pay, never told", "The money is taken and nobody tells the shop: it has to ask."},
		},
		states: map[string]string{"processing": "The payment is being processed.", "paid": "It has been paid.", "declined": "The card was declined.", "expired": "The time to pay is over."},
	},
	{
		tag: language.BrazilianPortuguese,
		text: text{
			Title: "Pagar", Practice: "Pagamento de teste: nenhum dinheiro é movimentado.", PayTo: "Pagar a", Total: "Total",
			Choose: "O que deve acontecer?", Delay: "Segundos até o pagamento atrasado ser cobrado",
			DelayHint: "Vazio: alguns minutos depois que esta página expiraria.", Back: "Voltar à loja", Over: "Este pagamento está encerrado.",
			None: "Este pagamento não existe", NoneWhy: "O endereço pode estar incompleto. Volte à loja e comece o pagamento de novo por lá.",
		},
		choices: []choice{
			{outcomePaid, "Pagar", "O valor é cobrado e a loja é avisada."},
			{outcomeDeclined, "Cartão recusado", "O banco recusa e a loja é avisada."},
			{outcomeTwice, "Pagar, aviso em dobro", "O valor é cobrado uma vez; a loja é avisada duas vezes ao mesmo tempo."},
			{outcomeLate, "Pagar com atraso", "Você volta na hora; o valor só é cobrado depois do fim do prazo."},
			{outcomeNever, "Pagar, sem aviso", "O valor é cobrado e ninguém avisa a loja: ela precisa perguntar."},
		},
		states: map[string]string{"processing": "O pagamento está em processamento.", "paid": "Já foi pago.", "declined": "O cartão foi recusado.", "expired": "O prazo para pagar terminou."},
	},
	{
		tag: language.Spanish,
		text: text{
			Title: "Pagar", Practice: "Pago de prueba: no se mueve dinero.", PayTo: "Pagar a", Total: "Total",
			Choose: "¿Qué debe pasar?", Delay: "Segundos hasta que se cobre el pago tardío",
			DelayHint: "Vacío: unos minutos después de que venza esta página.", Back: "Volver a la tienda", Over: "Este pago está cerrado.",
			None: "Este pago no existe", NoneWhy: "Puede que la dirección esté incompleta. Vuelve a la tienda y empieza el pago de nuevo allí.",
		},
		choices: []choice{
			{outcomePaid, "Pagar", "Se cobra el importe y se avisa a la tienda."},
			{outcomeDeclined, "Tarjeta rechazada", "El banco dice que no y se avisa a la tienda."},
			{outcomeTwice, "Pagar, aviso doble", "Se cobra una vez; se avisa a la tienda dos veces al mismo tiempo."},
			{outcomeLate, "Pagar tarde", "Vuelves enseguida; se cobra solo después de terminado el plazo."},
			{outcomeNever, "Pagar, sin aviso", "Se cobra y nadie avisa a la tienda: tiene que preguntar."},
		},
		states: map[string]string{"processing": "El pago se está procesando.", "paid": "Ya está pagado.", "declined": "La tarjeta fue rechazada.", "expired": "El plazo para pagar terminó."},
	},
}
