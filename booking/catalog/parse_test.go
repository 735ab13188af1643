package catalog

import (
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// What a box office reads when its file is wrong is as much an interface as a URL.
func TestMessagesOfBadFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f, err := Parse(filepath.Base(file), data)
			var faults Faults
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("accepted, or no Faults: %v", err)
			}
			if len(f.Rooms)+len(f.Venues)+len(f.Events) > 0 {
				t.Error("a refused file gave something")
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			got := err.Error() + "\n"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got\n%swant\n%s", got, want)
			}
		})
	}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"A": "A", "12": "12", "A-D": "A B C D", "AA-AC": "AA AB AC", "3-1": "3 2 1", "1-6/2": "1 3 5",
		"1-5/2, 6-2/2": "1 3 5 6 4 2", "A-B,D": "A B D", "a-c": "a b c",
		"": "", "A-5": "", "A-z": "", "AB-CD": "", "1-3, 2": "", "1-9999": "", "-": "", "1-": "", "1-3/0": "", "Ä": "", "B-2-7": "",
	} {
		got, err := labels(in, 100)
		if want == "" && err == nil {
			t.Errorf("%q gave %v", in, got)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q gave %v (%v), want %s", in, got, err, want)
		}
	}
}

// The map must be drawable: everything inside the box, and no two seats on one another.
func TestDemoGeometry(t *testing.T) {
	t.Parallel()
	files, err := Demos()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		v := f.Venues[0]
		var box shape
		if err := json.Unmarshal(v.Shape, &box); err != nil {
			t.Fatal(err)
		}
		w, h := box.Width, box.Height
		grid := map[[2]int][]Seat{}
		for _, s := range v.Seats {
			if s.X < 0.4 || s.Y < 0.4 || s.X > w-0.4 || s.Y > h-0.4 {
				t.Fatalf("%s: seat %s is outside the box, at %v, %v", v.ID, s.Code, s.X, s.Y)
			}
			cell := [2]int{int(s.X), int(s.Y)}
			for dx := -1; dx <= 1; dx++ {
				for dy := -1; dy <= 1; dy++ {
					for _, o := range grid[[2]int{cell[0] + dx, cell[1] + dy}] {
						if math.Hypot(o.X-s.X, o.Y-s.Y) < seatSize {
							t.Fatalf("%s: seats %s and %s overlap", v.ID, o.Code, s.Code)
						}
					}
				}
			}
			grid[cell] = append(grid[cell], s)
		}
	}
}

// An aisle and a missing place are gaps: their sides must not look like neighbours.
func TestPositionsSkipGaps(t *testing.T) {
	t.Parallel()
	f, err := Parse("t.yaml", []byte(`
venues:
  - id: v
    name: V
    timezone: UTC
    seatCodes: "{row}{seat}"
    sections:
      - {id: S, price: x, rows: A-B, seats: "1-7/2, 8-2/2", aisleAfter: [3], accessible: [A1], missing: [A7]}
`))
	if err != nil {
		t.Fatal(err)
	}
	var row []string
	for _, s := range f.Venues[0].Seats {
		if s.Row == "A" {
			row = append(row, s.Label+"@"+itoa(s.Position))
		}
		if s.Accessible != (s.Code == "A1") {
			t.Errorf("seat %s accessible %v", s.Code, s.Accessible)
		}
	}
	if got, want := strings.Join(row, " "), "1@1 3@2 5@4 8@6 6@7 4@8 2@9"; got != want {
		t.Errorf("row A is %s, want %s", got, want)
	}
}

// The layout's name depends on what the file means, not on how it is written.
func TestLayoutDigest(t *testing.T) {
	t.Parallel()
	id := func(section string) string {
		f, err := Parse("t.yaml", []byte("venues: [{id: v, name: V, timezone: UTC, sections: ["+section+"]}]"))
		if err != nil {
			t.Fatal(err)
		}
		return f.Venues[0].LayoutID
	}
	one := id("{id: S, price: x, rows: A-B, seats: 1-4}")
	for _, same := range []string{
		"{seats: '1-4', id: S, rows: 'A, B', price: x}",
		"{id: S, price: x, rows: [{rows: A, seats: '1-2, 3-4'}, {rows: B, seats: 1-4}]}",
	} {
		if got := id(same); got != one {
			t.Errorf("%s gave %s, want %s", same, got, one)
		}
	}
	for _, other := range []string{
		"{id: S, price: y, rows: A-B, seats: 1-4}", "{id: S, price: x, rows: A-B, seats: 1-5}",
		"{id: S, price: x, rows: A-B, seats: 4-1}", "{id: S, price: x, rows: A-B, seats: 1-4, accessible: [S-A-1]}",
	} {
		if got := id(other); got == one {
			t.Errorf("%s has the same layout", other)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/bad/*.yaml", "demo/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := Parse("f.yaml", data)
		var faults Faults
		if err != nil && !errors.As(err, &faults) {
			t.Errorf("not Faults: %v", err)
		}
		for _, fault := range faults {
			if fault.Line < 1 || fault.Message == "" {
				t.Errorf("%+v", fault)
			}
		}
	})
}
