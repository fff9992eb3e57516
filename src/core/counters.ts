/** What a viewer's connection is counted under in statistics. */
export const PUBLISHER_KINDS = ['file', 'hlsv3', 'llhls', 'ovt', 'push', 'srt', 'thumbnail', 'webrtc'] as const;
export type PublisherKind = (typeof PUBLISHER_KINDS)[number];

/** What a source's connection is counted under in statistics. */
export const PROVIDER_KINDS = [
  'file',
  'mpegts',
  'multiplex',
  'ovt',
  'rtmp',
  'rtsp',
  'rtsppull',
  'scheduled',
  'srt',
  'webrtc',
] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

const WINDOW_MS = 1000;

/** Bytes in one direction, with the one-second windows of facts/01-rest-api.md section 10. */
export class Flow {
  totalBytes = 0;
  /** Bytes moved in the last window. */
  lastThroughput = 0;
  /** Bits per second over the last window. */
  avgThroughput = 0;
  /** Highest `avgThroughput` seen, in bits per second. */
  maxThroughput = 0;
  /** Milliseconds since the epoch of the last byte, the creation time before the first. */
  lastTime: number;
  #windowStart: number;
  #windowBytes = 0;

  constructor(now: number) {
    this.lastTime = now;
    this.#windowStart = now;
  }

  add(bytes: number, now: number): void {
    this.totalBytes += bytes;
    this.lastTime = now;
    this.#windowBytes += bytes;
    const elapsed = now - this.#windowStart;
    if (elapsed < WINDOW_MS) return;
    this.lastThroughput = this.#windowBytes;
    this.avgThroughput = Math.round((this.#windowBytes * 8000) / elapsed);
    if (this.avgThroughput > this.maxThroughput) this.maxThroughput = this.avgThroughput;
    this.#windowStart = now;
    this.#windowBytes = 0;
  }
}

/**
 * Counters of a stream, application, virtual host or server. What happens below is added
 * to every level above in the same call, so a parent keeps the totals of children that are gone.
 */
export class Counters {
  readonly createdTime = Date.now();
  readonly in = new Flow(this.createdTime);
  readonly out = new Flow(this.createdTime);
  readonly publishers: Record<PublisherKind, number> = {
    file: 0,
    hlsv3: 0,
    llhls: 0,
    ovt: 0,
    push: 0,
    srt: 0,
    thumbnail: 0,
    webrtc: 0,
  };
  readonly providers: Record<ProviderKind, number> = {
    file: 0,
    mpegts: 0,
    multiplex: 0,
    ovt: 0,
    rtmp: 0,
    rtsp: 0,
    rtsppull: 0,
    scheduled: 0,
    srt: 0,
    webrtc: 0,
  };
  totalConnections = 0;
  maxTotalConnections = 0;
  maxTotalConnectionTime = this.createdTime;
  lastUpdatedTime = this.createdTime;
  readonly #parent: Counters | undefined;

  constructor(parent?: Counters) {
    this.#parent = parent;
  }

  received(bytes: number, now = Date.now()): void {
    for (let level: Counters | undefined = this; level !== undefined; level = level.#parent) {
      level.in.add(bytes, now);
      level.lastUpdatedTime = now;
    }
  }

  sent(bytes: number, now = Date.now()): void {
    for (let level: Counters | undefined = this; level !== undefined; level = level.#parent) {
      level.out.add(bytes, now);
      level.lastUpdatedTime = now;
    }
  }

  /** A viewer came; call the answer, once, when it has gone. */
  viewer(kind: PublisherKind): () => void {
    this.#viewers(kind, 1);
    return once(() => this.#viewers(kind, -1));
  }

  /** A source came; call the answer, once, when it has gone. */
  source(kind: ProviderKind): () => void {
    this.#sources(kind, 1);
    return once(() => this.#sources(kind, -1));
  }

  #viewers(kind: PublisherKind, step: 1 | -1): void {
    const now = Date.now();
    for (let level: Counters | undefined = this; level !== undefined; level = level.#parent) {
      level.publishers[kind] += step;
      level.totalConnections += step;
      level.lastUpdatedTime = now;
      if (level.totalConnections > level.maxTotalConnections) {
        level.maxTotalConnections = level.totalConnections;
        level.maxTotalConnectionTime = now;
      }
    }
  }

  #sources(kind: ProviderKind, step: 1 | -1): void {
    const now = Date.now();
    for (let level: Counters | undefined = this; level !== undefined; level = level.#parent) {
      level.providers[kind] += step;
      level.lastUpdatedTime = now;
    }
  }
}

function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
}
