package catalog

import (
	"context"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed demo/*.yaml
var demos embed.FS

// Demos are the files of the demonstration events, ready to apply.
func Demos() ([]File, error) {
	entries, err := demos.ReadDir("demo")
	if err != nil {
		return nil, fmt.Errorf("catalog: demos: %w", err)
	}
	var out []File
	for _, entry := range entries {
		data, err := demos.ReadFile("demo/" + entry.Name())
		if err != nil {
			return nil, fmt.Errorf("catalog: demos: %w", err)
		}
		f, err := Parse(entry.Name(), data)
		if err != nil {
			return nil, fmt.Errorf("catalog: demo %s: %w", entry.Name(), err)
		}
		out = append(out, f)
	}
	return out, nil
}

// ApplyDemos puts the demonstration events on sale; a second time it changes nothing.
func ApplyDemos(ctx context.Context, pool *pgxpool.Pool) error {
	files, err := Demos()
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := Apply(ctx, pool, f, "demo"); err != nil {
			return err
		}
	}
	return nil
}
