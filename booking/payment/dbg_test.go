package payment_test
import ("fmt";"context")
func (s *shop) jobs() {
	rows, _ := s.pool.Query(context.Background(), `SELECT id, state::text, attempt, args::text, COALESCE(errors[1]::text,''), unique_key is null, finalized_at::text, scheduled_at::text, clock_timestamp()::text FROM river_job`)
	for rows.Next() { v, _ := rows.Values(); fmt.Println(v...) }
}
