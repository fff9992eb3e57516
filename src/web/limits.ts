/** Limits of an unauthenticated connection to an HTTP port, in bytes, milliseconds and pieces. */
export const LIMITS = {
  headerBytes: 16 * 1024,
  headers: 100,
  headersMs: 10_000,
  requestMs: 30_000,
  checkMs: 1000,
  idleMs: 120_000,
  /** Above the 60 s of the usual load balancers, so that they, not we, let go of an idle connection. */
  keepAliveMs: 65_000,
  connections: 20_000,
  bodyBytes: 1024 * 1024,
  pathNameLength: 1024,
};

/** Further limits of a connection that carries HTTP/2. */
export const HTTP2_LIMITS = {
  streams: 100,
  /** MiB, answers that wait for a slow reader included: some long segments at once. */
  sessionMemory: 64,
  /** Streams that a client takes back: at once, then each second (CVE-2023-44487). Seeking takes back a few. */
  resetBurst: 200,
  resetRate: 30,
  invalidFrames: 100,
  rejectedStreams: 100,
  outstandingPings: 10,
  settings: 32,
} as const;
