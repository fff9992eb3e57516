import { KeyGate } from '../../core/key-gate.ts';
import type { Packet } from '../../core/packet.ts';
import { toSeconds } from '../../core/timebase.ts';
import type { Track } from '../../core/track.ts';
import { Watchdog } from '../../lib/watchdog.ts';
import { pause } from '../../lib/pause.ts';
import type { LiveSink, LiveSource } from '../sources/live-source.ts';
import type { LiveSources, ReadBy } from '../sources/live-sources.ts';
import { readStreamUrl } from '../sources/stream-url.ts';
import { ChannelError } from '../sources/error.ts';
import { AlignedClock } from './aligned-clock.ts';
import type { SourceStream } from './spec.ts';
import { mapTracks, missingTrack, type MappedTrack } from './track-map.ts';

export interface SourceLineOptions {
  readonly spec: SourceStream;
  readonly sources: Pick<LiveSources, 'open'>;
  readonly by: ReadBy;
  /** Id of a track of the channel, by the index in the track map and the id of the source's track. */
  readonly idOf: (item: number, id: number) => number;
  /** A playing source has ended after this many milliseconds without a packet; 0: never. */
  readonly silenceMs: number;
  /** Called when a playing source has other tracks. */
  readonly onTracks: () => void;
  readonly onPacket: (packet: Packet) => void;
  /** Called when a playing source cannot continue. */
  readonly onOver: (reason: string) => void;
}

/** Limits of the buffer of a source until the others are ready. */
const HELD = { seconds: 5, trimmedSeconds: 4, bytes: 16 * 1024 * 1024 };
/** Pause before a source that ended is opened again. */
const AGAIN_MS = 1000;

/** One source of a channel: opened, buffered until all sources are ready, then mapped to the channel's time. */
export class SourceLine implements LiveSink {
  readonly #options: SourceLineOptions;
  #clock = new AlignedClock();
  #source: LiveSource | undefined;
  #missing: string | undefined;
  #mapped: readonly MappedTrack[] = [];
  #routes: ReadonlyMap<Track, readonly Track[]> = new Map();
  /** Buffered packets before the channel plays, with the source's timestamps. */
  #held: Packet[] = [];
  #heldBytes = 0;
  /** Milliseconds of the monotonic clock at time 0 of the channel; undefined until it plays. */
  #zero: number | undefined;
  #gate = new KeyGate();
  /** Last decode time of each track of the channel, in its ticks. */
  readonly #last = new Map<number, number>();
  #watchdog: Watchdog | undefined;
  #ended = Promise.withResolvers<void>();

  constructor(options: SourceLineOptions) {
    this.#options = options;
  }

  /** Opens the source, again and again, until the signal aborts. @throws ChannelError when it can never be opened */
  async run(signal: AbortSignal): Promise<void> {
    const { spec, sources, by } = this.#options;
    const url = readStreamUrl(spec.url);
    if (url === undefined) throw new ChannelError(`${spec.url} is not the URL of a stream`);
    const stop = (): void => this.#ended.resolve();
    signal.addEventListener('abort', stop, { once: true });
    try {
      while (!signal.aborted) {
        this.#ended = Promise.withResolvers();
        const source = await sources.open(url, by, this, signal);
        if (source === undefined) return;
        this.#source = source;
        const unlisten = this.#listen(source);
        if (!signal.aborted) await this.#ended.promise;
        unlisten();
        this.#reset();
        await pause(AGAIN_MS, signal);
      }
    } finally {
      signal.removeEventListener('abort', stop);
      this.#reset();
    }
  }

