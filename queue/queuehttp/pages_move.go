package queuehttp

import (
	"html/template"
	"strings"

	"github.com/gofiber/fiber/v2"

	"usher/internal/basehttp"
	"usher/internal/pagehttp"
	"usher/queue"
)

// moveView is what templates/move.html shows.
type moveView struct {
	Room, Title string
	Why         string // the refusal's slug; "" before the first try
}

// moveReasons are the refusals the page has words for.
var moveReasons = map[string]bool{
	"move-code-invalid": true, "already-admitted": true, "place-expired": true, "room-closed": true, "revoked": true,
	"too-many-requests": true,
}

// showMove is where a code's link leads. The code stands behind the address' #; the
// page's script writes it into the form, and the fan sends it: what only looks at
// links, as messengers do, takes no place over.
func (p *pages) showMove(c *fiber.Ctx) error {
	p.s.ensureFan(c)
	return p.renderMove(c, strings.Clone(c.Params("room")), fiber.StatusOK, "")
}

func (p *pages) renderMove(c *fiber.Ctx, room string, status int, why string) error {
	info, err := p.s.roomView(room)
	if slugOf(err) == "unknown-room" {
		return p.kit.Render(c, pagehttp.View{Status: fiber.StatusNotFound, Page: "unknown", Data: room})
	}
	v := moveView{Room: room, Title: info.Title, Why: why}
	if err != nil || v.Title == "" {
		v.Title = room
	}
	return p.kit.Render(c, pagehttp.View{Status: status, Page: "move", Data: v, Path: roomPath(room) + "/move"})
}

// takeMove moves the place behind the form's code here, or says why not on the same page.
func (p *pages) takeMove(c *fiber.Ctx, room string) error {
	field, err := basehttp.Form(c)
	if err != nil {
		return p.renderMove(c, room, fiber.StatusNotFound, "move-code-invalid")
	}
	code := strings.TrimSpace(field("moveCode"))
	if _, after, whole := strings.Cut(code, "#"); whole { // the whole link was pasted
		code = after
	}
	doc, kept, err := p.s.move(c, room, code)
	if slug := slugOf(err); moveReasons[slug] {
		return p.renderMove(c, room, slugStatus(err), slug)
	}
	if err != nil {
		return p.after(c, room, err)
	}
	p.forgetShown(c, room) // the number of a place of before
	if p.cookieless(c) {
		if !kept {
			code = ""
		}
		return p.keptPlace(c, room, doc, code)
	}
	return c.Redirect(roomPath(room), fiber.StatusSeeOther)
}

// device answers a fan who goes on elsewhere with the code for there.
func (p *pages) device(c *fiber.Ctx, room string) error {
	code, err := p.s.moveCode(c, room, false)
	if err != nil {
		return p.after(c, room, err)
	}
	info, err := p.s.roomView(room)
	v := keptView{Room: room, Title: info.Title, Code: code.Code, URL: code.URL, QR: picture(code.QRSVG)}
	if err != nil || v.Title == "" {
		v.Title = room
	}
	return p.kit.Render(c, pagehttp.View{Page: "device", Data: v, Path: roomPath(room) + "/device", Secret: true})
}

// keptView is what templates/kept.html shows to a browser that keeps no cookies: its
// place lives in a code, which each of the page's forms carries.
type keptView struct {
	Room, Title string
	Doc         placeDoc
	Code, URL   string
	QR          template.URL
	Note, Wait  string
	Called      bool
}

// cookieless tells a browser that keeps no cookies: each of our pages sets one, and
// none came with a form of such a page.
func (p *pages) cookieless(c *fiber.Ctx) bool {
	return len(p.s.fans(c)) == 0 && c.Get("Sec-Fetch-Site") == "same-origin"
}

// keptPlace answers with the place itself and with the kept code that brings it back:
// the one that was shown, or a new one ("").
func (p *pages) keptPlace(c *fiber.Ctx, room string, doc placeDoc, code string) error {
	v := keptView{Room: room, Title: doc.Room.Title, Doc: doc, Code: code, Called: doc.Status == queue.Called || doc.Status == queue.Admitted}
	if v.Title == "" {
		v.Title = room
	}
	kept, err := moveDoc{}, error(nil)
	if code != "" {
		kept, err = p.s.describeCode(c, room, queue.MoveCode{Code: code, Keep: true})
	} else {
		kept, err = p.s.moveCodeOf(c, room, queue.Token(doc.Token), true)
	}
	if err == nil { // without one the place is this page's alone, which is better than none
		v.Code, v.URL = kept.Code, kept.URL
		v.QR = picture(kept.QRSVG)
	}
	w := words{p.kit.Text(c)}
	v.Note, v.Wait = w.ahead(doc.Ahead), w.wait(doc.ETA)
	return p.kit.Render(c, pagehttp.View{
		Page: "kept", Data: v, Path: roomPath(room) + "/move", Secret: true,
		Policy: p.formsTo(c, room),
	})
}

// picture is an SVG of our own as a data: address.
func picture(svg string) template.URL {
	percent := strings.NewReplacer("%", "%25", "#", "%23", "\"", "%22", "<", "%3C", ">", "%3E", "\n", "%0A")
	return template.URL("data:image/svg+xml," + percent.Replace(svg)) //nolint:gosec // made here, of our own address
}

// formCode is the code that the form of a kept place brings along; "" for any other form.
func formCode(c *fiber.Ctx) (string, error) {
	if len(c.Request().Body()) == 0 {
		return "", nil
	}
	field, err := basehttp.Form(c)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(field("moveCode")), nil
}

// enterByCode claims for a browser that has its place in a code alone.
func (p *pages) enterByCode(c *fiber.Ctx, room, code string) (passDoc, error) {
	doc, _, err := p.s.move(c, room, code)
	if err != nil {
		return passDoc{}, err
	}
	token := queue.Token(doc.Token)
	binding, bound, err := p.s.line.Bond(room, token, p.s.fans(c))
	if err != nil || bound && binding == "" {
		return passDoc{}, errBindingLost
	}
	return p.s.claimFor(room, token, binding, p.backTo(c, room))
}
