import type { Application } from '../../core/application.ts';
import { PUBLISHER_KINDS, type Counters, type PublisherKind } from '../../core/counters.ts';
import { NO_COUNTS, plusCounts, type LinkCounts, type Links } from '../../core/links.ts';
import type { Registry } from '../../core/registry.ts';
import type { InputStream } from '../../core/input-stream.ts';
import type { Track } from '../../core/track.ts';
import { onStreamBegins } from '../stream-begins.ts';
import type { Labels } from './family.ts';

/** Streams with labels of their own: publishers must not fill the memory of Prometheus. */
const MAX_STREAMS = 2000;
/** Tracks of one stream with series of their own. */
const MAX_TRACKS = 16;
/** A stream that is published again within this time was reconnected. */
const RECONNECT_MS = 60_000;
/** Ended streams that are remembered to recognize reconnected ones. */
const MAX_ENDED = 2000;
const OTHERS: Labels = { vhost: '*', application: '*', stream: '*' };

export interface TrackSeries {
  readonly id: number;
  readonly type: Track['type'];
  readonly labels: Labels;
}

/** All streams of this node that have the same name. */
export interface StreamSeries {
  readonly labels: Labels;
  /** Undefined if only relays of another node's stream are here. */
  readonly input: InputStream | undefined;
  /** Whether a source of the stream is or was here: not only relays. */
  readonly hasSource: boolean;
  /** Counters of the stream and its relays. */
  readonly counters: readonly Counters[];
  /** Totals of earlier streams and relays, whose counters are gone. */
  readonly carried: Carried;
  /** Protocols that have had viewers: one without any now has a series with 0. */
  readonly protocols: ReadonlySet<PublisherKind>;
  readonly reconnects: number;
  readonly tracks: readonly TrackSeries[];
}

interface Carried {
  readonly in: number;
  readonly out: number;
  readonly dropped: number;
  readonly lost: number;
  readonly slow: number;
  readonly linksIn: CarriedLinks;
  readonly linksOut: CarriedLinks;
}

interface CarriedLinks {
  readonly soFar: number;
  readonly counts: LinkCounts;
}

interface Ended {
  readonly reconnects: number;
  readonly at: number;
}

const NO_LINKS: CarriedLinks = { soFar: 0, counts: NO_COUNTS };
const NONE: Carried = { in: 0, out: 0, dropped: 0, lost: 0, slow: 0, linksIn: NO_LINKS, linksOut: NO_LINKS };

/** A stream name, as long as a stream under it is live. */
class Named implements StreamSeries {
  readonly labels: Labels;
  readonly reconnects: number;
  readonly #inputs = new Set<InputStream>();
  readonly #protocols = new Set<PublisherKind>();
  input: InputStream | undefined;
  hasSource = false;
  tracks: readonly TrackSeries[] = [];
  carried = NONE;
  /** Undefined after a change of the inputs. */
  #counters: readonly Counters[] | undefined;

  constructor(labels: Labels, reconnects: number) {
    this.labels = labels;
    this.reconnects = reconnects;
  }

  /** Streams and relays under the name. */
  get size(): number {
    return this.#inputs.size;
  }

  get counters(): readonly Counters[] {
    return (this.#counters ??= Array.from(this.#inputs, ({ counters }) => counters));
  }

  get protocols(): ReadonlySet<PublisherKind> {
    for (const { publishers } of this.counters)
      for (const kind of PUBLISHER_KINDS) if (publishers[kind] > 0) this.#protocols.add(kind);
    return this.#protocols;
  }

  /** Adds a stream without series for its tracks. */
  count(input: InputStream): void {
    this.#inputs.add(input);
    this.#counters = undefined;
    this.hasSource ||= !input.isRelay;
  }

  /** Adds a stream with series for its tracks. */
  follow(input: InputStream): void {
    this.count(input);
    if (input.isRelay) return;
    this.input = input;
    const list = (tracks: readonly Track[]): void => {
      this.tracks = tracks
        .slice(0, MAX_TRACKS)
        .map(({ id, type }) => ({ id, type, labels: { ...this.labels, track: String(id), kind: type } }));
    };
    list(input.tracks);
    input.on('tracks', list);
  }

  remove(input: InputStream): void {
    this.#inputs.delete(input);
    this.#counters = undefined;
    this.carried = plus(this.carried, input.counters);
    if (this.input !== input) return;
    this.input = undefined;
    this.tracks = [];
  }
}

function plus(carried: Carried, counters: Counters): Carried {
  const { in: received, out, droppedPackets, lostPackets, slowReaders, linksIn, linksOut } = counters;
  return {
    in: carried.in + received.totalBytes,
    out: carried.out + out.totalBytes,
    dropped: carried.dropped + droppedPackets,
    lost: carried.lost + lostPackets,
    slow: carried.slow + slowReaders,
    linksIn: plusLinks(carried.linksIn, linksIn),
    linksOut: plusLinks(carried.linksOut, linksOut),
  };
}

/** Links of a stream and its relays, past ones too. */
export function plusLinks(carried: CarriedLinks, links: Links): CarriedLinks {
  if (links.soFar === 0) return carried;
  return { soFar: carried.soFar + links.soFar, counts: plusCounts(carried.counts, links.counts) };
}

/** The streams of this node, each under its own labels, and those beyond the limit under common ones. */
export class AllStreams {
  readonly #named = new Map<string, Named>();
  readonly #others = new Named(OTHERS, 0);
  readonly #labels = new WeakMap<InputStream, Labels>();
  readonly #ended = new Map<string, Ended>();
  readonly #max: number;
  readonly #unlisten: () => void;

  constructor(registry: Registry, max = MAX_STREAMS) {
    this.#max = max;
    this.#unlisten = onStreamBegins(registry, (input, application) => this.#begun(input, application));
  }

  get listed(): Iterable<StreamSeries> {
    return this.#named.values();
  }

  /** The streams with labels of their own, and all others together as one. */
  *all(): Iterable<StreamSeries> {
    yield* this.#named.values();
    if (this.#others.size > 0 || this.#others.carried !== NONE) yield this.#others;
  }

  labelsOf(input: InputStream): Labels {
    return this.#labels.get(input) ?? OTHERS;
  }

  close(): void {
    this.#unlisten();
  }

  #begun(input: InputStream, { vhost, name }: Application): void {
    if (input.closed) return;
    const labels = { vhost: vhost.name, application: name, stream: input.name };
    const key = JSON.stringify(labels);
    const named = this.#named.get(key) ?? this.#add(key, labels);
    this.#labels.set(input, named.labels);
    if (named === this.#others) named.count(input);
    else named.follow(input);
    input.once('close', () => {
      named.remove(input);
      if (named.size > 0 || named === this.#others) return;
      this.#named.delete(key);
      this.#remember(key, named);
    });
  }

  #add(key: string, labels: Labels): Named {
    if (this.#named.size >= this.#max) return this.#others;
    const before = this.#ended.get(key);
    this.#ended.delete(key);
    const isAgain = before !== undefined && performance.now() - before.at < RECONNECT_MS;
    const named = new Named(labels, (before?.reconnects ?? 0) + Number(isAgain));
    this.#named.set(key, named);
    return named;
  }

  #remember(key: string, { reconnects }: Named): void {
    this.#ended.set(key, { reconnects, at: performance.now() });
    const [oldest] = this.#ended.keys();
    if (this.#ended.size > MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest);
  }
}
