package bookinghttp

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"usher/admission/pass"
	"usher/booking/bookingtest"
)

// A pass that was passed around: 1,000 tries at once on two processes, and one of
// them has a session. With a binding the browser that joined has it, however often it
// asks, and nobody else.
func TestQ3_AThousandTriesOnTwoNodesAreOneSession(t *testing.T) {
	t.Parallel()
	const tries = 1000
	nodes := []*house{open(t, bookingtest.Hall{})}
	nodes = append(nodes, nodes[0].another())
	for _, bound := range []bool{false, true} {
		jti, hash := fmt.Sprint("jti-", bound), ""
		if bound {
			hash = pass.HashBinding("secret")
		}
		token := nodes[0].pass(jti, "ann", hash)
		answers, gate := make([]string, tries), make(chan struct{})
		free := make(chan struct{}, 200) // connections at once, as the descriptors of a test machine allow
		var wg sync.WaitGroup
		for i := range tries {
			wg.Go(func() {
				<-gate
				free <- struct{}{}
				defer func() { <-free }()
				body := `{"pass":"` + token + `"}`
				if bound && i%4 == 0 { // the browser that joined; the others have the pass alone
					body = `{"pass":"` + token + `","binding":"secret"}`
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, nodes[i%2].url+"/v1/sessions", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Content-Type", "application/json")
				r, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				_ = r.Body.Close()
				answers[i] = fmt.Sprint(r.StatusCode)
				if r.StatusCode/100 == 2 {
					answers[i] += r.Header.Get("Set-Cookie")[:len(SessionCookie)+37]
				}
			})
		}
		close(gate)
		wg.Wait()
		count, sessions := map[string]int{}, map[string]bool{}
		for _, a := range answers {
			if count[a[:min(3, len(a))]]++; len(a) > 3 {
				sessions[a[3:]] = true
			}
		}
		want := "map[201:1 409:999]"
		if bound {
			want = "map[200:249 201:1 403:750]"
			if count["409"] > 0 { // without the binding, when the session is there already
				count["403"] += count["409"]
				delete(count, "409")
			}
		}
		if got := fmt.Sprint(count); got != want || len(sessions) != 1 {
			t.Errorf("bound %v: %s with %d sessions, want %s with one", bound, got, len(sessions), want)
		}
		var rows int
		if err := nodes[0].pool.QueryRow(t.Context(), `SELECT count(*) FROM session WHERE jti = $1`, jti).Scan(&rows); err != nil || rows != 1 {
			t.Errorf("%d sessions in the database, %v", rows, err)
		}
	}
}