  /** Reason why the source cannot play yet; undefined when it can. @param now milliseconds of the monotonic clock */
  waitsFor(now: number): string | undefined {
    const { url } = this.#options.spec;
    if (this.#source === undefined) return `stream ${url}`;
    if (this.#missing !== undefined) return `track ${this.#missing} of stream ${url}`;
    const isSilent = this.#held.length === 0 && this.#mapped.some(({ from }) => from.type !== 'data');
    return isSilent || !this.#clock.settled(now) ? `media of stream ${url}` : undefined;
  }

  /** Tracks of the channel that come from this source. */
  get channelTracks(): Track[] {
    return this.#mapped.map(({ to }) => to);
  }

  get hasVideo(): boolean {
    return this.#mapped.some(({ from }) => from.type === 'video');
  }

  /** Send time of the first buffered packet, in milliseconds of the monotonic clock; undefined when there is none. */
  get heldSince(): number | undefined {
    const [first] = this.#held;
    return first && this.#nodeTime(first);
  }

  /** Send time of the first buffered key frame at or after a time; undefined when there is none. */
  keyFrom(time: number): number | undefined {
    const key = this.#held.find(
      (packet) => packet.key && packet.track.type === 'video' && this.#nodeTime(packet) >= time,
    );
    return key && this.#nodeTime(key);
  }

  /** Send time of the last buffered key frame. */
  get lastKey(): number | undefined {
    const key = this.#held.findLast((packet) => packet.key && packet.track.type === 'video');
    return key && this.#nodeTime(key);
  }

  /**
   * Starts to play.
   * @param zero time 0 of the channel, in milliseconds of the monotonic clock
   * @returns the packets buffered since then, on the channel's time
   */
  play(zero: number): Packet[] {
    const { silenceMs, onOver, spec } = this.#options;
    this.#clock.fix();
    this.#zero = zero;
    this.#gate = new KeyGate(this.#mapped.flatMap(({ from }) => (from.type === 'video' ? from.id : [])));
    const kept = this.#held.filter((packet) => this.#nodeTime(packet) >= zero);
    this.#drop();
    if (silenceMs > 0)
      this.#watchdog = new Watchdog(silenceMs, () => onOver(`stream ${spec.url} has sent nothing for ${silenceMs} ms`));
    return kept.flatMap((packet) => this.#place(packet, zero));
  }

  /** Asks for a key frame, for a viewer of the channel. */
  wantKey(): void {
    if (this.hasVideo) this.#source?.output.wantKey();
  }

  tracks(tracks: readonly Track[]): Track[] {
    const { spec, idOf, onTracks, onOver } = this.#options;
    this.#missing = missingTrack(spec, tracks);
    this.#mapped = mapTracks(spec, tracks, idOf, this.#mapped);
    const routes = Map.groupBy(this.#mapped, ({ from }) => from);
    this.#routes = new Map([...routes].map(([from, mapped]) => [from, mapped.map(({ to }) => to)]));
    if (this.#zero !== undefined) {
      if (this.#missing === undefined) onTracks();
      else onOver(`stream ${spec.url} has no track ${this.#missing} any more`);
    }
    return [...this.#routes.keys()];
  }

  packet(packet: Packet): void {
    if (this.#zero === undefined) return this.#hold(packet);
    this.#watchdog?.heard();
    for (const placed of this.#place(packet, this.#zero)) this.#options.onPacket(placed);
  }

  end(reason: string): void {
    const isPlaying = this.#zero !== undefined;
    this.#ended.resolve();
    this.#reset();
    if (isPlaying) this.#options.onOver(`stream ${this.#options.spec.url} has ended: ${reason}`);
  }

  /** Measures arrival times, for a stream of this node by its publisher's packets: encoders delay their output. */
  #listen({ output }: LiveSource): () => void {
    const arrivals = output.input.isRelay ? output : output.input;
    const clock = this.#clock;
    const reader = arrivals.read({ packet: (packet) => clock.note(packet, performance.now()) });
    return () => reader.close();
  }

  #hold(packet: Packet): void {
    this.#held.push(packet);
    this.#heldBytes += packet.data.length;
    const [oldest] = this.#held;
    const seconds = toSeconds(packet.dts, packet.track.timebase);
    const isFull = this.#heldBytes > HELD.bytes;
    if (!isFull && oldest !== undefined && seconds - toSeconds(oldest.dts, oldest.track.timebase) <= HELD.seconds)
      return;
    const from = isFull ? this.#held.length / 4 : 0;
    this.#held = this.#held.filter(
      ({ dts, track }, i) => i >= from && toSeconds(dts, track.timebase) >= seconds - HELD.trimmedSeconds,
    );
    this.#heldBytes = this.#held.reduce((bytes, { data }) => bytes + data.length, 0);
  }

  /** Maps a packet to the channel's time, once for each track of the channel that it belongs to. */
  #place(packet: Packet, zero: number): Packet[] {
    if (this.#gate.waits && !this.#gate.passes(packet)) return [];
    const { dts, pts, duration, key, data } = packet;
    return (this.#routes.get(packet.track) ?? []).map((track) => {
      const { num, den } = track.timebase;
      // whole ticks: while the mapping stays, distances are those of the source
      const shift = Math.round(((this.#clock.offset - zero) * den) / (1000 * num));
      const placed = Math.max(dts + shift, (this.#last.get(track.id) ?? -1) + 1);
      this.#last.set(track.id, placed);
      return { track, dts: placed, pts: placed + pts - dts, duration, key, data };
    });
  }

  /** Send time of a packet if it had no delay, in milliseconds of the monotonic clock. */
  #nodeTime({ dts, track }: Packet): number {
    return this.#clock.offset + toSeconds(dts, track.timebase) * 1000;
  }

  #drop(): void {
    this.#held = [];
    this.#heldBytes = 0;
  }

  #reset(): void {
    this.#source?.close();
    this.#source = undefined;
    this.#watchdog?.close();
    this.#watchdog = undefined;
    this.#clock = new AlignedClock();
    this.#missing = undefined;
    this.#mapped = [];
    this.#routes = new Map();
    this.#zero = undefined;
    this.#last.clear();
    this.#drop();
  }
}
