-- drop: take a revoked fan's place out of the line. A slot stays until booking has
-- ended the visit.
-- KEYS  as in keys.go
-- ARGV  1 member
-- returns 1
drop(ARGV[1])
return 1
