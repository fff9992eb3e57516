import { Histogram } from '../lib/histogram.ts';
import { Links, type Link } from './links.ts';

/** Kinds under which statistics count connections of viewers. */
export const PUBLISHER_KINDS = [
  'file',
  'flv',
  'hlsv3',
  'llhls',
  'ovt',
  'playback',
  'push',
  'rtmp',
  'rtsp',
  'srt',
  'thumbnail',
  'webrtc',
] as const;
export type PublisherKind = (typeof PUBLISHER_KINDS)[number];

/** Kinds under which statistics count connections of sources. */
export const PROVIDER_KINDS = [
  'file',
  'hlspull',
  'mpegts',
  'multiplex',
  'ovt',
  'rtmp',
  'rtmppull',
  'rtsp',
  'rtsppull',
  'scheduled',
  'srt',
  'webrtc',
] as const;
export type ProviderKind = (typeof PROVIDER_KINDS)[number];

const WINDOW_MS = 1000;

/** Bytes in one direction, with the one-second windows of docs/compatibility.md#statistics. */
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

/** Upper bounds of the times in which viewers have their first media, in seconds. */
const JOIN_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16];

/** How the viewers of a node fare, by protocol. */
export class Viewing {
  readonly sentBytes = none(PUBLISHER_KINDS);
  /** How often a viewer who was being sent media got none for about a second. */
  readonly stalls = none(PUBLISHER_KINDS);
  /** Bytes that this node has sent to players whom another one counts, and others to those whom this one counts. */
  sentForOthers = 0;
  sentByOthers = 0;
  readonly #joins = new Map<PublisherKind, Histogram>();

  /** Seconds from the request of a viewer until it was sent media, or could be. */
  get joins(): ReadonlyMap<PublisherKind, Histogram> {
    return this.#joins;
  }

  joined(kind: PublisherKind, seconds: number): void {
    const joins = this.#joins.get(kind) ?? new Histogram(JOIN_SECONDS);
    this.#joins.set(kind, joins);
    joins.add(seconds);
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
  readonly publishers = none(PUBLISHER_KINDS);
  readonly providers = none(PROVIDER_KINDS);
  /** Viewers and sources that have come so far. */
  readonly publishersSoFar = none(PUBLISHER_KINDS);
  readonly providersSoFar = none(PROVIDER_KINDS);
  /** Packets that a reader was too slow for, and how often one fell so far behind that it lost some. */
  droppedPackets = 0;
  slowReaders = 0;
  /** Packets of the input that never came. */
  lostPackets = 0;
  /** Connections that tell how their network fares: of sources, and of viewers and pushes. */
  readonly linksIn = new Links();
  readonly linksOut = new Links();
  /** How viewers fare, by protocol: of the whole node. */
  readonly viewing: Viewing;
  totalConnections = 0;
  maxTotalConnections = 0;
  maxTotalConnectionTime = this.createdTime;
  lastUpdatedTime = this.createdTime;
  readonly #parent: Counters | undefined;

  constructor(parent?: Counters) {
    this.#parent = parent;
    this.viewing = parent?.viewing ?? new Viewing();
  }

  received(bytes: number, now = Date.now()): void {
    for (let level: Counters | undefined = this; level !== undefined; level = level.#parent) {
      level.in.add(bytes, now);
      level.lastUpdatedTime = now;
    }
  }

  /** As `sent`, to viewers of a protocol. */
  sentTo(kind: PublisherKind, bytes: number, now = Date.now()): void {
    this.viewing.sentBytes[kind] += bytes;
    this.sent(bytes, now);
  }

  sent(bytes: number, now = Date.now()): void {
    for (let level: Counters | undefined = this; level !== undefined; level = level.#parent) {
      level.out.add(bytes, now);
      level.lastUpdatedTime = now;
    }
  }

  /** A reader has fallen behind, and lost packets. @param isNews it had not fallen behind just before */
  dropped(packets: number, isNews: boolean): void {
    for (let level: Counters | undefined = this; level !== undefined; level = level.#parent) {
      level.droppedPackets += packets;
      if (isNews) level.slowReaders++;
    }
  }

  /** Counts missing packets of the input, as its transport reports them: RTP packets, SRT messages, gaps in MPEG-TS and OVT. */
  lost(packets: number): void {
    for (let level: Counters | undefined = this; level !== undefined; level = level.#parent)
      level.lostPackets += packets;
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

  /** A connection brings media, or takes them; call the answer, once, when it has gone. */
  link(direction: 'in' | 'out', link: Link): () => void {
    const key = direction === 'in' ? 'linksIn' : 'linksOut';
    for (let level: Counters | undefined = this; level !== undefined; level = level.#parent) level[key].add(link);
    return once(() => {
      for (let level: Counters | undefined = this; level !== undefined; level = level.#parent) level[key].remove(link);
    });
  }

  #viewers(kind: PublisherKind, step: 1 | -1): void {
    const now = Date.now();
    for (let level: Counters | undefined = this; level !== undefined; level = level.#parent) {
      level.publishers[kind] += step;
      if (step > 0) level.publishersSoFar[kind]++;
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
      if (step > 0) level.providersSoFar[kind]++;
      level.lastUpdatedTime = now;
    }
  }
}

function none<K extends string>(kinds: readonly K[]): Record<K, number> {
  return Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<K, number>;
}

function once(action: () => void): () => void {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    action();
  };
}
