package queuehttp

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"usher/queue"
)

// fill gives every field of a document a value, or leaves it empty, by chance; so a
// field that is added to the document and not to the encoder is found.
func fill(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringMatching(`[ -~]{0,40}`), rapid.Just("a<b>&\u2028\xff\"\\\x01")).Draw(t, "text"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.OneOf(rapid.Just(int64(0)), rapid.Int64()).Draw(t, "number"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("no values for a %s", v.Type())
	}
}

func TestAPollsDocumentIsWhatEncodingJSONMakes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var d placeDoc
		fill(t, reflect.ValueOf(&d).Elem())
		d.PlaceID = rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "placeId")
		d.Token = rapid.StringMatching(`[A-Za-z0-9_-]{0,231}`).Draw(t, "token")
		want, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		room, err := json.Marshal(d.Room)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.append(nil, room); string(got) != string(want) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

// The room's part is kept for a board; what the board's age changes must show.
func TestTheRoomsTextFollowsTheBoard(t *testing.T) {
	t.Parallel()
	var texts roomTexts
	v := queue.RoomView{Room: "cinema", Waiting: 1, At: time.Unix(100, 1), InventoryOK: true, Available: 3}
	check := func(what string) {
		t.Helper()
		want, err := json.Marshal(describeRoom(v))
		if err != nil {
			t.Fatal(err)
		}
		if got := texts.of(&v); string(got) != string(want) {
			t.Fatalf("%s: got %s, want %s", what, got, want)
		}
	}
	check("first")
	kept := texts.of(&v)
	if again := texts.of(&v); &again[0] != &kept[0] {
		t.Fatal("made again for the same board")
	}
	v.Stale = true
	check("stale")
	v.InventoryOK = false
	check("no report")
	v.At, v.Waiting = v.At.Add(time.Nanosecond), 2
	check("next board")
	v.Room, v.Waiting = "other", 9
	check("another room")
}
