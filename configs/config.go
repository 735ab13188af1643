package configs

import "time"

// Config is everything an operator may set. The koanf tag is the key; a field
// with file:"yes" may also be given as <key>File, the name of a file that holds
// it; path:"yes" marks a file's name, which is relative to the configuration's
// own; live:"yes" marks what a reload changes without a restart.
type Config struct {
	Log       Log        `koanf:"log"`
	Edge      Edge       `koanf:"edge"`
	Booking   Booking    `koanf:"booking"`
	Sandbox   Sandbox    `koanf:"sandbox"`
	Admin     Admin      `koanf:"admin"`
	Redis     Redis      `koanf:"redis"`
	Postgres  Postgres   `koanf:"postgres"`
	Pass      Pass       `koanf:"pass"`
	Payment   Payment    `koanf:"payment"`
	HTTP      HTTP       `koanf:"http"`
	Shutdown  Shutdown   `koanf:"shutdown"`
	Operators []Operator `koanf:"operators" live:"yes" file:"yes"`
}

// Log configures the log on standard error.
type Log struct {
	Level string `koanf:"level" live:"yes"` // debug, info, warn or error
}

// Edge configures the waiting rooms' listener.
type Edge struct {
	Addr          string        `koanf:"addr"`
	PublicURL     string        `koanf:"publicURL"` // as a browser reaches it; from addr when empty
	SecureCookies bool          `koanf:"secureCookies"`
	PlaceSecrets  []Secret      `koanf:"placeSecrets" file:"yes"` // the first signs, all verify
	ClaimWindow   time.Duration `koanf:"claimWindow"`             // how long an invitation stands
	Limits        Limits        `koanf:"limits"`
	Proof         Proof         `koanf:"proof"`
	Streams       Streams       `koanf:"streams"`

	Customers map[string]Customers  `koanf:"customers" live:"yes"` // room → who names its fans; "*" is every other room
	ReturnTo  map[string][]ReturnTo `koanf:"returnTo" live:"yes"`  // room → where its fans may go back to; "*" is every room besides
}

// Booking configures the box office's listener, its lanes and the bridge.
type Booking struct {
	Addr           string              `koanf:"addr"`
	PublicURL      string              `koanf:"publicURL"`
	SecureCookies  bool                `koanf:"secureCookies"`
	SessionSecret  Secret              `koanf:"sessionSecret" file:"yes"`
	TicketSecrets  []Secret            `koanf:"ticketSecrets" file:"yes"` // the first signs the codes on tickets, all verify
	SessionLife    time.Duration       `koanf:"sessionLife"`
	Lanes          int                 `koanf:"lanes"`
	LaneQueue      int                 `koanf:"laneQueue"`
	BatchMax       int                 `koanf:"batchMax"`
	HoldDeadline   time.Duration       `koanf:"holdDeadline"`
	SweepEvery     time.Duration       `koanf:"sweepEvery"`
	BridgeEvery    time.Duration       `koanf:"bridgeEvery"`
	AllowedOrigins map[string][]string `koanf:"allowedOrigins" live:"yes"` // room → origins; "*" is every room
	Events         Events              `koanf:"events"`
}

// Sandbox configures the payment provider that stands in for a real one.
type Sandbox struct {
	Addr      string        `koanf:"addr"`
	PublicURL string        `koanf:"publicURL"`
	StateFile string        `koanf:"stateFile" path:"yes"` // keeps payments over a restart; "" keeps them in memory
	LateAfter time.Duration `koanf:"lateAfter"`            // when a late payment is taken, from the choice on; 0: once the hold is over
}

// Admin configures the operators' listener: health, metrics, room calls.
type Admin struct {
	Addr string `koanf:"addr"`
}

// Redis says where the line is.
type Redis struct {
	URL      StoreURL `koanf:"url" file:"yes"`
	PoolSize int      `koanf:"poolSize"` // connections, in a cluster to each node
	// Cluster: url names a Redis Cluster, its further nodes as ?addr=host:port&addr=….
	Cluster bool `koanf:"cluster"`
	// AllowEviction starts a role beside a Redis that throws keys away when it is full.
	AllowEviction bool `koanf:"allowEviction"`
}

// Postgres says where the truth is.
type Postgres struct {
	URL              StoreURL      `koanf:"url" file:"yes"`
	MaxConns         int           `koanf:"maxConns"`
	StatementTimeout time.Duration `koanf:"statementTimeout"`
}

// Pass says where the keys of the passes are: the edge signs with the key file;
// booking verifies by the same file or by the edge's published key set.
type Pass struct {
	KeysFile string `koanf:"keysFile" path:"yes"`
	JWKSURL  string `koanf:"jwksURL"`
}

// Payment configures the provider and what a payment may take.
type Payment struct {
	Provider       string        `koanf:"provider"`           // sandbox
	URL            string        `koanf:"url"`                // where booking reaches the sandbox
	APIKey         Secret        `koanf:"apiKey" file:"yes"`  // booking shows it to the provider
	Secrets        []Secret      `koanf:"secrets" file:"yes"` // the first signs what the provider reports, all verify
	CallbackURL    string        `koanf:"callbackURL"`        // where the provider reports; from booking's address when empty
	Life           time.Duration `koanf:"life"`
	HoldExtension  time.Duration `koanf:"holdExtension"`
	ReconcileAfter time.Duration `koanf:"reconcileAfter"`
	ReconcileEvery time.Duration `koanf:"reconcileEvery"`
}

// HTTP configures every public listener.
type HTTP struct {
	TrustedProxies []string `koanf:"trustedProxies"` // whose X-Forwarded-For is believed
	Concurrency    int      `koanf:"concurrency"`    // connections served at once, a listener
}

// Shutdown bounds an exit.
type Shutdown struct {
	DrainDelay time.Duration `koanf:"drainDelay"` // between "not ready" and the first closed listener
	Timeout    time.Duration `koanf:"timeout"`    // the whole of it
}

// Operator is one holder of a token for the admin API.
type Operator struct {
	Name      string `koanf:"name"`
	Role      string `koanf:"role"`      // viewer, operator or boxoffice
	TokenHash string `koanf:"tokenHash"` // "sha256:" and 64 hex digits
}

// Default is the configuration before anybody has set anything.
func Default() Config {
	return Config{
		Log: Log{Level: "info"},
		Edge: Edge{
			Addr: ":8080", SecureCookies: true, ClaimWindow: 2 * time.Minute, Limits: defaultLimits(), Proof: defaultProof(),
			Streams: defaultStreams(),
		},
		Sandbox: Sandbox{Addr: ":8082"},
		Admin:   Admin{Addr: "127.0.0.1:9090"},
		Booking: Booking{
			Addr: ":8081", SecureCookies: true, SessionLife: 15 * time.Minute,
			Lanes: 2, LaneQueue: 1024, BatchMax: 128, HoldDeadline: 2 * time.Second,
			SweepEvery: 15 * time.Second, BridgeEvery: time.Second, Events: defaultEvents(),
		},
		Redis:    Redis{PoolSize: 32},
		Postgres: Postgres{MaxConns: 16, StatementTimeout: 10 * time.Second},
		Payment: Payment{
			Provider: "sandbox", Life: 8 * time.Minute, HoldExtension: 10 * time.Minute,
			ReconcileAfter: 15 * time.Minute, ReconcileEvery: 30 * time.Second,
		},
		HTTP:     HTTP{Concurrency: 16_000},
		Shutdown: Shutdown{DrainDelay: 300 * time.Millisecond, Timeout: 18 * time.Second},
	}
}
